// SPDX-License-Identifier: Apache-2.0

package agreement

import (
	"fmt"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/crawlertest"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/policytest"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// signals are the names of the preferences in Content-Signal lines.
var signals = map[policy.Usage]string{policy.TrainAI: "ai-train", policy.AIUse: "ai-input", policy.Search: "search"}

// contentSignal compares the Content-Signal line of a crawler's group with the policy. The line is for the whole site.
// It has "no" for a usage if the policy disallows it on any path, and "yes" if the policy allows it on all paths.
func (x *exam) contentSignal(f *robotsFile, q question, as string) {
	const channel = "robots.txt: Content-Signal"
	line, others := f.read.Extension("content-signal", as, "/")
	if x.theirs != nil && !x.theirs.preferences {
		same(x, channel, q, line, x.theirLine("content-signal", q.token, "/"))
		return
	}
	same(x, channel, q, others <= 1, true)
	published := x.p.spec.Publish.ContentSignal != policy.Off
	var want []string
	for _, u := range preferences {
		said := x.siteWide(q.token, q.host, u)
		switch {
		case x.theyRefuse("content-signal", q.token, signals[u]+"=no"):
			want = append(want, signals[u]+"=no")
		case !published:
		case said[policy.Disallowed]:
			want = append(want, signals[u]+"=no")
			x.count("robots.txt: a Content-Signal that says no")
		case said[policy.Allowed] && !said[policy.Unstated]:
			want = append(want, signals[u]+"=yes")
		}
	}
	if use := x.p.spec.Publish.ContentSignalUse; published && use != "" {
		want = append(want, "use="+use)
	}
	same(x, channel, q, membersOf(line), membersOf(strings.Join(want, ", ")))
}

// contentSignalHeader checks the Content-Signal header of a response. For each usage, it must have the policy's value
// or the value of the upstream's header, whichever is stricter.
func (x *exam) contentSignalHeader(q question, a answer, page *page) {
	const channel = "headers: Content-Signal"
	words := map[string]string{"yes": "y", "no": "n"}
	line, field := valuesOf(a.header["Content-Signal"]), strings.Join(page.header["Content-Signal"], ", ")
	theirs := valuesOf(page.header["Content-Signal"])
	for _, u := range preferences {
		want := x.preferred(q, u, x.p.spec.Publish.ContentSignal, field, words[theirs[signals[u]]])
		if want == "n" {
			x.count("headers: a Content-Signal that says no")
		}
		same(x, channel, q, u.String()+"="+words[line[signals[u]]], u.String()+"="+want)
	}
	uses := []string{"", "full", "reference", "immediate"}
	use := slices.Index(uses, theirs["use"])
	if x.p.spec.Publish.ContentSignal != policy.Off {
		use = max(use, slices.Index(uses, x.p.spec.Publish.ContentSignalUse))
	}
	same(x, channel, q, line["use"], uses[use])
}

// valuesOf returns the values of a Content-Signal field, keyed by name.
func valuesOf(lines []string) map[string]string {
	values := map[string]string{}
	for member := range strings.SplitSeq(strings.ToLower(strings.Join(lines, ",")), ",") {
		name, value, _ := strings.Cut(member, "=")
		values[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
	return values
}

// siteWide returns the policy's decisions about a usage that occur on the site. It asks about all paths that everywhere
// returns.
func (x *exam) siteWide(token, host string, u policy.Usage) map[policy.Verdict]bool {
	return cached(x.p, fmt.Sprint("wide ", token, " ", host, " ", u), func() map[policy.Verdict]bool {
		said := map[policy.Verdict]bool{}
		for _, path := range x.everywhere() {
			said[x.p.naive(policytest.Question{Token: token, Identity: policy.Verified, Host: host, Path: path, Usage: u}).Verdict] = true
		}
		return said
	})
}

// everywhere returns paths for finding out whether a preference applies to the whole site. It returns paths that match
// the patterns of rules about preferences, with different texts in place of "*". It also returns a path that only
// patterns for all paths match.
func (x *exam) everywhere() []string {
	return cached(x.p, "everywhere", func() []string {
		paths := []string{"/zz-nothing-else"}
		for _, r := range x.p.spec.Rules {
			for _, s := range r.Statements {
				if !s.Usage.IsRight() && s.Usage != policy.Other {
					continue
				}
				pattern, anchored := strings.CutSuffix(s.Pattern.String(), "$")
				for _, filled := range []string{"", "zz", "/z/"} {
					path := strings.ReplaceAll(pattern, "*", filled)
					paths = append(paths, path)
					if !anchored {
						paths = append(paths, path+"zz")
					}
				}
			}
		}
		for i, path := range paths {
			paths[i] = crawlertest.NormalPath(path)
		}
		return paths
	})
}
