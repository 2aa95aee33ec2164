// SPDX-License-Identifier: Apache-2.0

// Package site combines a policy with all its channels. A server uses it to answer requests according to a policy file,
// and to explain the answers.
package site

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/channels"
	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/effect"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
	"github.com/robotspolicy/caddy-robots-policy/policyfile/lint"
	"github.com/robotspolicy/caddy-robots-policy/rights"
	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
)

// Site is a loaded policy file. It is immutable, except for caches, and may be shared.
type Site struct {
	File *policyfile.File
	*effect.Engine

	*known
	purposes          []string // purposes that the policy names
	purposeRecognizer *crawlers.Recognizer
	pages             *pages
	registers         *registers
	lastOver          atomic.Pointer[overFile]
}

// Load reads a policy file and prepares every channel. It returns the diagnostics of the file and of all channels. If
// any of them is an error, the Site is nil.
func Load(name string, data []byte) (*Site, policyfile.Diagnostics) {
	return LoadWith(name, data, policyfile.Options{})
}

// LoadWith is like Load, with options for reading the file.
func LoadWith(name string, data []byte, file policyfile.Options) (*Site, policyfile.Diagnostics) {
	f, ds := policyfile.LoadWith(name, data, file)
	if ds.HasErrors() {
		return nil, ds
	}
	s, more := New(f)
	return s, append(ds, more...).Sorted()
}

// New prepares every channel of a policy file. It returns the diagnostics of the channels. If any of them is an error,
// the Site is nil.
func New(f *policyfile.File) (*Site, policyfile.Diagnostics) {
	s := newSite(f)
	ds := f.Add(s.check())
	if ds.HasErrors() {
		return nil, ds
	}
	return s, ds
}

func newSite(f *policyfile.File) *Site {
	s := &Site{File: f, Engine: f.Effect, known: knownOf(f)}
	s.registers = &registers{Projection: s.Projection, byHost: map[int]map[*channels.Channel]*rights.Document{}}
	s.pages = newPages(s.Engine, s.known.tokens, s.registers)
	s.purposes = purposes(f.Policy)
	s.purposeRecognizer = crawlers.NewRecognizer(patterns(s.purposes))
	return s
}

// Over returns the site with below, the site's own robots.txt, as a fallback. The fallback decides about crawling where
// the policy does not. The result is only for questions, because a server does not enforce the fallback.
func (s *Site) Over(below *robotstxt.File) *Site {
	engine := s.Engine.Over(below)
	f := *s.File
	f.Policy, f.Effect = engine.Policy, engine
	return newSite(&f)
}

// Told is like Over, but the result also has the other lines of below, such as sitemaps and preferences, as settings
// and rules. The result is only for comparisons.
func (s *Site) Told(below *robotstxt.File) *Site {
	told, settings := below.Told(s.Policy)
	engine := effect.New(policy.Compile(told), s.File.Catalog).Over(below)
	f := *s.File
	f.Spec, f.Policy, f.Effect = settings, engine.Policy, engine
	return newSite(&f)
}

// Below is a function that returns a host's own robots.txt in the version that a server with "robots_txt merge" has
// last fetched. The file is nil if the host has none. known is false if the server has not fetched the file. For
// the host "", it returns the file of all hosts that have answered, if these files are equal. Otherwise known is false.
type Below func(host string) (file *robotstxt.File, known bool)

// OverOf is like Over, with the file that below returns for a host. Without a file, it returns the site itself. It also
// reports whether the file is known.
func (s *Site) OverOf(below Below, host string) (*Site, bool) {
	f, known := below(host)
	if f == nil {
		return s, known
	}
	if last := s.lastOver.Load(); last != nil && last.sum == f.Sum {
		return last.Site, true
	}
	over := s.Over(f)
	s.lastOver.Store(&overFile{over, f.Sum})
	return over, true
}

// overFile caches the result of Over. sum identifies the content of the robots.txt that it was made with.
type overFile struct {
	*Site

	sum [sha256.Size]byte
}

// Page is like PageOf, for a host and a path.
func (s *Site) Page(host, path string, now time.Time) *Page {
	t := NewTarget(host, path)
	return s.PageOf(&t, now)
}

// PageOf returns the page for responses to the target t. The page contains the statements for all crawlers, so the
// server can send it to every client. The zero time means the current time.
func (s *Site) PageOf(t *Target, now time.Time) *Page { return s.pages.page(false, 0, t, now) }

// Tailored returns the page for a response to one crawler. The ID 0 means any crawler that the policy does not know.
// Such a page contains only the rules that apply to this crawler. So unlike the page of PageOf, it can exempt the
// crawler from a rule for everyone. The responses vary by User-Agent.
func (s *Site) Tailored(crawler policy.CrawlerID, t *Target, now time.Time) *Page {
	return s.pages.page(true, crawler, t, now)
}

// NextDate returns the next date in the policy after now, or zero if there is none.
func (s *Site) NextDate(now time.Time) time.Time {
	for _, end := range s.File.Spec.Ends() {
		if end.After(now) {
			return end
		}
	}
	return time.Time{}
}

// Place returns a place in the policy file in the form FILE:LINE.
func (s *Site) Place(at policy.Pos) string { return fmt.Sprintf("%s:%d", s.File.Name, at.Line) }

// RuleName returns the name of a rule or, if it has no name, its audiences.
func (s *Site) RuleName(r *policy.Rule) string {
	if r == nil {
		return ""
	}
	if r.Name != "" {
		return r.Name
	}
	return strings.Join(lint.Audiences(r), ", ")
}

// Verification returns the proofs that a crawler's operator publishes. They distinguish the crawler from impostors.
func (s *Site) Verification(id policy.CrawlerID) crawlers.Verification {
	if id <= 0 || int(id) > len(s.facts) {
		return crawlers.Verification{}
	}
	return s.facts[id-1]
}

// CrawlerOf returns the policy's ID of a crawler in the catalog. It returns false if the policy does not have the
// crawler.
func (s *Site) CrawlerOf(c *crawlers.Crawler) (policy.CrawlerID, bool) {
	id := s.Policy.Crawler(c.Token)
	return id, id != 0
}

// Identities returns the published addresses and keys that identify the crawler of a request.
func (s *Site) Identities() *crawlers.Identities { return s.identities }

func purposes(p *policy.Policy) []string {
	return slices.DeleteFunc(p.Spec().Purposes(), func(name string) bool { return strings.Contains(name, "*") })
}

func patterns(tokens []string) []crawlers.Pattern {
	ps := make([]crawlers.Pattern, len(tokens))
	for i, t := range tokens {
		ps[i] = crawlers.Pattern{Token: t, Index: i}
	}
	return ps
}
