// SPDX-License-Identifier: Apache-2.0

package agreement

import (
	"fmt"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/crawlertest"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
)

// purposes compares the User-Agent-Purpose lines of a robots.txt with the policy. It checks which of these lines exist,
// and whether their groups state the policy's decisions for crawlers with the purpose. If a crawler also has a group
// with its own name, it obeys only that group, whatever its purpose is.
func (x *exam) purposes(f *robotsFile, qs []question) {
	read := crawlertest.ReadWithPurposes(f.body)
	var lines []string
	for name := range read.Groups {
		if p, ok := strings.CutPrefix(name, crawlertest.PurposeGroup); ok {
			lines = append(lines, p)
		}
	}
	slices.Sort(lines)
	first := question{host: f.host}
	same(x, "robots.txt: User-Agent-Purpose", first, fmt.Sprint(lines), fmt.Sprint(x.published(f)))
	for i, q := range qs {
		if len(q.purposes) == 0 || asksTwice(qs, i) {
			continue
		}
		if q.token == "" {
			q.token = "ZetaBot"
		}
		x.purpose(f, read, q)
	}
}

// published returns the purposes for which robots.txt must have a User-Agent-Purpose line. These are the purposes that
// rules for this host name.
func (x *exam) published(f *robotsFile) (names []string) {
	if x.p.spec.Publish.UserAgentPurpose == policy.Off {
		return nil
	}
	for _, r := range x.p.spec.Rules {
		if len(r.Hosts) > 0 && !slices.ContainsFunc(r.Hosts, func(h policy.Host) bool { return speaksTo(h, f.host) }) {
			continue
		}
		for _, a := range r.For {
			if name := strings.ToLower(a.Name); a.Kind == policy.ForPurpose && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// purpose compares the results of a reader that supports purposes with the policy.
func (x *exam) purpose(f *robotsFile, read *crawlertest.RobotsTxt, q question) {
	const channel = "robots.txt: by a reader that knows purposes"
	as, reached := x.readsAs(f, q.token)
	if !reached || x.ofAnotherFamily(q.token, as) || x.leftOut(f, q) {
		return
	}
	file, names := read.ForPurposes(as, q.purposes)
	if len(names) > 1 && x.usagePurposes() {
		return // a rule for a purpose can have a different result if a client states several purposes
	}
	if names != nil {
		x.count("robots.txt: a purpose's group is read")
	}
	asked, path := x.asked(q, policy.Crawl), crawlertest.NormalPath(q.path)
	asked.Purposes = names
	a := x.p.naive(asked)
	want := a.Verdict != policy.Disallowed
	if a.Verdict == policy.Unstated {
		want = x.theyAllow(q.token, path)
	}
	if names == nil && x.controlsTraining(q.token) {
		want = x.mayCrawl(q)
	}
	got := file.Allowed(as, path)
	x.answer(channel, 1)
	switch {
	case got == want:
	case want && x.flattenedFor(f, q, names):
		x.except(channel, "not-flattenable")
	default:
		x.differ(channel, q, fmt.Sprintf("%v for %q", got, names), want)
	}
	if names != nil {
		x.extensionsOf(f, file, q, as, asked)
	}
}

// flattenedFor reports whether a diagnostic warns that robots.txt is stricter than the policy about the path of q. The
// diagnostic must name one of the purposes, or the crawler if there are no purposes.
func (x *exam) flattenedFor(f *robotsFile, q question, purposes []string) bool {
	if purposes == nil {
		return x.flattened(f, q)
	}
	return slices.ContainsFunc(f.losses, func(l robotsserve.Loss) bool {
		return slices.Contains(purposes, l.Purpose) && l.Paths.Match(crawlertest.NormalPath(q.path)) && x.lossAt(f, l.Pos)
	})
}

// lossAt reports whether a problem says that robots.txt cannot express the allow entry at a place in the policy file.
func (x *exam) lossAt(f *robotsFile, at policy.Pos) bool {
	return slices.ContainsFunc(f.problems, func(p policy.Problem) bool {
		return (p.Code == "not-flattenable" || p.Code == "other-spelling") && (p.Pos == at || sumsUp(p.Message)) && (x.theirs != nil || x.linted(p.Code, p.Pos))
	})
}

func (x *exam) usagePurposes() bool {
	return slices.ContainsFunc(x.p.spec.Rules, func(r policy.Rule) bool { return len(r.UsagePurposes) > 0 })
}

// speaksTo reports whether the host of a rule includes the host of a request.
func speaksTo(h policy.Host, host string) bool {
	suffix, wild := strings.CutPrefix(string(h), "*")
	host = policy.NormalizeHost(host)
	return wild && strings.HasSuffix(host, suffix) || !wild && string(h) == host
}
