// SPDX-License-Identifier: Apache-2.0

package agreement

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/crawlertest"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/policytest"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// theirFile returns a random robots.txt of an upstream, with patterns of the given kind. All lines are valid, except
// that some patterns are not. The result "" means that the upstream has no robots.txt.
func theirFile(r *rand.Rand, kind policytest.PatternKind) string {
	if r.IntN(6) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString(pick(r, "", "# of the site\n", "License: https://www.example.com/theirs.xml\n"))
	tokens := append(slices.Clone(askedTokens), "*", "*", "*", "*")
	r.Shuffle(len(tokens), func(i, j int) { tokens[i], tokens[j] = tokens[j], tokens[i] })
	named := map[string]bool{}
	for range 1 + r.IntN(3) {
		first := true
		for range 1 + r.IntN(3) {
			token := tokens[0]
			tokens = tokens[1:]
			first = first && !named[token]
			named[token] = true
			b.WriteString("User-agent: " + token + "\n")
		}
		for range 1 + r.IntN(4) {
			b.WriteString(pick(r, "Allow: ", "Disallow: ", "Disallow: ") + theirPattern(r, kind) + "\n")
		}
		if first {
			b.WriteString(theirExtensions(r, kind))
		}
		b.WriteString("\n")
	}
	b.WriteString(pick(r, "", "Sitemap: https://www.example.com/theirs.xml\n", "Sitemap: https://cdn.example.com/news.xml\nSitemap: https://www.example.com/theirs.xml\n"))
	b.WriteString(pick(r, "", "ACAP-crawler: *\nACAP-disallow-index: /\n"))
	return b.String()
}

func pick(r *rand.Rand, from ...string) string { return from[r.IntN(len(from))] }

// theirPattern returns a random pattern. Sometimes it is a pattern that no policy file can contain.
func theirPattern(r *rand.Rand, kind policytest.PatternKind) string {
	if r.IntN(8) == 0 {
		return pick(r, "*", "/a**", "/***") + pick(r, "a", "b*", "", "**/b", "b$", "a**$")
	}
	return policytest.NewPattern(r, kind).String()
}

func theirExtensions(r *rand.Rand, kind policytest.PatternKind) string {
	text := pick(r, "", "", "Crawl-delay: 3\n", "Crawl-delay: 0.5\n", "Crawl-delay: soon\n")
	text += pick(r, "", "", "Content-Usage: train-ai=n\n", "Content-Usage: search=y, train-ai=n\nContent-Usage: /a search=n\n")
	text += pick(r, "", "", "Content-Signal: ai-train=no\n")
	return text + pick(r, "", "", "App-Directives: theirs;x=1\n", "App-Directives: theirs\nApp-Directives: "+strings.Trim(theirPattern(r, policytest.PlainPatterns), "*$")+" other;y\n")
}

// merged holds the lines that the upstream's robots.txt adds to the policy's robots.txt.
type merged struct {
	read                    *crawlertest.RobotsTxt // the site's own file, parsed according to RFC 9309
	preferences, directives bool                   // the policy itself has preferences or directives
	sitemaps                []string
}

// mergedOn returns what the upstream's robots.txt adds to the robots.txt of the policy p on a site. It returns nil if
// the site does not merge the two files, or if the upstream has no robots.txt.
func mergedOn(at *running, p *loaded) *merged {
	if !at.merges || p.theirs == "" {
		return nil
	}
	m := &merged{read: crawlertest.ReadRobotsTxt(p.theirs), sitemaps: sitemapsOf(p.theirs)}
	m.preferences = p.spec.Publish.ContentSignal != policy.Off && p.spec.Publish.ContentSignalUse != ""
	for i := range p.spec.Rules {
		rule := &p.spec.Rules[i]
		m.directives = m.directives || len(rule.AppDirectives) > 0
		for j := range rule.Statements {
			u := rule.Statements[j].Usage
			m.preferences = m.preferences || slices.Contains(preferences, u) || u == policy.Other
		}
	}
	return m
}

// obeyed returns the name of the group that a crawler obeys in the site's own robots.txt. It returns false if the
// crawler obeys no group.
func (x *exam) obeyed(token string) (string, bool) {
	info, _ := x.p.info(token)
	for _, t := range append([]string{token}, info.Follows...) {
		if _, named := x.theirs.read.Groups[strings.ToLower(t)]; named {
			return t, true
		}
	}
	return "*", !info.IgnoresStar
}

// theyAllow returns the decision of the site's own robots.txt, which applies if the policy does not state anything.
func (x *exam) theyAllow(token, path string) bool {
	if x.theirs == nil {
		return true
	}
	name, obeys := x.obeyed(token)
	if !obeys {
		return true
	}
	allowed := x.theirs.read.Allowed(name, path)
	if !allowed {
		x.count("robots.txt: the upstream disallows where the policy is silent")
	}
	return allowed
}

// theirLine returns the value of a line such as Crawl-delay in the site's own robots.txt, or "" if there is none. key
// is the name of the line in lower case.
func (x *exam) theirLine(key, token, path string) string {
	if x.theirs == nil {
		return ""
	}
	name, obeys := x.obeyed(token)
	if !obeys {
		return ""
	}
	value, _ := x.theirs.read.Extension(key, name, path)
	if value != "" {
		x.count("robots.txt: lines of the upstream beside Allow and Disallow")
	}
	return value
}

// theyRefuse reports whether preferences in the site's own robots.txt disallow a usage on all paths. These preferences
// apply in addition to the preferences in the policy. key is the name of the line with the preferences. The parameter
// no is the text that disallows the usage, such as "train-ai=n".
func (x *exam) theyRefuse(key, token, no string) bool {
	if x.theirs == nil || !x.theirs.preferences {
		return false
	}
	refused := slices.Contains(strings.Split(x.theirLine(key, token, "/zz-nothing-else"), ", "), no)
	if refused {
		x.count("robots.txt: the upstream disallows a preference beside those of the policy")
	}
	return refused
}

func sitemapsOf(body string) (found []string) {
	for line := range strings.Lines(body) {
		if s, ok := strings.CutPrefix(line, "Sitemap: "); ok && !slices.Contains(found, strings.TrimSpace(s)) {
			found = append(found, strings.TrimSpace(s))
		}
	}
	slices.Sort(found)
	return found
}

// mayFind reports whether at least one crawler may crawl and index at least one path of the host. It tries one example
// path for each pattern of the policy, and a path that only patterns for all paths match.
func (x *exam) mayFind(host string) bool {
	return cached(x.p, "finds "+host, func() bool {
		paths := []string{"/zz-nothing-else"}
		for _, r := range x.p.spec.Rules {
			for _, s := range r.Statements {
				paths = append(paths, crawlertest.NormalPath(s.Pattern.Example()))
			}
		}
		for _, token := range append([]string{"unheard-of"}, policytest.Tokens...) {
			for _, path := range paths {
				may := func(u policy.Usage) bool {
					return x.p.naive(policytest.Question{Token: token, Identity: policy.Verified, Host: host, Path: path, Usage: u}).Verdict != policy.Disallowed
				}
				if may(policy.Crawl) && may(policy.Index) {
					return true
				}
			}
		}
		return false
	})
}

// wholeFile compares the lines of robots.txt that are outside all groups with the policy. These lines are the sitemaps
// and the license. RSL puts the license before all groups if it is for all crawlers.
func (x *exam) wholeFile(f *robotsFile, q question) {
	var want []string
	found := sitemapsOf(f.body)
	own := x.p.spec.SitemapsOf(q.host)
	if x.mayFind(q.host) {
		x.count("robots.txt: sitemaps of a host where pages can be found")
	} else if !slices.ContainsFunc(own, func(s string) bool {
		return slices.ContainsFunc(found, func(f string) bool { return strings.HasSuffix(f, s) })
	}) {
		own = nil
		x.count("robots.txt: no sitemaps on a closed host")
	}
	for _, s := range own {
		if strings.HasPrefix(s, "/") {
			s = "http://" + strings.ToLower(q.host) + s
		}
		want = append(want, s)
	}
	if x.theirs != nil {
		want = append(want, x.theirs.sitemaps...)
	}
	slices.Sort(want)
	same(x, "robots.txt: Sitemap", q, fmt.Sprint(found), fmt.Sprint(slices.Compact(want)))
	var licenses []string
	groups := false
	for line := range strings.Lines(f.body) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch {
		case strings.EqualFold(key, "User-agent"):
			groups = true
		case strings.EqualFold(key, "License") && groups:
			licenses = append(licenses, "of one group: "+value)
		case strings.EqualFold(key, "License"):
			licenses = append(licenses, value)
			x.count("robots.txt: a license")
		}
	}
	same(x, "robots.txt: License", q, strings.Join(licenses, " "), x.licenseLine(q.host))
	if published := strings.Contains(f.body, "ACAP-crawler:"); x.p.spec.Publish.ACAP != policy.Auto || published {
		same(x, "robots.txt: ACAP is published", q, published, x.publishesACAP())
	}
}

// publishesACAP reports whether ACAP records should be published, as the section "publish" of
// docs/reference/policy-file.md describes. With the value auto, ACAP records may be published only for some hosts.
func (x *exam) publishesACAP() bool {
	if x.p.spec.Publish.ACAP != policy.Auto {
		return x.p.spec.Publish.ACAP == policy.Full
	}
	return slices.ContainsFunc(x.p.spec.Rules, func(r policy.Rule) bool {
		return r.PermissionsReference != "" || len(r.UsagePurposes) > 0 || slices.ContainsFunc(r.Statements, func(s policy.Statement) bool {
			return s.Qualifiers != nil || s.Usage != policy.Crawl && !slices.Contains(preferences, s.Usage)
		})
	})
}
