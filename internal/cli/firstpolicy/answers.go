// SPDX-License-Identifier: Apache-2.0

// Package firstpolicy makes a first policy file from a few answers, as
// `caddy robots-policy init` does.
package firstpolicy

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// Answer is the answer to a yes-or-no question. The zero value leaves it open: what an
// existing robots.txt says stays, or else the default holds.
type Answer uint8

// The answers.
const (
	Unanswered Answer = iota
	Yes
	No
)

// Answers are what a policy is made from.
type Answers struct {
	From      string // a file or URL with an existing robots.txt, or empty
	Host      string // the site's host name, or empty
	Search    Answer // may search engines find the site?
	Training  Answer // may AI be trained with it?
	AIAnswers Answer // may AI answer from it?
	AISearch  Answer // if not, may search engines read it that feed such answers?
	Closed    []pathpattern.Pattern
	Staging   []policy.Host
}

// withDefaults fills in what was not answered, unless an existing robots.txt answers
// it.
func (a Answers) withDefaults() Answers {
	if a.AISearch == No && a.AIAnswers == Unanswered {
		a.AIAnswers = No
	}
	if a.From != "" {
		return a
	}
	for _, d := range []struct {
		answer *Answer
		def    Answer
	}{{&a.Search, Yes}, {&a.Training, No}, {&a.AIAnswers, Yes}, {&a.AISearch, Yes}} {
		if *d.answer == Unanswered {
			*d.answer = d.def
		}
	}
	return a
}

// siteHost is a host name for tests and tables: the site's own or, where staging hosts
// are known, one beside them. It is empty if no host is known.
func (a Answers) siteHost() string {
	if a.Host != "" || len(a.Staging) == 0 {
		return a.Host
	}
	staging, wildcard := strings.CutPrefix(string(a.Staging[0]), "*.")
	if _, parent, ok := strings.Cut(staging, "."); ok && strings.Contains(parent, ".") {
		return "www." + parent
	}
	if wildcard {
		return staging // www would be one of the staging hosts
	}
	return "www.example.com"
}

// checkStaging returns an error if a staging host is, or includes, the site's own.
func (a Answers) checkStaging() error {
	for _, h := range a.Staging {
		suffix, wildcard := strings.CutPrefix(string(h), "*")
		if a.Host != "" && (string(h) == a.Host || wildcard && strings.HasSuffix(a.Host, suffix)) {
			return fmt.Errorf("%w: the staging host %q includes the site's own, %s; name hosts that are only for testing, such as staging.example.com", ErrContradictory, h, a.Host)
		}
	}
	return nil
}

// ParseAnswer reads yes or no as people type it.
func ParseAnswer(s string) (Answer, error) {
	switch strings.ToLower(strings.Trim(strings.TrimSpace(s), ".!")) {
	case "":
		return Unanswered, nil
	case "y", "yes", "yep", "yeah", "true", "on", "1", "allow", "ok", "sure":
		return Yes, nil
	case "n", "no", "nope", "false", "off", "0", "disallow", "never":
		return No, nil
	}
	return Unanswered, fmt.Errorf("invalid answer %q: must be yes or no", s)
}

// splitAnswers splits an answer with several values, separated by commas or spaces.
// "none" and the like are no values.
func splitAnswers(s string) []string {
	words := strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ';' || r == ' ' || r == '\t' })
	if len(words) == 1 {
		switch strings.ToLower(words[0]) {
		case "none", "no", "n", "-", "nothing":
			return nil
		}
	}
	return words
}

// parseClosed reads a path such as /members/, also without its first slash or as a
// URL of the site.
func parseClosed(s string) (pathpattern.Pattern, error) {
	path := s
	switch u, err := url.Parse(s); {
	case err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https"):
		path = u.EscapedPath()
		if u.RawQuery != "" {
			path += "?" + u.RawQuery
		}
	case !strings.HasPrefix(s, "/") && !strings.HasPrefix(s, "*"):
		path = "/" + s
	}
	p, err := pathpattern.Parse(path)
	if err != nil {
		return p, fmt.Errorf("invalid path %q: must be like /members/", s)
	}
	if p.IsAll() {
		return p, fmt.Errorf("the path %q is the whole site; give a part of it, such as /members/, or answer no for search engines", s)
	}
	return p, nil
}

// ParseHost reads a host name, also as a URL. With wildcard it may begin with
// "*.".
func ParseHost(s string, wildcard bool) (policy.Host, error) {
	name := s
	if u, err := url.Parse(s); err == nil && u.Host != "" {
		name = u.Host
	}
	name = strings.TrimSuffix(name, "/")
	h, err := policy.ParseHost(name)
	if err != nil || strings.ContainsFunc(string(h), func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return "", fmt.Errorf("invalid host %q: must be like www.example.com", s)
	}
	if h.Wildcard() && !wildcard {
		return "", fmt.Errorf("invalid host %q: must be one host, such as www%s", s, h[1:])
	}
	return h, nil
}

// AddClosed adds paths that crawlers may not read, separated by commas or spaces.
func (a *Answers) AddClosed(s string) error {
	for _, word := range splitAnswers(s) {
		p, err := parseClosed(word)
		if err != nil {
			return err
		}
		a.Closed = append(a.Closed, p)
	}
	return nil
}

// AddStaging adds hosts that must not be found, separated by commas or spaces.
func (a *Answers) AddStaging(s string) error {
	for _, word := range splitAnswers(s) {
		h, err := ParseHost(word, true)
		if err != nil {
			return err
		}
		a.Staging = append(a.Staging, h)
	}
	return nil
}

// SetFrom names an existing robots.txt: a file or its URL, or the site's address or
// host. The site's host becomes that of the URL.
func (a *Answers) SetFrom(s string) {
	a.From = s
	address := s
	if _, err := os.Stat(s); errors.Is(err, fs.ErrNotExist) && !strings.Contains(s, "://") && strings.Contains(s, ".") && !strings.HasSuffix(s, ".txt") {
		address = "https://" + s
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/robots.txt"
	}
	a.From = u.String()
	if h, err := ParseHost(u.Hostname(), false); err == nil && a.Host == "" {
		a.Host = string(h)
	}
}
