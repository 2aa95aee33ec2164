// SPDX-License-Identifier: Apache-2.0

package site

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

const bot = "examplebot"

func loaded(t *testing.T, text string) *Site {
	t.Helper()
	s, ds := Load("policy.yaml", []byte(text))
	if s == nil {
		t.Fatal(ds.Text())
	}
	return s
}

func disallowing(t *testing.T, path, more string) *Site {
	return loaded(t, "version: 1\nrules:\n  - for: ExampleBot\n"+more+"    disallow:\n      crawl: "+path+"\n")
}

func query(s *Site, path string) policy.Query {
	return policy.Query{Crawler: s.Policy.Crawler("ExampleBot"), Host: "Example.com:80", Path: path, Now: time.Now()}
}

func newReadings(readers, sites int) *Readings {
	return &Readings{maxReaders: readers, maxSites: sites}
}

// violates reports whether a request is a violation of the robots.txt that the crawler has fetched.
func violates(l *Readings, c string, s *Site, q policy.Query) (Reading, bool) {
	r, t := l.Last(c, q.Host, q.Identity == policy.Verified), NewTarget(q.Host, q.Path)
	_, found := r.Violation(c, s, &t, q)
	return r, found
}

// A request is compared with the version that the crawler has fetched, not with a newer one.
func TestViolation(t *testing.T) {
	t.Parallel()
	first, second := disallowing(t, "/first/", ""), disallowing(t, "/second/", "")
	l := newReadings(4096, 32)
	check := func(s *Site, path, version string, want bool) {
		t.Helper()
		v, got := violates(l, bot, s, query(s, path))
		if got != want || v.Version != version {
			t.Errorf("%s: %v, by version %q", path, got, v.Version)
		}
	}
	add := func(etag string, s *Site) {
		l.Add(bot, "example.com", Reading{Version: etag, Site: s, At: time.Now().Unix()})
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
	if _, got := violates(l, bot, second, impostor); got {
		t.Error("a request of an impostor counts as the crawler's")
	}
	demanding := disallowing(t, "/third/", "    identity: verified\n")
	add("3", demanding)
	check(demanding, "/third/", "3", true)
	add("4", loaded(t, "version: 1\nrules:\n  - for: OtherBot\n    disallow:\n      crawl: /\n"))
	check(second, "/second/x", "4", false)
}

// A crawler may have fetched robots.txt from another server of the fleet. This server uses that reading if it is newer
// than the crawler's last reading here, and if this server knows the policy of that robots.txt.
func TestFetchesElsewhere(t *testing.T) {
	t.Parallel()
	old, now := disallowing(t, "/old/", ""), disallowing(t, "/new/", "")
	l := &NewMemory(false).Readings
	crawler := bot
	at := time.Now().Truncate(time.Second)
	read := func(policy string, after time.Duration) Reading {
		return Reading{Crawler: crawler, Host: "example.com", Version: policy, Policy: policy, At: at.Add(after).Unix()}
	}
	check := func(when, path string, want bool) {
		t.Helper()
		if _, got := violates(l, bot, now, query(now, path)); got != want {
			t.Errorf("%s, %s: %v", when, path, got)
		}
	}
	sites := map[string]*Site{"new": now}
	check("before", "/new/", false)
	l.SetElsewhere([]Reading{read("new", 0)}, sites)
	check("elsewhere", "/new/", true)
	l.SetElsewhere([]Reading{read("unknown", 0)}, sites)
	check("under a policy that is not known", "/new/", false)
	sites["old"] = old
	l.SetElsewhere([]Reading{read("old", 5*time.Second), read("new", 0)}, sites)
	check("newest elsewhere", "/old/", true)
	check("newest elsewhere", "/new/", false)
	l.Add(bot, "example.com", Reading{Version: "new", Site: now, At: at.Unix() + 10, Policy: "new"})
	check("newer here", "/new/", true)
	check("newer here", "/old/", false)
	if all := l.All(); len(all) != 1 || all[0] != (Reading{Crawler: crawler, Host: "example.com", Version: "new", Policy: "new", At: at.Unix() + 10, Site: now}) {
		t.Errorf("%+v: what was fetched elsewhere is not passed on", all)
	}
	if known := l.Sites(); len(known) != 1 || known["new"] != now {
		t.Errorf("%v", known)
	}
	var many []Reading
	for i := range 3 * maxReaders {
		r := read("new", 0)
		r.Host = fmt.Sprint("h", i)
		many = append(many, r)
	}
	l.SetElsewhere(many, sites)
	if n := len(*l.elsewhere.Load()); n > maxReaders {
		t.Errorf("%d fetches are stored", n)
	}
	l.SetElsewhere(nil, sites)
	if l.elsewhere.Load() != nil {
		t.Error("what is gone stays")
	}
}

// robots.txt leaves out rare crawlers that the server blocks. Such a crawler only violates robots.txt if it requests a
// path that the policy disallows for everyone.
func TestNoViolationOfAFileThatNamesOthers(t *testing.T) {
	t.Parallel()
	s := loaded(t, "version: 1\nrules:\n  - for: everyone\n    disallow: {crawl: /admin/}\n  - for: category:seo\n    disallow: {crawl: /}\n    enforce: block\n")
	for _, c := range []struct {
		token, path string
		want        bool
	}{
		{"AgencyAnalyticsBot", "/", false},
		{"AgencyAnalyticsBot", "/admin/", true},
		{"AhrefsBot", "/", true},
	} {
		l, crawler := newReadings(4, 4), strings.ToLower(c.token)
		l.Add(crawler, "example.com", Reading{Site: s, At: time.Now().Unix()})
		q := policy.Query{Crawler: s.Policy.Crawler(c.token), Host: "example.com", Path: c.path, Now: time.Now()}
		if _, got := violates(l, crawler, s, q); got != c.want {
			t.Errorf("%s at %s: a violation %v", c.token, c.path, got)
		}
	}
}

// Readings of many hosts, and of many versions of a policy, must need only a limited amount of memory, because clients
// can invent hosts.
func TestFetchLogIsBounded(t *testing.T) {
	t.Parallel()
	s := disallowing(t, "/", "")
	const maxFetchers, maxPolicies = 4096, 32
	l := newReadings(maxFetchers, maxPolicies)
	for i := range 3 * maxFetchers {
		l.Add(bot, fmt.Sprint("h", i), Reading{Site: s})
		if n := len(l.recent) + len(l.earlier); n > maxFetchers {
			t.Fatalf("%d fetches are remembered", n)
		}
	}
	last := fmt.Sprint("h", 3*maxFetchers-1)
	if l.Last(bot, last, false).Site == nil {
		t.Error("the last fetch is forgotten")
	}
	long := strings.Repeat("a", maxHostname+1)
	l.Add(bot, long, Reading{Site: s})
	if l.Last(bot, long, false).Site != nil {
		t.Error("a name that is too long for a host is remembered")
	}
	for i := range 2 * maxPolicies {
		l.Add(bot, "p", Reading{Site: new(Site), Version: fmt.Sprint(i)})
		if len(l.sites) > maxPolicies {
			t.Fatalf("%d policies are held", len(l.sites))
		}
	}
	if l.Last(bot, last, false).Site != nil {
		t.Error("a version of a policy that is gone is remembered")
	}
}

// Requests of a verified crawler are compared with the version that the verified crawler has fetched, from this server
// or another one. Requests of unverified clients with its name are compared with the version that such clients have
// fetched.
func TestReadingsOfAnotherIdentity(t *testing.T) {
	t.Parallel()
	old, now := disallowing(t, "/old/", ""), disallowing(t, "/new/", "")
	l := newReadings(4096, 32)
	l.Add(bot, "example.com", Reading{Version: "1", Policy: "old", Site: old, At: 1, Verified: true})
	l.Add(bot, "example.com", Reading{Version: "2", Policy: "new", Site: now, At: 2})
	check := func(identity policy.Identity, version string) {
		t.Helper()
		q := query(now, "/new/")
		q.Identity = identity
		if r, got := violates(l, bot, now, q); r.Version != version || got != (version == "2") {
			t.Errorf("%v: version %q, a violation %v", identity, r.Version, got)
		}
	}
	check(policy.Verified, "1")
	check(policy.Unknown, "2")
	l.SetElsewhere([]Reading{{Crawler: bot, Host: "example.com", Version: "2", Policy: "new", At: 9}}, map[string]*Site{"new": now})
	check(policy.Verified, "1")
}
