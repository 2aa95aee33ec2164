// SPDX-License-Identifier: Apache-2.0

// Package firstpolicy makes a first policy file from a few answers, for `caddy robots-policy init`.
package firstpolicy

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/channels"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// Answer is the answer to a yes-or-no question. The zero value means that the user has not answered the question. In
// this case, the rules of the existing robots.txt apply or, if there is none, the default answer.
type Answer uint8

// These are the possible answers.
const (
	Unanswered Answer = iota
	Yes
	No
)

func (a Answer) String() string { return [...]string{"", "yes", "no"}[a] }

// Topic is the subject of a yes-or-no question.
type Topic uint8

// The topics are in the order of the questions.
const (
	Search Topic = iota
	Training
	Rights
	AIAnswers
	AISearch
	Images
	Archives
	Previews
)

const topicCount = int(Previews) + 1

// Topics has the flag, the question and the default answer of each topic. Some questions depend on another one: they
// are asked only if the user has answered "no" to the question of the topic in After. If After is the topic itself, the
// question is always asked.
var Topics = [topicCount]struct {
	Flag, Question string
	Default        Answer
	After          Topic
}{
	Search:    {"search", "May search engines find the site?", Yes, Search},
	Training:  {"ai-training", "May AI be trained with the site's contents?", No, Training},
	Rights:    {"reserve-rights", "Also reserve the rights to text and data mining, in a machine-readable form (" + channels.Reserving()[0].Name + ")?", No, Training},
	AIAnswers: {"ai-answers", "May AI products use the site's contents to answer questions?", Yes, AIAnswers},
	AISearch:  {"ai-search", "May search engines that feed AI answers, such as PerplexityBot, read the site?", Yes, AIAnswers},
	Images:    {"images", "May image search show the site's pictures?", Yes, Images},
	Archives:  {"archives", "May archives such as the Internet Archive keep copies?", Yes, Archives},
	Previews:  {"previews", "May messengers and social networks show previews of the site's pages?", Yes, Previews},
}

// Answers holds all answers that Build turns into a policy.
type Answers struct {
	From    string // where Robots comes from, or ""
	Robots  []byte // an existing robots.txt
	Host    string // the site's host name, or empty
	To      [topicCount]Answer
	Closed  []pathpattern.Pattern
	Staging []policy.Host
}

// complete returns a copy of a with defaults for the missing answers, or an error if answers contradict each other. If
// a dependent question (see After in Topics) has an answer other than its default, but the question in After has no
// answer, complete answers the latter with "no". If the policy begins with an existing robots.txt, complete does not
// set defaults, because the rules of this file apply instead.
func (a Answers) complete() (Answers, error) {
	for t, q := range Topics {
		if q.After == Topic(t) || a.To[t] == Unanswered || a.To[t] == q.Default {
			continue
		}
		if a.To[q.After] == Yes {
			return a, fmt.Errorf("%w: you can only answer %s to %q if you answer no to %q", ErrContradictory, a.To[t], q.Question, Topics[q.After].Question)
		}
		a.To[q.After] = No
	}
	for t, q := range Topics {
		if a.To[t] == Unanswered && a.From == "" {
			a.To[t] = q.Default
		}
	}
	for _, h := range a.Staging {
		suffix, wildcard := strings.CutPrefix(string(h), "*")
		if a.Host != "" && (string(h) == a.Host || wildcard && strings.HasSuffix(a.Host, suffix)) {
			return a, fmt.Errorf("%w: the staging host %q includes the site itself, %s; name hosts that are only for testing, such as staging.example.com", ErrContradictory, h, a.Host)
		}
	}
	return a, nil
}

// siteHost returns a host name for tests and tables. This is the site's own host or, if only staging hosts are known, a
// similar host that is not a staging host. siteHost returns "" if the answers do not contain a host.
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

// ParseAnswer parses yes or no in all spellings that people usually type.
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

// splitAnswers splits an answer into values, which are separated by commas or spaces. It ignores "none" and similar
// words.
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

// parseClosed parses a path such as /members/. It also accepts a path without its first slash, and a URL of the
// site.
func parseClosed(s string) (pathpattern.Pattern, error) {
	path := s
	switch u, err := url.Parse(s); {
	case err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https"):
		path = pathpattern.Target(u)
	case !strings.HasPrefix(s, "/") && !strings.HasPrefix(s, "*"):
		path = "/" + s
	}
	p, err := pathpattern.Parse(path)
	if err != nil {
		return p, fmt.Errorf("invalid path %q: must be a path such as /members/", s)
	}
	if p.IsAll() {
		return p, fmt.Errorf("the path %q is the whole site; give a part of it, such as /members/, or answer no for search engines", s)
	}
	return p, nil
}

// ParseHost parses a host name or a URL with a host. If wildcard is true, the host may begin with "*.".
func ParseHost(s string, wildcard bool) (policy.Host, error) {
	name := s
	if u, err := url.Parse(s); err == nil && u.Host != "" {
		name = policy.WithoutPort(u.Host)
	}
	name = strings.TrimSuffix(name, "/")
	h, err := policy.ParseHost(name)
	if err != nil || strings.ContainsFunc(string(h), func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return "", fmt.Errorf("invalid host %q: must be a host name such as www.example.com", s)
	}
	if h.Wildcard() && !wildcard {
		return "", fmt.Errorf("invalid host %q: must be one host, such as www%s", s, h[1:])
	}
	return h, nil
}

// AddClosed adds paths that crawlers may not read. s contains the paths, separated by commas or spaces.
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

// AddStaging adds hosts that search engines must not list. s contains the hosts, separated by commas or spaces.
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

// SetFrom sets the existing robots.txt that the policy begins with. s names a file with the robots.txt, or is the URL
// of the robots.txt, or the URL or host of the site. open reads the robots.txt, and returns nil if the site does not
// have one. If s is a URL or a host, and the site's host is not set yet, SetFrom also sets the site's host.
func (a *Answers) SetFrom(s string, open func(name string) ([]byte, error)) (err error) {
	name, host := s, ""
	address := s
	if _, err := os.Stat(s); errors.Is(err, fs.ErrNotExist) && !strings.Contains(s, "://") && strings.Contains(s, ".") && !strings.HasSuffix(s, ".txt") {
		address = "https://" + s
	}
	if u, err := url.Parse(address); err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https") {
		if u.Path == "" || u.Path == "/" {
			u.Path = "/robots.txt"
		}
		name = u.String()
		if h, err := ParseHost(u.Hostname(), false); err == nil {
			host = string(h)
		}
	}
	if a.Robots, err = open(name); err != nil {
		return err
	}
	a.From = ""
	if a.Robots != nil {
		a.From = name
	}
	a.Host = cmp.Or(a.Host, host)
	return nil
}
