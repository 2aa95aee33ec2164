// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// visit is a scene that a certain crawler plays.
type visit struct {
	scene
	by     *crawler
	token  string // the product token that the crawler has in the policy
	policy *policy.Policy
	spec   *policy.Spec
	site   served
}

// visits prepares a visit of the crawler c for each scene, and runs one site for each visit. The function stop stops
// these sites.
func visits(t *testing.T, c *crawler, scenes []scene) (all []*visit, stop func()) {
	t.Helper()
	var settings []setting
	for _, s := range scenes {
		v, text := &visit{scene: s, by: c, token: s.agent}, readExample(t, s.policy)
		switch {
		case c.onlyAs != "" && s.agent != "":
			text, v.token = inPlaceOf(t, text, s.agent, c.onlyAs), c.onlyAs
		case c.onlyAs != "":
			v.token = c.onlyAs
		case s.agent == "":
			v.token = unlisted
		}
		f := loadPolicy(t, s.policy, text)
		v.policy, v.spec = f.Policy, f.Spec
		all, settings = append(all, v), append(settings, setting{text, s.block})
	}
	sites, stop := serve(t, settings)
	for i, v := range all {
		v.site = sites[i]
	}
	return all, stop
}

// job returns the task of the crawler in this scene.
func (v *visit) job() job {
	j := job{}
	switch {
	case v.by.onlyAs != "": // the crawler sends its own User-Agent
	case v.by.browserLike:
		j.Agent = "Mozilla/5.0 (compatible; " + v.token + "/1.2; +https://www.example.org/about)"
	default:
		j.Agent = v.token + "/1.2"
	}
	base := "http://" + v.site.addr
	if v.host != "" && v.by.proxy {
		j.Proxy, base = base, "http://"+v.host
	} else if v.host != "" {
		base = v.site.named(v.host)
	}
	for _, path := range v.starts() {
		j.URLs = append(j.URLs, base+path)
	}
	return j
}

func (v *visit) decide(path string, u policy.Usage) policy.Decision {
	return decide(v.policy, v.token, v.asked(), path, u)
}

// asked returns the host that the crawler's requests name.
func (v *visit) asked() string {
	if v.host == "" {
		return v.site.addr
	}
	return v.host
}

// status returns the expected status of the answer to a request.
func (v *visit) status(path string) int {
	d := v.decide(path, policy.Crawl)
	if path == "/robots.txt" || d.Verdict != policy.Disallowed || v.policy.CrawlerInfo(v.policy.Crawler(v.token)).Token == "" || v.policy.Mode(d) != policy.ModeBlock {
		return 200
	}
	if s := v.spec.Enforcement.Status; s != 0 {
		return s
	}
	return 403
}

// reads reports whether the crawler treats a path as allowed. If this differs from the policy, why is the reason.
func (v *visit) reads(path string) (allowed bool, why string) {
	d := v.decide(path, policy.Crawl)
	pattern := ""
	if d.Statement != nil {
		pattern = d.Statement.Pattern.String()
	}
	pathname, _, query := strings.Cut(path, "?")
	allows := func(path string) bool { return v.decide(path, policy.Crawl).Verdict != policy.Disallowed }
	switch allowed = d.Verdict != policy.Disallowed; {
	case !allowed && v.by.noWildcards && strings.ContainsAny(pattern, "*$"):
		return true, "knows no wildcards"
	case !allowed && v.by.noQuery && query && allows(pathname):
		return true, "compares without the query"
	case allowed && v.by.noAllow && pattern != "":
		return false, "knows no Allow"
	case allowed && v.by.cutsMark && !query && !allows(path+"?"):
		return false, "leaves a ? at the end out"
	}
	return allowed, ""
}

// walk returns two sets of paths for a crawler that obeys the policy. The first set (must) contains the paths that the
// crawler has to request. The second set (may) also contains the paths that the crawler can request because of its
// peculiarities (see docs/contributing/agreement.md).
func (v *visit) walk(links map[string][]string) (must, may map[string]bool) {
	return v.reach(links, true), v.reach(links, false)
}

func (v *visit) reach(links map[string][]string, must bool) map[string]bool {
	queue := v.starts()
	first := len(queue)
	if v.by.sitemaps {
		for _, s := range v.spec.SitemapsOf("") {
			if strings.HasPrefix(s, "/") {
				queue = append(queue, s)
			}
		}
	}
	asks, seen := map[string]bool{}, map[string]bool{}
	for i := 0; i < len(queue); i++ {
		path := queue[i]
		if seen[path] {
			continue
		}
		seen[path] = true
		allowed := v.decide(path, policy.Crawl).Verdict != policy.Disallowed
		own, _ := v.reads(path)
		own = own || v.by.startsAnyway && i < first
		if must && !(allowed && own) || !allowed && !own {
			continue
		}
		asks[path] = true
		switch {
		case v.status(path) != 200 || v.by.nofollow && v.says(path, policy.Follow):
		case must && v.by.noindexToo && v.says(path, policy.Index):
		default:
			queue = append(queue, links[path]...)
		}
	}
	return asks
}

func (v *visit) starts() []string { return append([]string{"/"}, v.seeds...) }

// says reports whether the policy disallows a usage of a page. If so, the page contains a rule against this usage.
func (v *visit) says(path string, u policy.Usage) bool {
	return v.decide(path, u).Verdict == policy.Disallowed
}

// Every crawler first requests robots.txt. It then requests all allowed pages that allowed pages link to, and no other
// pages. Without ROBOTSPOLICY_LONG, each crawler is tested with every third policy and host.
func TestCrawlersObey(t *testing.T) {
	testkit.Slow(t)
	links := linksOf(t)
	for i := range crawlers {
		c := &crawlers[i]
		t.Run(c.name, func(t *testing.T) {
			find(t, c)
			all, stop := visits(t, c, scenesFor(i))
			var jobs []job
			for _, v := range all {
				jobs = append(jobs, v.job())
			}
			c.crawl(t, jobs)
			stop()
			requests, peculiar := 0, map[string]int{}
			for _, v := range all {
				requests += v.check(t, links, peculiar)
			}
			t.Logf("%d crawls, %d requests; peculiar: %v", len(all), requests, peculiar)
		})
	}
}

// check compares the log with the expected requests, counts the peculiarities, and returns the number of requests.
func (v *visit) check(t *testing.T, links map[string][]string, peculiar map[string]int) int {
	t.Helper()
	must, may := v.walk(links)
	log := v.site.read(t)
	asked, robots := map[string]bool{}, false
	for i, e := range log {
		if e.status != v.status(e.path) {
			t.Errorf("%s: %s was answered with %d, not %d", v, e.path, e.status, v.status(e.path))
		}
		if e.path == "/robots.txt" {
			robots = true
			continue
		}
		asked[e.path] = true
		if !robots && !(v.by.startsAnyway && i < len(v.starts())) {
			t.Errorf("%s: %s was requested before robots.txt", v, e.path)
		}
		if !may[e.path] {
			t.Errorf("%s: %s was requested, but it is disallowed, or no allowed page links to it: %+v", v, e.path, v.decide(e.path, policy.Crawl))
		}
	}
	if !robots && !(v.by.startsAnyway && len(asked) <= len(v.starts())) {
		t.Errorf("%s: robots.txt was not requested", v)
	}
	for _, path := range slices.Sorted(maps.Keys(must)) {
		if !asked[path] {
			t.Errorf("%s: %s was not requested, although it is allowed: %+v", v, path, v.decide(path, policy.Crawl))
		}
	}
	v.count(may, asked, peculiar)
	check := func(paths []string, want bool) {
		for _, path := range paths {
			if asked[path] != want && must[path] == may[path] {
				t.Errorf("%s: %s: requested: %v, want %v (by hand)", v, path, asked[path], want)
			}
		}
	}
	check(v.asks, true)
	check(v.shuns, false)
	check(v.behind, !v.by.nofollow)
	return len(log)
}

// count counts, by reason, the paths where the crawler does not do what the policy says, and adds the counts to
// peculiar. may is the set of paths that the crawler can request, and asked is the set of paths that it has requested.
func (v *visit) count(may, asked map[string]bool, peculiar map[string]int) {
	for path := range may {
		allowed := v.decide(path, policy.Crawl).Verdict != policy.Disallowed
		if asked[path] == allowed {
			continue
		}
		_, why := v.reads(path)
		switch {
		case why != "":
		case asked[path]:
			why = "asks for the first page unasked"
		case v.by.noindexToo:
			why = "takes noindex for nofollow"
		default:
			why = "does not come by"
		}
		peculiar[why]++
	}
}

// For an unlisted crawler, each of the six policies allows some pages of the example site, and disallows others.
// Otherwise a crawler could pass its test by requesting all pages, or none.
func TestPoliciesSpeakOfTheSite(t *testing.T) {
	links := linksOf(t)
	found := map[string][2]int{}
	for _, s := range scenes {
		if s.agent != "" {
			continue
		}
		p := loadPolicy(t, s.policy, readExample(t, s.policy)).Policy
		count := found[s.policy]
		for path := range links {
			if decide(p, unlisted, s.host, path, policy.Crawl).Verdict == policy.Disallowed {
				count[1]++
			} else {
				count[0]++
			}
		}
		found[s.policy] = count
	}
	for name, count := range found {
		t.Logf("%s: allows %d of the site and disallows %d", name, count[0], count[1])
		if count[0] == 0 || count[1] == 0 {
			t.Errorf("%s: allows %d of the site and disallows %d", name, count[0], count[1])
		}
	}
}
