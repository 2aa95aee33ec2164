// SPDX-License-Identifier: Apache-2.0

package handler

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/site"
	"github.com/robotspolicy/caddy-robots-policy/source"
)

var bot = newFetchingCrawler("ExampleBot")

func load(t *testing.T, text string) *site.Site {
	t.Helper()
	s, ds := site.Load("policy.yaml", []byte(text))
	if s == nil {
		t.Fatal(ds.Text())
	}
	return s
}

func disallowing(t *testing.T, path, more string) *site.Site {
	return load(t, "version: 1\nrules:\n  - for: ExampleBot\n"+more+"    disallow:\n      crawl: "+path+"\n")
}

func query(s *site.Site, path string) policy.Query {
	return policy.Query{Crawler: s.Policy.Crawler("ExampleBot"), Host: "Example.com:80", Path: path, Now: time.Now()}
}

// A crawler is held to the version that it has fetched, not to a newer one.
func TestViolation(t *testing.T) {
	t.Parallel()
	first, second := disallowing(t, "/first/", ""), disallowing(t, "/second/", "")
	l := newFetchLog(4096, 32)
	check := func(s *site.Site, path, version string, want bool) {
		t.Helper()
		v, _, got := l.violation(bot, s, query(s, path))
		if got != want || v.ETag != version {
			t.Errorf("%s: %v, by version %q", path, got, v.ETag)
		}
	}
	add := func(etag string, s *site.Site) {
		l.add(bot, "example.com", fetchedVersion{ETag: etag, Site: s, At: time.Now()})
	}
	check(first, "/first/", "", false)
	add("1", first)
	check(second, "/first/x", "1", true)
	check(second, "/second/x", "1", false)
	check(second, "/x/../first/", "1", true)
	check(second, "/robots.txt", "1", false)
	add("2", second)
	check(second, "/first/x", "2", false)
	check(second, "/second/x", "2", true)

	impostor := query(second, "/second/x")
	impostor.Identity = policy.Impostor
	if _, _, got := l.violation(bot, second, impostor); got {
		t.Error("a request of an impostor counts as the crawler's")
	}
	demanding := disallowing(t, "/third/", "    identity: verified\n")
	add("3", demanding)
	check(demanding, "/third/", "3", true)
	add("4", load(t, "version: 1\nrules:\n  - for: OtherBot\n    disallow:\n      crawl: /\n"))
	check(second, "/second/x", "4", false)
}

// What a crawler fetched from another server counts here, if it is newer than what it fetched
// here, and if the policy is known.
func TestFetchesElsewhere(t *testing.T) {
	t.Parallel()
	old, now := &source.Snapshot{Site: disallowing(t, "/old/", ""), SHA256: "old"}, testSnapshot(t, disallowing(t, "/new/", ""), "new")
	l := sharedOf(now).fetches
	crawler := bot.folded
	at := time.Now().Truncate(time.Second)
	read := func(policy string, after time.Duration) Reading {
		return Reading{Crawler: crawler, Host: "example.com", Version: policy, Policy: policy, At: at.Add(after).Unix()}
	}
	check := func(when, path string, want bool) {
		t.Helper()
		if _, _, got := l.violation(bot, now.Site, query(now.Site, path)); got != want {
			t.Errorf("%s, %s: %v", when, path, got)
		}
	}
	sites := KnownPolicies(now)
	if len(sites) != 1 || sites["new"] != now.Site {
		t.Errorf("%v", sites)
	}
	check("before", "/new/", false)
	SetElsewhere(now, []Reading{read("new", 0)}, sites)
	check("elsewhere", "/new/", true)
	SetElsewhere(now, []Reading{read("unknown", 0)}, sites)
	check("under a policy that is not known", "/new/", false)
	sites["old"] = old.Site
	SetElsewhere(now, []Reading{read("old", 5*time.Second), read("new", 0)}, sites)
	check("newest elsewhere", "/old/", true)
	check("newest elsewhere", "/new/", false)
	l.add(bot, "example.com", fetchedVersion{ETag: "new", Site: now.Site, At: at.Add(10 * time.Second), policy: "new"})
	check("newer here", "/new/", true)
	check("newer here", "/old/", false)
	if all := Readings(now); len(all) != 1 || all[0] != (Reading{Crawler: crawler, Host: "example.com", Version: "new", Policy: "new", At: at.Unix() + 10}) {
		t.Errorf("%+v: what was fetched elsewhere is not passed on", all)
	}
	var many []Reading
	for i := range 3 * maxFetchers {
		r := read("new", 0)
		r.Host = fmt.Sprint("h", i)
		many = append(many, r)
	}
	SetElsewhere(now, many, sites)
	if n := len(*l.elsewhere.Load()); n > maxFetchers {
		t.Errorf("%d fetches are stored", n)
	}
	SetElsewhere(now, nil, sites)
	if l.elsewhere.Load() != nil {
		t.Error("what is gone stays")
	}
}

// testSnapshot is a version of a policy.
func testSnapshot(t *testing.T, s *site.Site, sum string) *source.Snapshot {
	t.Helper()
	v, err := source.Compile("site.yaml", []byte("version: 1\nrules:\n  - for: everyone\n    disallow: {crawl: /new/}\n"))
	if err != nil {
		t.Fatal(err)
	}
	v.Site, v.SHA256 = s, sum
	return v
}

// A crawler that its robots.txt leaves out violates nothing where the server blocks it, and
// is held to what the file says to everyone.
func TestNoViolationOfAFileThatNamesOthers(t *testing.T) {
	t.Parallel()
	s := load(t, "version: 1\nrules:\n  - for: everyone\n    disallow: {crawl: /admin/}\n  - for: category:seo\n    disallow: {crawl: /}\n    enforce: block\n")
	for _, c := range []struct {
		token, path string
		short, want bool
	}{
		{"AgencyAnalyticsBot", "/", true, false},
		{"AgencyAnalyticsBot", "/", false, true},
		{"AgencyAnalyticsBot", "/admin/", true, true},
		{"AhrefsBot", "/", true, true},
	} {
		l, crawler := newFetchLog(4, 4), newFetchingCrawler(c.token)
		l.add(crawler, "example.com", fetchedVersion{Site: s, At: time.Now(), Short: c.short})
		q := policy.Query{Crawler: s.Policy.Crawler(c.token), Host: "example.com", Path: c.path, Now: time.Now()}
		if _, _, got := l.violation(crawler, s, q); got != c.want {
			t.Errorf("%s at %s, short %v: a violation %v", c.token, c.path, c.short, got)
		}
	}
}

// Made-up hosts and policies that come and go take bounded memory.
func TestFetchLogIsBounded(t *testing.T) {
	t.Parallel()
	s := disallowing(t, "/", "")
	const maxFetchers, maxPolicies = 4096, 32
	l := newFetchLog(maxFetchers, maxPolicies)
	for i := range 3 * maxFetchers {
		l.add(bot, fmt.Sprint("h", i), fetchedVersion{Site: s})
		if n := len(l.recent) + len(l.earlier); n > maxFetchers {
			t.Fatalf("%d fetches are remembered", n)
		}
	}
	last := fmt.Sprint("h", 3*maxFetchers-1)
	if _, ok := l.last(bot, last); !ok {
		t.Error("the last fetch is forgotten")
	}
	long := strings.Repeat("a", maxHostname+1)
	l.add(bot, long, fetchedVersion{Site: s})
	if _, ok := l.last(bot, long); ok {
		t.Error("a name that is too long for a host is remembered")
	}
	for i := range 2 * maxPolicies {
		l.add(bot, "p", fetchedVersion{Site: new(site.Site), ETag: fmt.Sprint(i)})
		if len(l.policies) > maxPolicies {
			t.Fatalf("%d policies are held", len(l.policies))
		}
	}
	if _, ok := l.last(bot, last); ok {
		t.Error("a version of a policy that is gone is remembered")
	}
}
