// SPDX-License-Identifier: Apache-2.0

package policytest

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/crawlertest"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// Lost returns what a search engine loses on one page when the first policy is replaced by the second. The keys are
// kinds of loss (see effect.Loss), such as "snippet". The argument texts has a function for each policy, which returns
// the robots.txt of a host. Lost also compares the policies at the times in ends, when dates in the policies have
// passed.
func Lost(specs [2]*policy.Spec, texts [2]func(host string) string, q Question, ends ...time.Time) map[string]bool {
	lost := map[string]bool{}
	for i, at := range append([]time.Time{q.Now}, ends...) {
		q.Now = at
		before, after := left(specs[0], q, texts[0]), left(specs[1], q, texts[1])
		for word, n := range after {
			if was, limited := before[word]; limited && was <= n || word == "crawl" && before["crawl"] != after["crawl"] {
				continue
			}
			if word == "index" && i > 0 && !lost["index"] {
				word = "unavailable"
			}
			lost[word] = true
		}
		if lost["blocked"] {
			delete(lost, "crawl")
		}
	}
	return lost
}

// left returns how much of the page in q the search engine in q may still use. The keys are kinds of loss (see
// effect.Loss), such as "snippet", but only those that the policy restricts. The value 0 means that the search engine
// may not use anything. Other values are limits, such as the length of a snippet. text returns the robots.txt of a
// host.
func left(spec *policy.Spec, q Question, text func(host string) string) map[string]int64 {
	rest := map[string]int64{}
	lower := func(word string, n int64) {
		if was, ok := rest[word]; !ok || n < was {
			rest[word] = n
		}
	}
	if crawlertest.NormalPath(q.Path) == "/robots.txt" {
		return rest
	}
	decide := func(q Question, u policy.Usage) Answer {
		q.Usage = u
		return Decide(spec, q)
	}
	switch a := decide(q, policy.Crawl); {
	case a.Verdict != policy.Disallowed:
		if followsClosed(spec, q, text) {
			lower("crawl", 0)
		}
	case a.Mode == policy.ModeBlock:
		lower("blocked", 0)
		fallthrough
	default:
		lower("crawl", 0)
	}
	for word, u := range map[string]policy.Usage{"search": policy.Search, "train-ai": policy.TrainAI, "ai-use": policy.AIUse} {
		if spec.Publish.ContentUsage != policy.Off && decide(q, u).Verdict == policy.Disallowed {
			lower(word, 0)
		}
	}
	for _, asked := range []string{q.Token, ""} {
		for _, identity := range Identities {
			header := q
			header.Token, header.Identity = asked, identity
			for u, words := range shown {
				a := decide(header, u)
				if a.Verdict == policy.Disallowed {
					for _, word := range words {
						lower(word, 0)
					}
				} else if u == policy.PresentSnippet {
					for _, x := range a.Limits {
						if n := int64(x.MaxLength.N); x.MaxLength.Unit == policy.Words {
							lower("snippet", max(0, 2*n-1))
						} else if x.MaxLength.Unit != "" {
							lower("snippet", n)
						}
					}
				}
			}
			for _, e := range EngineRules(spec, header) {
				engineRule(e.Rule.String(), q.Now, lower)
			}
		}
	}
	if delay := CrawlDelay(spec, q); delay > 0 {
		lower("crawl-delay", -int64(delay))
	}
	if interval := limited(spec, q); interval > 0 {
		lower("limit", -int64(interval))
	}
	return rest
}

// shown lists, for each usage, the kinds of loss (see effect.Loss) that disallowing the usage causes.
var shown = map[policy.Usage][]string{
	policy.Index: {"index"}, policy.Follow: {"follow"}, policy.Preserve: {"copy"}, policy.PresentLink: {"link"}, policy.PresentSnippet: {"snippet"},
	policy.PresentThumbnail: {"preview", "video"}, policy.PresentCurrentCopy: {"copy"}, policy.PresentOldCopy: {"copy"}, policy.PresentOldSnippet: {"copy"},
	policy.PresentOldThumbnail: {"copy"},
}

// engineRule applies one robots control rule as search engines document it. It calls lower for each kind of loss that
// the rule causes.
func engineRule(text string, now time.Time, lower func(string, int64)) {
	name, value, _ := strings.Cut(text, ":")
	value = strings.TrimSpace(value)
	n, _ := strconv.ParseInt(value, 10, 64)
	switch name {
	case "noindex":
		lower("index", 0)
	case "none":
		lower("index", 0)
		lower("follow", 0)
	case "nofollow":
		lower("follow", 0)
	case "nosnippet":
		lower("snippet", 0)
	case "noarchive":
		lower("copy", 0)
	case "nocache":
		lower("copy", 1)
	case "noimageindex":
		lower("image", 0)
	case "max-snippet":
		if n >= 0 {
			lower("snippet", n)
		}
	case "max-video-preview":
		if n >= 0 {
			lower("video", n)
		}
	case "max-image-preview":
		if i := slices.Index([]string{"none", "standard"}, value); i >= 0 {
			lower("preview", int64(i))
		}
	case "unavailable_after":
		if end, err := time.Parse("2 Jan 2006 15:04:05 GMT", value); err == nil && now.After(end) {
			lower("index", 0)
		}
	}
}

// followsClosed reports whether robots.txt disallows a page for a crawler although the policy's rules do not, which the
// caller has checked. This can happen if the crawler obeys the group of another crawler (Follows), and the policy
// disallows the page to that crawler.
func followsClosed(spec *policy.Spec, q Question, text func(host string) string) bool {
	follows := crawlerOf(spec, q.Token).Follows
	closed := slices.ContainsFunc(follows, func(token string) bool {
		return Decide(spec, Question{Token: token, Identity: q.Identity, Host: q.Host, Path: q.Path, Now: q.Now, Usage: policy.Crawl}).Verdict == policy.Disallowed
	})
	if !closed {
		return false
	}
	file := crawlertest.ReadRobotsTxt(text(q.Host))
	for _, token := range append([]string{q.Token}, follows...) {
		if _, ok := file.Groups[strings.ToLower(token)]; ok {
			return !file.Allowed(token, crawlertest.NormalPath(q.Path))
		}
	}
	return !file.Allowed("*", crawlertest.NormalPath(q.Path))
}

// limited returns the time that a search engine must wait between requests, or 0 if there is no limit. It assumes that
// a policy has at most one rate limit.
func limited(spec *policy.Spec, q Question) time.Duration {
	for i := range spec.Rules {
		r := &spec.Rules[i]
		if r.Limit.IsZero() || r.Enforce == policy.ModeOff || r.Enforce == policy.ModeLog || !identityOK(r.Identity, q.Identity) || !purposeOK(r.UsagePurposes, q.Purposes) || hostRanks(r.Hosts, q.Host) == nil {
			continue
		}
		for _, a := range r.For {
			if _, ok := closeness(spec, a, q); ok {
				return r.Limit.Per / time.Duration(r.Limit.Requests)
			}
		}
	}
	return 0
}
