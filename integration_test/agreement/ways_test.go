// SPDX-License-Identifier: Apache-2.0

package agreement

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/activity/accesslog"
	"github.com/robotspolicy/caddy-robots-policy/activity/replay"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/crawlertest"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/policytest"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
	"github.com/robotspolicy/caddy-robots-policy/site"
	"github.com/robotspolicy/caddy-robots-policy/site/compare"
)

// offline checks three results that need no server: the results of tests in the policy file, a comparison with a policy
// without rules, and the replay of an access log.
func (x *exam) offline(t *testing.T, qs []question) error {
	x.tests(qs)
	if err := x.compared(qs); err != nil {
		return err
	}
	return x.replayed(t, qs)
}

// tests adds tests to the section "expect" of the policy file. For each question, the new test expects that the crawler
// may crawl the page. The test must fail if the policy disallows this page, and must pass otherwise.
func (x *exam) tests(qs []question) {
	if bytes.Contains(x.p.text, []byte("\nexpect:")) {
		return // the policy already has tests of its author
	}
	text := string(x.p.text) + "\nexpect:\n"
	first := strings.Count(text, "\n") + 1
	var asked []question
	for _, q := range qs {
		who, ok := map[policy.Identity]string{policy.Verified: "verified ", policy.Unknown: "unverified "}[q.client.identity]
		if !ok || len(q.purposes) > 0 || q.token == "" || x.p.site.Policy.Crawler(q.token) == 0 || x.controlsTraining(q.token) || strings.ContainsAny(q.path, " #\"\\") ||
			strings.HasPrefix(q.path, "//") || crawlertest.NormalPath(strings.SplitN(q.path, "?", 2)[0]) == "/robots.txt" {
			continue
		}
		text += fmt.Sprintf("  - %q\n", who+q.token+" may crawl https://"+q.host+q.path)
		asked = append(asked, q)
	}
	if len(asked) == 0 {
		return
	}
	_, ds := policyfile.Load(x.p.name, []byte(text))
	failed := map[int]bool{}
	for _, d := range ds {
		if d.Severity == policy.Error {
			if !strings.HasPrefix(d.Code, "expectation-") {
				x.differ("expect: the file", asked[0], d.Message, "no error")
				return
			}
			failed[d.Pos.Line] = true
		}
	}
	for i, q := range asked {
		question := x.asked(q, policy.Crawl)
		question.Identity = q.client.identity
		want, got := x.p.naive(question).Verdict != policy.Disallowed && x.edge(q, q.client.identity) == "", !failed[first+i]
		x.answer("expect", 1)
		f := x.own(q.host)
		as, _ := x.readsAs(f, q.token)
		switch {
		case got == want:
		case want && x.flattened(f, q):
			x.except("expect", "not-flattenable")
		case want && x.ofAnotherFamily(q.token, as):
			x.except("expect", "another operator's group")
		default:
			x.differ("expect", q, got, want)
		}
	}
}

// own returns the robots.txt that the policy makes for a host, without the lines of the upstream's robots.txt.
func (x *exam) own(host string) *robotsFile {
	return cached(x.p, "own robots.txt of "+host, func() *robotsFile {
		f, _ := robotsserve.Render(x.p.site.Policy, host, robotsserve.Options{})
		return &robotsFile{host: host, body: string(f.Body), read: crawlertest.ReadRobotsTxt(string(f.Body)), losses: f.Losses}
	})
}

// compared lets package compare compare an empty policy with the policy. For each question, the list of changes must
// contain a change to disallowed if the policy disallows the path for the crawler. If not, there must not be one.
func (x *exam) compared(qs []question) error {
	empty, ds := site.Load("empty.yaml", []byte("version: 1\n"))
	if empty == nil {
		return ds
	}
	changes, complete := compare.Decisions(empty.Policy, x.p.site.Policy, compare.Options{Now: x.p.now})
	if !complete {
		x.count("compare: not all is compared")
		return nil
	}
	for _, q := range qs {
		path := crawlertest.NormalPath(q.path)
		if len(q.purposes) > 0 || q.token != "" && x.p.site.Policy.Crawler(q.token) == 0 || path == "/robots.txt" {
			continue
		}
		asked := x.asked(q, policy.Crawl)
		asked.Identity = q.client.identity
		closed := slices.ContainsFunc(changes, func(c compare.Change) bool {
			return c.Effect == compare.Loss && c.Purpose == "" && slices.Contains(c.Usages, "crawl") && strings.HasPrefix(c.New, "disallowed") &&
				concerns(&c, q.token) && holdsFor(c.Identity, asked.Identity) && holdsOn(c.Hosts, x.p.site.Policy, q.host) && holdsAt(&c, path)
		})
		same(x, "compare", q, closed, x.p.naive(asked).Verdict == policy.Disallowed)
	}
	return nil
}

// concerns reports whether a change affects a crawler. "" stands for an unlisted client.
func concerns(c *compare.Change, token string) bool {
	is := func(s string) bool { return strings.EqualFold(s, token) }
	if token == "" {
		is = func(s string) bool { return s == compare.EveryoneElse }
	}
	return slices.Contains(c.Crawlers, compare.Everyone) || slices.ContainsFunc(c.Crawlers, is) ||
		slices.ContainsFunc(c.Kinds, func(k compare.Kind) bool { return slices.ContainsFunc(k.Crawlers, is) })
}

// holdsFor reports whether a change is for clients of an identity. words is the Identity of the change.
func holdsFor(words string, who policy.Identity) bool {
	switch words {
	case "":
		return true
	case "verified":
		return who == policy.Verified
	case "unverified":
		return who == policy.Unknown
	case "unverified or impostor":
		return who != policy.Verified
	case "impostor":
		return who == policy.Impostor
	case "not-impostor":
		return who != policy.Impostor
	case "verified or impostor":
		return who != policy.Unknown
	}
	panic("unknown identity " + words)
}

// holdsOn reports whether a change is for a host. All hosts that no rule names are treated like a single host.
func holdsOn(hosts []string, p *policy.Policy, host string) bool {
	if hosts == nil {
		return true
	}
	key := p.HostKey(policy.NormalizeHost(host))
	return slices.ContainsFunc(hosts, func(h string) bool { return p.HostKey(policy.Host(h).Example()) == key })
}

func holdsAt(c *compare.Change, path string) bool {
	matches := func(text string) bool { return pathpattern.MustParse(text).Match(path) }
	return (len(c.Paths) == 0 || slices.ContainsFunc(c.Paths, matches)) && !slices.ContainsFunc(c.Except, matches)
}

// replayed writes each question into an access log, and checks the decisions of the replay.
func (x *exam) replayed(t *testing.T, qs []question) error {
	var log bytes.Buffer
	line := json.NewEncoder(&log)
	began := x.p.now.Truncate(time.Second)
	for i, q := range qs {
		address := q.client.address
		if address == "" {
			address = "192.0.2.1"
		}
		err := line.Encode(map[string]any{
			"ts": began.Unix() + int64(i), "logger": "http.log.access", "msg": "handled request", "status": 200, "size": 1,
			"request": map[string]any{
				"remote_ip": address, "client_ip": address, "proto": "HTTP/1.1", "method": "GET", "host": q.host, "uri": q.path,
				"headers": map[string][]string{"User-Agent": {q.agent}},
			},
		})
		if err != nil {
			return err
		}
	}
	name := filepath.Join(t.TempDir(), "access.log")
	if err := os.WriteFile(name, log.Bytes(), 0o600); err != nil {
		return err
	}
	found := map[int]replay.Verdict{}
	_, err := replay.Run(t.Context(), replay.Options{New: x.p.site, Files: []string{name}, Workers: 1, Decided: func(r *accesslog.Record, v replay.Verdict) {
		found[int(r.Time.Unix()-began.Unix())] = v
	}})
	if err != nil {
		return err
	}
	for i, q := range qs {
		v, ok := found[i]
		same(x, "replay: the crawler", q, strings.ToLower(v.Crawler), strings.ToLower(x.p.visitor(q.token)))
		if !ok || crawlertest.NormalPath(strings.SplitN(q.path, "?", 2)[0]) == "/robots.txt" {
			continue
		}
		same(x, "replay", q, v.Decision == activity.Blocked, x.edge(q, v.Identity) != "")
		if v.Decision == activity.Allowed && !x.open(q.host, crawlertest.ServedPaths(q.path)) { // paths that are always allowed
			asked := policytest.Question{Token: q.token, Identity: v.Identity, Purposes: q.purposes, Host: q.host, Path: q.path, Usage: policy.Crawl}
			same(x, "replay: allowed", q, true, x.p.naive(asked).Verdict != policy.Disallowed)
		}
	}
	return nil
}
