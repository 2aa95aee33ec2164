// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/robotspolicy/caddy-robots-policy/internal/cli/policyinput"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

// mergeFlag adds the flag --merge to a command that explains or checks a policy.
func mergeFlag(cmd *cobra.Command, name *string) {
	cmd.Flags().StringVar(name, "merge", "", "for everything that the policy neither allows nor disallows, apply the site's own robots.txt from this `FILE|URL`, like the option \"robots_txt merge\"")
}

// readBelow reads the robots.txt whose file or address is the value of the flag --merge. It returns nil if the flag is
// not set.
func readBelow(cmd *cobra.Command, name string) (*robotstxt.File, error) {
	if name == "" {
		return nil, nil
	}
	raw, err := policyinput.ReadRobots(cmd.Context(), name, cmd.InOrStdin())
	var file *robotstxt.File
	if err == nil {
		file, err = raw.Robots()
	}
	if err != nil {
		err = fmt.Errorf("--merge: %w", err)
		if errors.Is(err, policyinput.ErrInvalid) { // exit with 1, like for an invalid file in an argument
			err = failure{err}
		}
		return nil, err
	}
	file.Name = raw.Name
	if raw.Note != "" {
		fmt.Fprintln(cmd.ErrOrStderr(), raw.Note)
	}
	return file, nil
}

// rejectFlags returns an error if the command line has a flag that is only for policy files.
func rejectFlags(cmd *cobra.Command, robots string, names ...string) error {
	for _, name := range names {
		if cmd.Flags().Changed(name) {
			return fmt.Errorf("--%s is only for policy files, but %s is a robots.txt", name, robots)
		}
	}
	return nil
}

// belowOf returns a function that returns file for every host. If file is nil, belowOf returns nil instead of a
// function.
func belowOf(file *robotstxt.File) site.Below {
	if file == nil {
		return nil
	}
	return func(string) (*robotstxt.File, bool) { return file, true }
}

// checkedRobots is the result of the check command for a robots.txt.
type checkedRobots struct {
	File   string           `json:"file"`
	Groups []string         `json:"groups"`
	Rules  int              `json:"rules"` // number of Allow and Disallow lines
	Notes  []robotstxt.Note `json:"notes"`

	unread error // why crawlers find no lines in the file, or nil
}

// checkRobots checks a robots.txt. If the file can be converted to a policy, the result contains the notes of the
// conversion.
func checkRobots(raw *policyinput.Raw) *checkedRobots {
	f := robotstxt.Parse(raw.Data)
	c := &checkedRobots{File: raw.Name, Groups: []string{}, unread: f.Unreadable()}
	notes := f.Notes()
	switch converted, err := policyinput.Convert(raw.Name, raw.Data); {
	case err == nil:
		notes = converted.Notes
	case c.unread != nil:
		notes = slices.Insert(notes, 0, robotstxt.Note{Line: 1, Message: c.unread.Error()})
	default:
		notes = slices.Insert(notes, 0, robotstxt.Note{Message: err.Error()})
	}
	if raw.Note != "" {
		notes = slices.Insert(notes, 0, robotstxt.Note{Message: raw.Note})
	}
	c.Notes = robotstxt.Grouped(notes)
	lines := map[int]bool{}
	for _, g := range f.Groups {
		c.Groups = append(c.Groups, g.Name)
		for _, n := range g.Lines() {
			lines[n] = true
		}
	}
	c.Rules = len(lines)
	return c
}

func (c *checkedRobots) failed(strict bool) bool {
	return c.unread != nil || strict && slices.ContainsFunc(c.Notes, func(n robotstxt.Note) bool { return n.Wrong })
}

func (c *checkedRobots) writeText(w io.Writer) error {
	var b strings.Builder
	warnings := 0
	for _, n := range c.Notes {
		if n.Wrong {
			warnings++
			n.Message = "warning: " + n.Message
		}
		writeNote(&b, c.File, n.Line, n.Message)
	}
	if c.unread != nil {
		fmt.Fprintf(&b, "%s: 1 error\n", c.File)
	} else {
		has := english.Count(c.Rules, "Allow or Disallow line")
		if len(c.Groups) > 0 {
			has += " for " + english.Some(c.Groups, 3)
		}
		fmt.Fprintf(&b, "%s is a robots.txt with %s; %s and %s\n", c.File, has, english.Count(warnings, "warning"), english.Count(len(c.Notes)-warnings, "note"))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// robotsAnswer is the result of the explain command for a robots.txt.
type robotsAnswer struct {
	File       string  `json:"file"`
	URL        string  `json:"url"`
	Agent      string  `json:"agent"`
	Group      string  `json:"group,omitempty"` // "" if no group is for the crawler
	Allowed    bool    `json:"allowed"`
	Line       int     `json:"line,omitempty"` // the line that decides
	Rule       string  `json:"rule,omitempty"`
	CrawlDelay float64 `json:"crawl_delay,omitempty"`
	robotstxt.Said
	// the answer of crawlers that do not normalize URLs before the comparison, if it is different
	AsSent *bool `json:"allowed_as_sent,omitempty"`
	// A policy treats several spellings of a path as one path. OtherSpelling is another spelling of the asked path for
	// which robots.txt has a different answer, and OtherSpellingLine is the line that decides about it.
	OtherSpelling     string `json:"other_spelling,omitempty"`
	OtherSpellingLine int    `json:"other_spelling_line,omitempty"`
}

// explainRobots decides from a robots.txt whether a crawler may fetch a URL. It reads the lines like Google's parser,
// but compares paths in normal form (see robotstxt.Agent.Ask). It returns an error if crawlers cannot read the file.
func explainRobots(raw *policyinput.Raw, agent string, u *url.URL) (*robotsAnswer, error) {
	f := robotstxt.Parse(raw.Data)
	if err := f.Unreadable(); err != nil {
		return nil, failure{fmt.Errorf("%s: %w", raw.Name, err)}
	}
	e := &robotsAnswer{File: raw.Name, URL: u.String(), Agent: agent}
	c := policyfile.Recognize(agent, f.Names())
	who := f.Agent(c)
	if g := f.Obeyed(c); g != nil {
		e.Group = g.Name
	}
	a := who.Ask(e.URL)
	e.Allowed, e.Line = a.Allowed, a.Line
	if a.Line > 0 {
		e.Rule = "Disallow: " + a.Path
		if a.Allowed {
			e.Rule = "Allow: " + a.Path
		}
	}
	other := pathpattern.NormalizePath(pathpattern.Target(u))
	if b := who.Ask(other); b.Allowed != a.Allowed {
		e.OtherSpelling, e.OtherSpellingLine = other, b.Line
	}
	if sent := who.AskAsSent(u.String()).Allowed; sent != e.Allowed {
		e.AsSent = &sent
	}
	e.CrawlDelay, e.Said = who.CrawlDelay().Seconds(), who.Said(e.URL)
	return e, nil
}

func (e *robotsAnswer) writeText(w io.Writer) error {
	var b strings.Builder
	verb := "may"
	if !e.Allowed {
		verb = "may not"
	}
	fmt.Fprintf(&b, "%s %s fetch %s.\n", e.Agent, verb, e.URL)
	switch {
	case e.Line > 0:
		fmt.Fprintf(&b, "  because %s:%d, in the group of %s, is %q\n", e.File, e.Line, e.Group, e.Rule)
	case e.Group == "":
		fmt.Fprintf(&b, "  because %s has no group for this crawler\n", e.File)
	default:
		fmt.Fprintf(&b, "  because no line in the group of %s matches this URL\n", e.Group)
	}
	switch {
	case e.OtherSpelling == "":
	case e.Allowed:
		fmt.Fprintf(&b, "  but line %d disallows %s, which is the same path in another spelling; a policy file made from this robots.txt disallows both spellings\n", e.OtherSpellingLine, e.OtherSpelling)
	default:
		fmt.Fprintf(&b, "  but the crawler may fetch %s, which is the same path in another spelling; a policy file made from this robots.txt disallows both spellings\n", e.OtherSpelling)
	}
	if e.AsSent != nil && *e.AsSent {
		fmt.Fprintln(&b, "  but crawlers that compare URLs exactly as they are written, such as those that use Google's parser, may fetch it, because no line has the same spelling as this URL")
	} else if e.AsSent != nil {
		fmt.Fprintln(&b, "  but crawlers that compare URLs exactly as they are written, such as those that use Google's parser, may not fetch it")
	}
	if e.CrawlDelay > 0 {
		fmt.Fprintf(&b, "The file asks this crawler to wait %g seconds between requests.\n", e.CrawlDelay)
	}
	for _, line := range e.Lines() {
		fmt.Fprintln(&b, line)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
