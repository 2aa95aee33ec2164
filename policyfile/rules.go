// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// ruleReader is a rule while it is read.
type ruleReader struct {
	rule      *policy.Rule
	source    *ruleSource
	seen      map[said]int // what the rule's statements speak of, by their places
	reference policy.Pos
	requests  policy.Pos
}

var ruleFields = fields[*ruleReader]{
	{"name", "what explain, logs and comments call the rule", false, textShape("a short name", ""), readName},
	{"for", `who the rule is for: everyone, the name of a crawler, category:KIND, operator:NAME or purpose:NAME, or a list of them`, true, oneOrMore(audienceShape), readFor},
	{"hosts", "the hosts that the rule is for, such as www.example.com or *.example.com; without it the rule is for all", false, oneOrMore(textShape("a host name", `^[^/@]+$`)), readHosts},
	{"identity", "how sure the server must be who is asking before the rule speaks to them; robots.txt ignores it", false, choiceShape("claimed", "not-impostor", "verified"), readIdentity},
	{"usage-purposes", "the purposes that the crawler must name for the rule to speak to it (ACAP 1.0)", false, oneOrMore(textShape("a name or an address", "")), readPurposes},
	{"allow", "what is allowed: usages with their paths", false, statementsShape(true), readAllow},
	{"disallow", "what is disallowed: usages with their paths", false, statementsShape(false), readDisallow},
	{"app-directives", "directives for applications, as those document them", false, directivesShape(appFields), readAppDirectives},
	{"robots-tag", "rules of search engines that no usage expresses, such as max-image-preview:large", false, directivesShape(tagFields), readRobotsTag},
	{"crawl-delay", "seconds between two requests of the crawler", false, shape{"type": "number", "exclusiveMinimum": 0, "maximum": maxDelay}, readCrawlDelay},
	{"enforce", "what the server does about requests that this rule disallows; the default is enforcement", false, modeShape, readEnforce},
	{"intended", "true says that the rule means to shut search engines or link previews out", false, shape{"type": "boolean"}, readIntended},
	{"requests", "what the crawler is asked to do as soon as possible (ACAP 1.0, which calls it not ready); published with action-requests: on", false, mapShape(requestFields), readRequests},
	{"permissions-reference", "where the crawler finds more permissions (ACAP 1.0); such a rule says nothing else", false, textShape("a path or an address", `^(/|https?://)`), readReference},
}

var requestFields = fields[*ruleReader]{
	{policy.TakeDown, "what to delete all copies and index entries of", false, oneOrMore(resourceShape), readRequest(policy.TakeDown)},
	{policy.ReCrawl, "what to fetch again", false, oneOrMore(resourceShape), readRequest(policy.ReCrawl)},
}

var resourceShape = textShape("the path of one page or file, without *", `^/`)

// readRules reads the list of rules.
func readRules(p *parser, _, n *yaml.Node, _ struct{}) {
	if n.Kind != yaml.SequenceNode {
		if !p.glued(n) {
			p.report(posOf(n), "wrong-kind", "", `rules is a list, and this is %s; start each rule with "- "`, kindOf(n))
		}
		return
	}
	p.spec.Rules = make([]policy.Rule, 0, len(n.Content))
	p.sources = make([]ruleSource, 0, len(n.Content))
	p.eachItem(n, "rules", func(n *yaml.Node) {
		p.spec.Rules = append(p.spec.Rules, policy.Rule{Pos: posOf(n)})
		p.sources = append(p.sources, ruleSource{})
		last := len(p.spec.Rules) - 1
		r := &ruleReader{rule: &p.spec.Rules[last], source: &p.sources[last], seen: map[said]int{}}
		readMap(p, n, "a rule", ruleFields, r)
		slices.SortStableFunc(r.rule.Statements, func(a, b policy.Statement) int {
			return cmp.Or(a.Pos.Line-b.Pos.Line, a.Pos.Column-b.Pos.Column)
		})
		if r.rule.PermissionsReference != "" && r.source.said > 0 {
			p.report(r.reference, "reference-not-alone", "", "a rule with permissions-reference has only for, hosts and name beside it (ACAP 1.0 section 2.3); put the rest into a rule of its own")
		}
		if len(r.rule.Requests) > 0 && len(r.rule.UsagePurposes) > 0 {
			p.report(r.requests, "bad-value", "", "a rule with usage-purposes has no requests (ACAP 1.0 section 2.3.3); put them into a rule of their own")
		}
	})
}

func readName(p *parser, _, n *yaml.Node, r *ruleReader) {
	if text, ok := p.text(n, "name"); ok {
		if utf8.RuneCountInString(text) > maxName {
			p.report(posOf(n), "bad-value", "", "the name of a rule has up to %d characters; put longer remarks into a comment", maxName)
			return
		}
		r.rule.Name = text
	}
}

const maxName = 100

func readHosts(p *parser, _, n *yaml.Node, r *ruleReader) {
	p.texts(n, "hosts", func(n *yaml.Node, text string) {
		if text == "*" {
			p.report(posOf(n), "bad-host", "", "a rule for every host names no hosts; delete this line")
			return
		}
		host, err := policy.ParseHost(text)
		if err != nil {
			near := ""
			if _, rest, ok := strings.Cut(text, "://"); ok {
				near, _, _ = strings.Cut(rest, "/")
			}
			p.report(posOf(n), "bad-host", near, "%s: %s", quote(text), err)
			return
		}
		r.rule.Hosts = append(r.rule.Hosts, host)
	})
}

func readIdentity(p *parser, _, n *yaml.Node, r *ruleReader) {
	r.source.said++
	if word, ok := p.choice(n, "identity", "claimed", "not-impostor", "verified"); ok {
		r.rule.Identity, _ = policy.ParseDemand(word)
	}
}

func readPurposes(p *parser, _, n *yaml.Node, r *ruleReader) {
	r.source.said++
	p.texts(n, "usage-purposes", func(n *yaml.Node, text string) {
		if strings.ContainsAny(text, " #\"'") {
			p.report(posOf(n), "bad-value", "", "a usage purpose is a name or an address without spaces, quotes and #, and this is %s", quote(text))
			return
		}
		r.rule.UsagePurposes = append(r.rule.UsagePurposes, text)
	})
}

// maxDelay is the longest crawl-delay, a day: more is a misunderstanding of the
// unit.
const maxDelay = 86400

var decimal = regexp.MustCompile(`^[0-9]{1,6}(\.[0-9]{1,3})?$`)

func readCrawlDelay(p *parser, key, n *yaml.Node, r *ruleReader) {
	r.source.said++
	text, ok := p.text(n, "crawl-delay")
	if !ok {
		return
	}
	seconds, err := strconv.ParseFloat(text, 64)
	if !decimal.MatchString(text) || err != nil || seconds <= 0 || seconds > maxDelay {
		p.report(posOf(n), "bad-value", "", "crawl-delay is a number of seconds such as 2 or 0.5, above 0 and up to %d, and this is %s", maxDelay, quote(text))
		return
	}
	r.rule.CrawlDelay = time.Duration(seconds*1000+0.5) * time.Millisecond
	r.rule.CrawlDelayPos = posOf(n)
}

func readEnforce(p *parser, _, n *yaml.Node, r *ruleReader) {
	r.source.said++
	r.rule.Enforce = p.mode(n, "enforce")
	r.source.enforce = posOf(n)
}

func (p *parser) mode(n *yaml.Node, what string) policy.Mode {
	word, ok := p.choice(n, what, "off", "log", "block")
	if !ok {
		return policy.ModeUnset
	}
	mode, _ := policy.ParseMode(word)
	return mode
}

func readIntended(p *parser, _, n *yaml.Node, r *ruleReader) {
	r.source.said++
	r.rule.Intended = p.boolean(n, "intended")
}

func (p *parser) boolean(n *yaml.Node, what string) bool {
	word, _ := p.choice(n, what, "true", "false")
	return word == "true"
}

func readReference(p *parser, _, n *yaml.Node, r *ruleReader) {
	text, ok := p.text(n, "permissions-reference")
	if ok && p.address(n, "permissions-reference", text, true) {
		r.rule.PermissionsReference = text
		r.reference = posOf(n)
	}
}
