// SPDX-License-Identifier: Apache-2.0

// Package policyinput reads the policies in the arguments of commands. Such an argument is a policy file, a robots.txt,
// or a URL of one of them.
package policyinput

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

// maxRead is the maximum number of bytes to read from a file. It is much larger than all size limits. So an error
// message about a file that exceeds its limit can state the actual size of the file.
const maxRead = 64 << 20

// Input is a policy file or a robots.txt that has been read.
type Input struct {
	Name   string // the file, or the URL after redirects
	Policy *policy.Policy
	Site   *site.Site // the site with the policy
	// Robots is the text of a robots.txt. It is nil for a policy file.
	Robots []byte
	// Notes describes lines of a robots.txt that were left out or interpreted, and remarks about fetching the file.
	Notes []robotstxt.Note
}

// Over adds a site's own robots.txt, whose lines apply to everything that the policy neither allows nor disallows.
func (in *Input) Over(below *robotstxt.File) {
	in.Site = in.Site.Over(below)
	in.Policy = in.Site.Policy
}

// ErrInvalid is wrapped by errors about the content of an input. Errors in reading the input do not wrap it.
var ErrInvalid = errors.New("invalid")

// errPolicy is the error for an argument that should be a robots.txt, but is a policy file.
var errPolicy = errors.New("this is a policy file, not a robots.txt; to read it, use: caddy robots-policy check")

// Raw is the content of an input before it is known to be a policy file or a robots.txt.
type Raw struct {
	Name string
	Data []byte
	Note string // a note about the fetch, or ""
	None bool   // true if the site has no robots.txt, because of the status of its answer (RFC 9309 section 2.3.1.3)
}

// ReadRaw reads a file, a URL, or the standard input if name is "-". For the URL of a site, it reads the site's
// /robots.txt.
func ReadRaw(ctx context.Context, name string, stdin io.Reader) (*Raw, error) {
	return readRaw(ctx, name, stdin, "site-policy.yaml")
}

// ReadRobots is like ReadRaw, but for an argument that must be a robots.txt.
func ReadRobots(ctx context.Context, name string, stdin io.Reader) (*Raw, error) {
	return readRaw(ctx, name, stdin, "robots.txt")
}

func readRaw(ctx context.Context, name string, stdin io.Reader, usual string) (*Raw, error) {
	if isURL(name) {
		return fetch(ctx, name)
	}
	data, err := readFile(name, stdin, usual)
	if name == "-" {
		name = "<stdin>"
	}
	return &Raw{Name: name, Data: data}, err
}

// Read reads a policy file, a robots.txt, or the URL of one of them. It reads the lines of a robots.txt like Google's
// parser, and converts them to a policy with the same meaning.
func Read(ctx context.Context, name string, stdin io.Reader) (*Input, error) {
	raw, err := ReadRaw(ctx, name, stdin)
	if err != nil {
		return nil, err
	}
	in := &Input{Name: raw.Name}
	if raw.Note != "" {
		in.Notes = append(in.Notes, robotstxt.Note{Message: raw.Note})
	}
	var s *site.Site
	var ds policyfile.Diagnostics
	if !isPolicyFile(raw.Name, raw.Data) {
		in.Robots = append([]byte{}, raw.Data...)
		c, err := Convert(raw.Name, raw.Data)
		if err != nil {
			return nil, err
		}
		in.Notes = append(in.Notes, c.Notes...)
		s, ds = site.New(c.File)
	} else { // a policy can be compared even if its dates have passed or its tests fail
		s, ds = site.LoadWith(raw.Name, raw.Data, policyfile.Options{Accepted: true})
	}
	if s == nil {
		return nil, fmt.Errorf("%w policy file:\n%w", ErrInvalid, ds)
	}
	in.Site, in.Policy = s, s.Policy
	return in, nil
}

var versionKey = regexp.MustCompile(`(?m)^['"]?version['"]?[ \t]*:[ \t]*['"]?[0-9]`)

// isPolicyFile reports whether a file is a policy file and not a robots.txt. It decides by the extension of the name.
// If the extension is not .yaml, .yml or .txt, it looks for the key "version", which every policy file has.
func isPolicyFile(name string, data []byte) bool {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".yaml", ".yml":
		return true
	case ".txt":
		return false
	}
	return versionKey.Match(robotstxt.Decode(data[:min(len(data), 1<<16)]))
}

var robotsLine = regexp.MustCompile(`(?im)^[ \t]*(user-agent|sitemap|allow|disallow)[ \t]*:`)

// IsRobots reports whether the input is a robots.txt, or a web page in place of one, rather than a policy file.
func (r *Raw) IsRobots() bool {
	return !isPolicyFile(r.Name, r.Data) &&
		(strings.EqualFold(filepath.Ext(r.Name), ".txt") || robotstxt.IsPage(r.Data) || robotsLine.Match(robotstxt.Decode(r.Data)))
}

// Robots parses a robots.txt. It returns an error for a policy file, a web page, or a file without readable lines.
func (r *Raw) Robots() (*robotstxt.File, error) {
	f := robotstxt.Parse(r.Data)
	err := f.Unreadable()
	if isPolicyFile("", r.Data) {
		err = errPolicy
	}
	if err != nil && err != robotstxt.ErrUTF16 {
		return nil, fmt.Errorf("%w robots.txt %s: %w", ErrInvalid, r.Name, err)
	}
	return f, nil
}

// ReadFile reads a policy file, or the standard input if name is "-". It reads at most maxRead bytes. Its errors are
// for readers who are not engineers.
func ReadFile(name string, stdin io.Reader) ([]byte, error) {
	return readFile(name, stdin, "site-policy.yaml")
}

// readFile reads a file. usual is the usual name of such a file.
func readFile(name string, stdin io.Reader, usual string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(io.LimitReader(stdin, maxRead))
	}
	f, err := os.Open(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s does not exist; check the name and the folder", name)
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("no permission to read %s; run the command as a user who may, or make the file readable: chmod a+r %s", name, name)
	case err != nil:
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s is a directory; give the file in it, such as %s", name, filepath.Join(name, usual))
	}
	return io.ReadAll(io.LimitReader(f, maxRead))
}
