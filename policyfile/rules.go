// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policyfile/lint"
)

type ruleReader struct {
	rule   *policy.Rule
	source *lint.Source
	seen   map[statementKey]int // indexes of the rule's statements, to find duplicates
}

var ruleFields = fields[*ruleReader]{
	textKey("name", "the name of the rule in the output of explain, in logs, and in comments of robots.txt", textShape("a short name", ""), (*parser).ruleName,
		func(r *ruleReader) *string { return &r.rule.Name }),
	key("for", `the crawlers that the rule applies to: everyone, everyone-else, the name of a crawler, category:NAME, operator:NAME, purpose:NAME or signed:HOST, or a list of them`,
		oneOrMore(audienceShape), readFor, func(w *printer, r *ruleReader) { w.names("for", texts(r.rule.For)) }).must(),
	key("hosts", "the hosts that the rule applies to, such as www.example.com or *.example.com; the default is all hosts",
		oneOrMore(textShape("a host name", `^[^/@]+$`)), readHosts,
		func(w *printer, r *ruleReader) { w.texts("hosts", plainTexts(r.rule.Hosts)) }),
	key("identity", "the identity that a client must have for the rule to apply; this key has no effect on robots.txt",
		choiceShape("any", "not-impostor", "verified"), readIdentity,
		func(w *printer, r *ruleReader) {
			w.plainIf(r.rule.Identity != policy.DemandAny, "identity", r.rule.Identity.String())
		}),
	key("usage-purposes", "the rule applies only to crawlers that name one of these purposes (ACAP 1.0)",
		oneOrMore(textShape("a purpose, or an address", "")), readPurposes,
		func(w *printer, r *ruleReader) { w.texts("usage-purposes", r.rule.UsagePurposes) }),
	key("allow", "the usages that the rule allows, each with its paths", statementsShape(true), readAllow, printStatements),
	key("disallow", "the usages that the rule disallows, each with its paths", statementsShape(false), readDisallow, nil),
	key("app-directives", "directives that applications read from robots.txt, in the syntax that each application documents",
		directivesShape(appFields), readAppDirectives, printAppDirectives),
	key("robots-tag", "values of robots meta tags that cannot be written as a usage, such as max-image-preview:large",
		directivesShape(tagFields), readRobotsTag, printRobotsTag),
	key("crawl-delay", "the number of seconds between two requests of the crawler; write none to remove the delay of a more general rule",
		shape{"anyOf": []any{shape{"const": "none"}, shape{"type": "number", "exclusiveMinimum": 0, "maximum": maxDelay}}},
		readCrawlDelay, printCrawlDelay),
	key("limit", "the number of requests that the crawler may make in each second, minute, hour or day, such as 60/m, and the number that may arrive at once. Write none to remove the limit of a more general rule",
		limitShape, readLimit, printLimit),
	key("enforce", "what the server does with requests that this rule disallows; the default is the file's enforcement setting",
		modeShape, readEnforce,
		func(w *printer, r *ruleReader) {
			w.plainIf(r.rule.Enforce != policy.ModeUnset, "enforce", r.rule.Enforce.String())
		}),
	key("intended", "the safety checks that this rule fails intentionally, such as [blocks-search]; write true if the rule fails only one check",
		shape{"anyOf": []any{shape{"type": "boolean"}, oneOrMore(choiceShape(lint.SafetyChecks()...))}}, readIntended, printIntended),
	subMap("requests", "requests to the crawler, such as to delete all copies of a page. They are published only with action-requests: on, because ACAP 1.0 says that they are not ready for use",
		requestFields, func(r *ruleReader) *ruleReader { return r }),
	textKey("permissions-reference", "the address of further ACAP records (ACAP 1.0); besides this key, the rule can only have the keys \"for\", \"hosts\" and \"name\"",
		textShape("a path or an address", `^(/|https?://)`), (*parser).addressOrPath,
		func(r *ruleReader) *string { return &r.rule.PermissionsReference }),
}

// besideReference lists the keys that cannot be combined with "permissions-reference".
var besideReference = slices.DeleteFunc(ruleFields.names(), func(key string) bool {
	return slices.Contains([]string{"name", "for", "hosts", "permissions-reference"}, key)
})

func readRules(p *parser, n *yaml.Node, _ *policy.Spec) {
	if n.Kind != yaml.SequenceNode {
		if !p.isJoined(n) {
			p.report(posOf(n), "wrong-type", "", `rules must be a list, not %s; start each rule with "- "`, kindOf(n))
		}
		return
	}
	p.spec.Rules = make([]policy.Rule, 0, len(n.Content))
	p.sources = make([]lint.Source, 0, len(n.Content))
	p.eachItem(n, "rules", func(n *yaml.Node) {
		p.spec.Rules = append(p.spec.Rules, policy.Rule{Pos: posOf(n)})
		p.sources = append(p.sources, lint.Source{})
		last := len(p.spec.Rules) - 1
		r := &ruleReader{rule: &p.spec.Rules[last], source: &p.sources[last], seen: map[statementKey]int{}}
		readMap(p, n, aRule, ruleFields, r)
		slices.SortStableFunc(r.rule.Statements, func(a, b policy.Statement) int {
			return cmp.Or(a.Pos.Line-b.Pos.Line, a.Pos.Column-b.Pos.Column)
		})
		p.checkOverSite(r.rule)
		if at := child(n, "permissions-reference"); at != nil && r.rule.PermissionsReference != "" &&
			slices.ContainsFunc(besideReference, func(key string) bool { return child(n, key) != nil }) {
			p.report(posOf(at), "reference-not-alone", "", "a rule with \"permissions-reference\" can only have the keys \"for\", \"hosts\" and \"name\" (ACAP 1.0 section 2.3); put the rest in another rule")
		}
		if at := child(n, "requests"); at != nil && len(r.rule.Requests) > 0 && len(r.rule.UsagePurposes) > 0 {
			p.report(posOf(at), "bad-value", "", "a rule with \"usage-purposes\" cannot have \"requests\" (ACAP 1.0 section 2.3.3); put the requests in another rule")
		}
	})
}

// checkOverSite checks entries with the key over-site, which remove a restriction that the site itself states in a
// page. It reports an error if the rule of such an entry is not for all clients. That is not possible, because all
// readers obey the restrictions that a page states for everyone.
func (p *parser) checkOverSite(r *policy.Rule) {
	i := slices.IndexFunc(r.Statements, func(s policy.Statement) bool { return s.OverSite })
	everyone := slices.ContainsFunc(r.For, func(a policy.Audience) bool { return a.Kind == policy.ForEveryone })
	if i < 0 || everyone && r.Identity == policy.DemandAny && len(r.UsagePurposes) == 0 {
		return
	}
	p.report(r.Statements[i].Pos, "bad-over-site", "", `over-site cannot remove the restrictions of a page for only some crawlers; write it in a rule with "for: everyone" and without identity and usage-purposes`)
}

func (p *parser) ruleName(n *yaml.Node, _, text string) bool {
	return utf8.RuneCountInString(text) <= maxName ||
		p.refuse(n, "bad-value", "", "the name of a rule can have up to %d characters; put longer remarks in a comment", maxName)
}

const maxName = 100

func readHosts(p *parser, n *yaml.Node, r *ruleReader) {
	p.texts(n, "hosts", func(n *yaml.Node, text string) {
		if text == "*" {
			p.report(posOf(n), "bad-host", "", "this line is unnecessary, because a rule without \"hosts\" applies to every host; delete it")
			return
		}
		host, err := policy.ParseHost(text)
		if err != nil {
			near := ""
			if _, rest, ok := strings.Cut(text, "://"); ok {
				near, _, _ = strings.Cut(rest, "/")
			} else if name, _, ok := strings.Cut(text, ":"); ok && strings.Count(text, ":") == 1 {
				near = name
			}
			p.report(posOf(n), "bad-host", near, "%s: %s", quote(text), err)
			return
		}
		r.rule.Hosts = append(r.rule.Hosts, host)
	})
}

func readIdentity(p *parser, n *yaml.Node, r *ruleReader) {
	word, _ := p.choice(n, "identity", "any", "not-impostor", "verified")
	r.rule.Identity, _ = policy.ParseDemand(word)
}

func readPurposes(p *parser, n *yaml.Node, r *ruleReader) {
	p.texts(n, "usage-purposes", func(n *yaml.Node, text string) {
		if !purposeWord.MatchString(text) && !purposeAddress.MatchString(text) {
			p.report(posOf(n), "bad-value", "", "invalid purpose %s: write a letter, then letters, digits, hyphens, underscores and dots, or write a web address; \"*\" stands for any characters", quote(text))
			return
		}
		r.rule.UsagePurposes = append(r.rule.UsagePurposes, text)
	})
}

// maxDelay is the maximum crawl-delay: a day in seconds. A larger number is probably in another unit.
const maxDelay = 86400

var decimal = regexp.MustCompile(`^[0-9]{1,6}(\.[0-9]{1,3})?$`)

func readCrawlDelay(p *parser, n *yaml.Node, r *ruleReader) {
	text, ok := p.text(n, "crawl-delay")
	if !ok {
		return
	}
	if r.rule.CrawlDelayPos = posOf(n); text == "none" {
		r.rule.NoCrawlDelay = true
		return
	}
	seconds, err := strconv.ParseFloat(text, 64)
	if !decimal.MatchString(text) || err != nil || seconds <= 0 || seconds > maxDelay {
		near := sameMeaning(text, []string{"none"})
		if number := strings.TrimRight(text, " second"); number != text && decimal.MatchString(number) {
			near = number
		}
		p.report(posOf(n), "bad-value", near, "invalid crawl-delay %s: must be a number of seconds above 0 and up to %d, such as 2 or 0.5, or the word none", quote(text), maxDelay)
		return
	}
	r.rule.CrawlDelay = time.Duration(seconds*1000+0.5) * time.Millisecond
}

func printCrawlDelay(w *printer, r *ruleReader) {
	switch {
	case r.rule.NoCrawlDelay:
		w.plain("crawl-delay", "none")
	case r.rule.CrawlDelay > 0:
		delay := min(max(r.rule.CrawlDelay.Round(time.Millisecond), time.Millisecond), maxDelay*time.Second)
		w.plain("crawl-delay", strconv.FormatFloat(delay.Seconds(), 'f', -1, 64))
	}
}

func readEnforce(p *parser, n *yaml.Node, r *ruleReader) {
	r.rule.Enforce = p.mode(n, "enforce")
	r.source.Enforce = posOf(n)
}

func (p *parser) mode(n *yaml.Node, what string) policy.Mode {
	word, _ := p.choice(n, what, "off", "log", "block")
	mode, _ := policy.ParseMode(word)
	return mode
}

func readIntended(p *parser, n *yaml.Node, r *ruleReader) {
	if n.Kind == yaml.ScalarNode && (n.Value == "true" || n.Value == "false") {
		r.rule.Intended = n.Value == "true"
		return
	}
	r.rule.IntendedChecks = p.guards(n)
}

func printIntended(w *printer, r *ruleReader) {
	switch {
	case len(r.rule.IntendedChecks) > 0:
		w.plain("intended", "["+strings.Join(r.rule.IntendedChecks, ", ")+"]")
	case r.rule.Intended:
		w.plain("intended", "true")
	}
}

func (p *parser) guards(n *yaml.Node) (guards []string) {
	p.eachItem(n, "intended", func(n *yaml.Node) {
		if guard, ok := p.choice(n, "intended", append(lint.SafetyChecks(), "true")...); ok && guard != "true" {
			guards = append(guards, guard)
		} else if ok {
			p.report(posOf(n), "bad-value", "", `"true" cannot be in a list; name each safety check, or write "intended: true"`)
		}
	})
	return guards
}

// A usage purpose is an address or a name. In a name, "*" and "$" are wildcards as in ACAP 1.0 section 2.8.
var (
	purposeWord    = regexp.MustCompile(`^[A-Za-z*][A-Za-z0-9_.*-]*\$?$`)
	purposeAddress = regexp.MustCompile(`^[A-Za-z*][A-Za-z0-9+.*-]*://[^ #"']+$|^/[^ #"']*$`)
)

// requestFields holds the keys of action requests (ACAP 1.0 section 2.6).
var requestFields = fields[*ruleReader]{
	requestKey(policy.TakeDown, "the pages whose copies and index entries should be deleted"),
	requestKey(policy.ReCrawl, "the pages that should be fetched again"),
}

func requestKey(action, about string) field[*ruleReader] {
	resources := textShape("the path of one page or file, without *", `^/`)
	return key(action, about, oneOrMore(resources), func(p *parser, n *yaml.Node, r *ruleReader) {
		p.texts(n, action, func(n *yaml.Node, text string) {
			why := ""
			switch {
			case !strings.HasPrefix(text, "/"):
				why = "must start with /"
			case strings.ContainsAny(text, "*$"):
				why = "must be one page or file, without * and $; list each of them"
			case strings.ContainsAny(text, "?#"):
				why = "cannot have ? or #, because ACAP 1.0 does not allow them there"
			case strings.ContainsFunc(text, func(c rune) bool { return c <= ' ' || c == 0x7f }):
				why = "cannot have spaces; write a space as %20"
			}
			if why != "" {
				p.report(posOf(n), "bad-path", "", "invalid path %s: a path under %s %s", quote(text), action, why)
				return
			}
			r.rule.Requests = append(r.rule.Requests, policy.ActionRequest{Pos: posOf(n), Action: action, Path: pathpattern.NormalizePath(text)})
		})
	}, func(w *printer, r *ruleReader) {
		var paths []string
		for _, q := range r.rule.Requests {
			if q.Action == action {
				paths = append(paths, q.Path)
			}
		}
		w.texts(action, paths)
	})
}

const (
	limitPattern = `^[1-9][0-9]{0,5}/[smhd]$`
	maxBurst     = 100_000
)

var limitRate = regexp.MustCompile(limitPattern)

var limitUnits = map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour}

var (
	rateShape   = textShape("requests in each second (s), minute (m), hour (h) or day (d), such as 60/m", limitPattern)
	limitFields = fields[*policy.Limit]{
		key("rate", "the number of requests in each second, minute, hour or day, such as 60/m", rateShape, readRate, nil).must(),
		key("burst", "the number of requests that may arrive at once after a pause; the default is the number in rate",
			shape{"type": "integer", "minimum": 1, "maximum": maxBurst}, func(p *parser, n *yaml.Node, l *policy.Limit) {
				l.Burst = int(p.count(n, "burst", maxBurst, fmt.Sprintf("a number of requests from 1 to %d", maxBurst)))
			}, nil),
	}
	limitShape = shape{"anyOf": []any{shape{"const": "none"}, rateShape, mapShape(limitFields)}}
)

func readLimit(p *parser, n *yaml.Node, r *ruleReader) {
	r.rule.LimitPos = posOf(n)
	limit := policy.Limit{}
	if n.Kind == yaml.MappingNode {
		readMap(p, n, "limit", limitFields, &limit)
	} else if n.Value == "none" {
		r.rule.NoLimit = true
		return
	} else {
		readRate(p, n, &limit)
	}
	if limit.IsZero() {
		return // already reported
	}
	limit.Burst = cmp.Or(limit.Burst, min(limit.Requests, maxBurst))
	r.rule.Limit = limit
}

func readRate(p *parser, n *yaml.Node, l *policy.Limit) {
	text, ok := p.text(n, "limit")
	if !ok {
		return
	}
	if !limitRate.MatchString(text) {
		p.report(posOf(n), "bad-value", cmp.Or(limitIn(text), sameMeaning(text, []string{"none"})), "invalid limit %s: must be a number of requests in each second (s), minute (m), hour (h) or day (d), such as 60/m, or the word none", quote(text))
		return
	}
	end := len(text) - len("/m")
	l.Requests, _ = strconv.Atoi(text[:end])
	l.Per = limitUnits[text[end+1]]
}

// count parses a whole number from 1 to most. The argument "must" describes the valid numbers for messages.
func (p *parser) count(n *yaml.Node, what string, most uint64, must string) uint64 {
	text, ok := p.text(n, what)
	if !ok {
		return 0
	}
	number, err := strconv.ParseUint(text, 10, 32)
	if err != nil || number < 1 || number > most {
		p.report(posOf(n), "bad-value", "", "invalid %s %s: must be %s", what, quote(text), must)
	}
	return number
}

func printLimit(w *printer, r *ruleReader) {
	l := r.rule.Limit
	switch {
	case r.rule.NoLimit:
		w.plain("limit", "none")
	case l.IsZero():
	case l.Burst == l.Requests:
		w.plain("limit", l.String())
	default:
		w.plain("limit", "{rate: "+l.String()+", burst: "+strconv.Itoa(l.Burst)+"}")
	}
}
