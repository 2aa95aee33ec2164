// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

func loadSite(t *testing.T, text string) *site.Site {
	t.Helper()
	s, ds := site.Load("policy.yaml", []byte(text), robotsserve.ServeOptions{})
	if s == nil {
		t.Fatal(ds.Text())
	}
	return s
}

func visitOf(s *site.Site, path string) *visit {
	id := s.Policy.Crawler("ExampleBot")
	return &visit{finding: newFinding(s, kind{id: id}), query: policy.Query{Crawler: id, Host: "Example.com:80", Path: path, Now: time.Now()}}
}

// A crawler is held to the version that it has fetched, and not to one that it
// cannot know yet.
func TestViolationOfTheVersionFetched(t *testing.T) {
	closed := func(path, more string) *site.Site {
		return loadSite(t, "version: 1\nrules:\n  - for: ExampleBot\n"+more+"    disallow:\n      crawl: "+path+"\n")
	}
	first, second := closed("/first/", ""), closed("/second/", "")
	rs := new(readers)
	check := func(v *visit, version string, want bool) {
		t.Helper()
		what, _, got := rs.violation(v)
		if got != want || what.version != version {
			t.Errorf("%s: %v, by version %q", v.query.Path, got, what.version)
		}
	}
	check(visitOf(first, "/first/"), "", false)
	v := visitOf(first, "/robots.txt")
	rs.fetched(v.readerOf(), fetchedRobots{version: "1", site: first, at: time.Now()})
	check(visitOf(second, "/first/x"), "1", true)
	check(visitOf(second, "/second/x"), "1", false)
	check(visitOf(second, "/x/../first/"), "1", true)
	check(visitOf(second, "/robots.txt"), "1", false)
	rs.fetched(v.readerOf(), fetchedRobots{version: "2", site: second, at: time.Now()})
	check(visitOf(second, "/first/x"), "2", false)
	check(visitOf(second, "/second/x"), "2", true)

	// An impostor is not the crawler that has read it.
	liar := visitOf(second, "/second/x")
	liar.query.Identity = policy.Impostor
	if _, _, got := rs.violation(liar); got {
		t.Error("what an impostor does is held against the crawler")
	}
	// A robots.txt speaks to everyone of the name, whatever identity the rule demands.
	demanding := closed("/third/", "    identity: verified\n")
	rs.fetched(v.readerOf(), fetchedRobots{version: "3", site: demanding, at: time.Now()})
	check(visitOf(demanding, "/third/"), "3", true)
	// A policy that does not know the crawler says nothing against it.
	other := loadSite(t, "version: 1\nrules:\n  - for: OtherBot\n    disallow:\n      crawl: /\n")
	rs.fetched(v.readerOf(), fetchedRobots{version: "4", site: other, at: time.Now()})
	check(visitOf(second, "/second/x"), "4", false)
}

// Neither hosts that anybody can make up nor policies that come and go take memory
// without bound.
func TestViolationMemoryIsBounded(t *testing.T) {
	s := loadSite(t, "version: 1\nrules:\n  - for: ExampleBot\n    disallow:\n      crawl: /\n")
	rs := new(readers)
	for i := range 3 * maxReaders {
		rs.fetched(robotsReader{"examplebot", fmt.Sprint(i)}, fetchedRobots{site: s})
		if n := len(rs.recent) + len(rs.earlier); n > maxReaders {
			t.Fatalf("%d are remembered", n)
		}
	}
	if _, ok := rs.of(robotsReader{"examplebot", fmt.Sprint(3*maxReaders - 1)}); !ok {
		t.Error("the last is forgotten")
	}
	long := robotsReader{"examplebot", strings.Repeat("a", maxHostname+1)}
	rs.fetched(long, fetchedRobots{site: s})
	if _, ok := rs.of(long); ok {
		t.Error("a host that cannot be one is remembered")
	}
	for i := range 2 * maxPolicies {
		rs.fetched(robotsReader{"examplebot", "p"}, fetchedRobots{site: new(site.Site), version: fmt.Sprint(i)})
		if len(rs.policies) > maxPolicies {
			t.Fatalf("%d policies are held", len(rs.policies))
		}
	}
	if _, ok := rs.of(robotsReader{"examplebot", fmt.Sprint(3*maxReaders - 1)}); ok {
		t.Error("a policy that is gone is still remembered")
	}
}

func TestMetricLabelsAreBounded(t *testing.T) {
	m := &edgeMetrics{rules: map[string]string{}, bots: map[string]string{}}
	for i := range 2 * maxLabelBots {
		m.crawler(fmt.Sprint("Bot", i))
	}
	if len(m.bots) != maxLabelBots || m.crawler("BotX") != otherLabel || m.crawler("Bot1") != "Bot1" {
		t.Errorf("%d labels, %s", len(m.bots), m.crawler("BotX"))
	}
}

// Names of rules are of any script, and are cut between letters: a label that is no
// UTF-8 would make the counter panic with each request.
func TestMetricLabelsAreText(t *testing.T) {
	for pad := range 4 {
		for _, letter := range []string{"я", "規", "🗞"} {
			name := strings.Repeat("x", pad) + strings.Repeat(letter, 90)
			h := benchHandlerOf(t, "version: 1\nrules:\n  - name: "+name+"\n    for: GPTBot\n    disallow:\n      crawl: /\n    enforce: block\n")
			if err := h.ServeHTTP(httptest.NewRecorder(), benchRequest("GPTBot/1.0"), nil); err != nil {
				t.Fatal(err)
			}
			if l := metrics.rule(h.live.Load().site, &h.live.Load().site.Policy.Spec().Rules[0]); !strings.HasPrefix(name, l) || len(l) <= maxLabelBytes-len(letter) || len(l) > maxLabelBytes {
				t.Errorf("%s: label %q", name, l)
			}
		}
	}
}
