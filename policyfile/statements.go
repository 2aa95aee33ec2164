// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policyfile/lint"
	"github.com/robotspolicy/caddy-robots-policy/robotstag"
)

const maxStatements = 200_000

type statementKey struct {
	usage   policy.Usage
	pattern string
}

type entry struct {
	resources  []resource
	qualifiers []qualifierText
	overSite   *bool
}

var entryFields = append(fields[*entry]{
	key("paths", "a path, the name of a set, or a list of them", oneOrMore(pathShape), func(p *parser, n *yaml.Node, e *entry) {
		e.resources = p.resources(n, "paths")
	}, nil).must(),
	boolKey("over-site", "true if the allow entry also removes the site's own rules from headers and meta tags. For index, this is noindex; for present-snippet, nosnippet and max-snippet",
		func(e *entry) **bool { return &e.overSite }),
}, qualifierFields(func(e *entry) *[]qualifierText { return &e.qualifiers })...)

func readAllow(p *parser, n *yaml.Node, r *ruleReader)    { p.readStatements(n, true, r) }
func readDisallow(p *parser, n *yaml.Node, r *ruleReader) { p.readStatements(n, false, r) }

func (p *parser) readStatements(n *yaml.Node, allow bool, r *ruleReader) {
	what := "disallow"
	if allow {
		what = "allow"
	}
	if n.Kind == yaml.SequenceNode || n.Kind == yaml.ScalarNode && !p.isJoined(n) {
		near, fix := noUsage(n)
		if near != "" {
			near = p.pair(n, near)
		}
		p.report(posOf(n), "wrong-type", near, "%s must have usages with their paths; %s", what, fix)
		return
	}
	if n.Kind != yaml.MappingNode {
		return
	}
	p.eachPair(n, what, func(key, value *yaml.Node) {
		parts, local, ok := p.usageParts(key, value, allow)
		if !ok {
			return
		}
		p.eachItem(value, key.Value, func(item *yaml.Node) {
			if item.Kind == yaml.ScalarNode {
				if text, ok := p.text(item, key.Value); ok {
					if res, ok := p.resource(item, text); ok {
						p.state(r, allow, local, parts, res)
					}
				}
				return
			}
			p.entry(item, key.Value, allow, local, parts, r)
		})
	})
}

// noUsage returns advice for an author who has written paths, usages or a list directly under allow or disallow.
func noUsage(n *yaml.Node) (near, fix string) {
	if paths := pathsIn(n); paths != "" {
		return "crawl: " + paths, "the usage for fetching pages is called crawl"
	}
	if everyoneWords[squash(n.Value)] {
		return "crawl: /", "the usage for fetching pages is called crawl"
	}
	words := n.Content
	if n.Kind == yaml.ScalarNode {
		words = []*yaml.Node{n}
	}
	usages := make([]string, len(words))
	for i, word := range words {
		if u, ok := policy.ParseUsage(word.Value); ok {
			usages[i] = u.String() + ": /"
		} else if u := usageWords[squash(word.Value)]; u != "" && !strings.HasPrefix(squash(word.Value), "no") {
			usages[i] = u + ": /"
		}
	}
	if n.Kind != yaml.MappingNode && len(usages) > 0 && !slices.Contains(usages, "") {
		return strings.Join(usages, ", "), "write the paths after each usage, or / for the whole site"
	}
	return "", `the usage for fetching pages is called crawl: write "crawl: /" for the whole site, or "crawl: [/a/, /b/]", without a hyphen before crawl`
}

func isPath(text string) bool {
	if text == "" || len(text) > maxQuoted || text[0] != '/' && text[0] != '*' {
		return false
	}
	_, err := pathpattern.Parse(text)
	return err == nil
}

func (p *parser) entry(n *yaml.Node, what string, allow bool, local string, parts []policy.UsagePart, r *ruleReader) {
	var e entry
	readMap(p, n, "an entry of "+quoteless(what), entryFields, &e)
	if len(e.qualifiers) > 0 {
		first := posOf(e.qualifiers[0].node)
		switch {
		case !allow:
			p.report(first, "bad-qualifier", "", "a disallow entry cannot have qualifiers; to allow %s only under conditions, write the qualifiers in an allow entry (ACAP 1.0 section 2.4.2)", parts[0].Usage)
			return
		case local != "":
			p.report(first, "bad-qualifier", "", "%s already has qualifiers, so it cannot have others here; write all of its qualifiers under \"usages\" (ACAP 1.0 section 2.4.1.3)", quote(local))
			return
		}
		parts = []policy.UsagePart{{Usage: parts[0].Usage, Qualifiers: p.qualifiers(parts[0].Usage, e.qualifiers)}}
	}
	before := len(r.rule.Statements)
	for _, res := range e.resources {
		p.state(r, allow, local, parts, res)
	}
	if e.overSite == nil || !*e.overSite {
		return
	}
	if !allow || local != "" || !robotstag.CanLift(parts[0].Usage) {
		p.report(posOf(n), "bad-over-site", "", "write over-site only in allow entries for index or present-snippet, because it cannot remove other restrictions of the site")
		return
	}
	for i := before; i < len(r.rule.Statements); i++ {
		r.rule.Statements[i].OverSite = true
	}
}

func (p *parser) usageParts(key, value *yaml.Node, allow bool) (parts []policy.UsagePart, local string, ok bool) {
	if u, ok := policy.ParseUsage(key.Value); ok {
		if allow && u == policy.Other {
			return nil, "", p.refuse(key, "bad-usage", "", `"other" means every usage that no rule mentions, and can only be disallowed; name the usages that you want to allow`)
		}
		return []policy.UsagePart{{Usage: u}}, "", true
	}
	l := p.usages[strings.ToLower(key.Value)]
	if l == nil {
		if p.isGlued(key, value) {
			return nil, "", false
		}
		if word := squash(key.Value); allow && (strings.HasPrefix(word, "no") && usageWords[word] != "" || blockWords[word]) {
			return nil, "", p.refuse(key, "unknown-usage", "", "%s disallows a usage; write %s under disallow instead", quote(key.Value), quote(cmp.Or(usageWords[word], policy.Crawl.String())))
		}
		p.unknownUsage(key, value, key.Value, allow, nil)
		return nil, "", false
	}
	l.used = true
	if !allow {
		names := []string{"its usages"}
		for i, part := range l.parts {
			names = append(names[:i], part.Usage.String())
		}
		return nil, "", p.refuse(key, "bad-usage", "", "%s is defined under \"usages\", and such usages can only be allowed (ACAP 1.0 section 2.4.2); disallow %s instead", quote(l.name), english.List(names, "and"))
	}
	return l.parts, l.name, len(l.parts) > 0
}

// fits reports whether count further statements are within the limit for a file. Sets and usages can expand to many
// statements.
func (p *parser) fits(at policy.Pos, count int) bool {
	if p.statements += count; p.statements <= maxStatements {
		return true
	}
	if !p.full {
		p.report(at, "too-many-rules", "", "with all sets and usages written out, the rules have more than %d paths; use wildcards", maxStatements)
	}
	p.full = true
	return false
}

func (p *parser) state(r *ruleReader, allow bool, local string, parts []policy.UsagePart, res resource) {
	if !p.fits(res.pos, len(parts)*len(res.patterns)) {
		return
	}
	for i, pattern := range res.patterns {
		for _, part := range parts {
			s := policy.Statement{
				Pos: res.pos, Allow: allow, Usage: part.Usage, Pattern: pattern, Written: res.written[i],
				Qualifiers: part.Qualifiers, Resource: res.set, Local: local,
			}
			key := statementKey{part.Usage, pattern.String()}
			if i, ok := r.seen[key]; ok {
				p.twice(&r.rule.Statements[i], &s)
			} else {
				r.seen[key] = len(r.rule.Statements)
			}
			r.rule.Statements = append(r.rule.Statements, s)
		}
	}
}

func (p *parser) twice(first, s *policy.Statement) {
	through := ""
	switch {
	case s.Resource != "":
		through = " because of the set " + quote(s.Resource)
	case s.Local != "":
		through = " because of the usage " + quote(s.Local)
	}
	verdicts := map[bool]string{true: "allowed", false: "disallowed"}
	switch {
	case first.Allow != s.Allow:
		p.report(s.Pos, "contradiction", "", "this rule contradicts itself: %s of %s is %s here%s and %s in line %d; delete one of the two entries",
			s.Usage, quote(s.Pattern.String()), verdicts[s.Allow], through, verdicts[first.Allow], first.Pos.Line)
	case !sameQualifiers(first.Qualifiers, s.Qualifiers):
		p.report(s.Pos, "contradiction", "", "this rule contradicts itself: %s of %s is allowed here%s and in line %d with different qualifiers; delete one of the two entries",
			s.Usage, quote(s.Pattern.String()), through, first.Pos.Line)
	case through == "" && first.Resource == "" && first.Local == "" && first.Written == s.Written:
		p.report(s.Pos, "listed-twice", "", "%s of %s is already %s in line %d; delete this entry", s.Usage, quote(s.Pattern.String()), verdicts[s.Allow], first.Pos.Line)
	}
}

func sameQualifiers(a, b *policy.Qualifiers) bool {
	return strings.Join(a.Strings(), " ") == strings.Join(b.Strings(), " ")
}

type resourceSet struct {
	name     string
	patterns []pathpattern.Pattern
	written  []string // see policy.Statement
	used     bool
}

// namePattern matches a name of ACAP 1.0 section 3: name-start-char *name-char.
var namePattern = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9._-]*$`)

func (p *parser) isName(key *yaml.Node, what string) bool {
	return namePattern.MatchString(key.Value) || p.refuse(key, "bad-name", "", "invalid name %s: the name of %s must start with a letter and have only letters, digits, hyphens, underscores and dots", quote(key.Value), what)
}

func readSets(p *parser, n *yaml.Node, _ *policy.Spec) {
	p.eachPair(n, "resources", func(key, value *yaml.Node) {
		if !p.isName(key, "a set") {
			return
		}
		set := &resourceSet{name: key.Value}
		p.sets[strings.ToLower(key.Value)] = set
		p.texts(value, "a path of the set", func(n *yaml.Node, text string) {
			if pattern, ok := p.pattern(n, text, false); ok {
				set.patterns = append(set.patterns, pattern)
				set.written = append(set.written, pathpattern.Written(pattern, text))
			}
		})
		p.spec.Resources = append(p.spec.Resources, policy.ResourceSet{Name: key.Value, Pos: posOf(key), Patterns: set.patterns, Written: set.written})
	})
}

func printSets(w *printer, spec *policy.Spec) {
	w.under("resources", func() {
		for _, set := range spec.Resources {
			paths := texts(set.Patterns)
			for i, text := range set.Written {
				paths[i] = cmp.Or(text, paths[i])
			}
			w.texts(set.Name, paths)
		}
	})
}

// hostAndPath matches a web address without its scheme.
var hostAndPath = regexp.MustCompile(`^(?i:www\.[^/ ]+|[a-z0-9-]+(?:\.[a-z0-9-]+)*\.(?:com|org|net|example|eu|uk|de|fr|io))(?::[0-9]+)?/`)

var yesAndNo = []string{"false", "no", "off", "true", "yes", "on"}

// severalPaths matches several paths in one text. YAML joins lines into one text if the author left out the hyphens of
// a list.
var severalPaths = regexp.MustCompile(`^-?[/*]\S*(?:,? -? ?|,)[/*]`)

// resource is an element of the paths of an entry: a path or the name of a set.
type resource struct {
	pos      policy.Pos
	set      string // name of the set, or "" for a path
	patterns []pathpattern.Pattern
	written  []string
}

func (p *parser) resources(n *yaml.Node, what string) (found []resource) {
	p.texts(n, what, func(n *yaml.Node, text string) {
		if r, ok := p.resource(n, text); ok {
			found = append(found, r)
		}
	})
	return found
}

func (p *parser) resource(n *yaml.Node, text string) (resource, bool) {
	if text[0] != '/' && text[0] != '*' {
		if set := p.sets[strings.ToLower(text)]; set != nil {
			set.used = true
			return resource{posOf(n), set.name, set.patterns, set.written}, true
		}
	}
	pattern, ok := p.pattern(n, text, true)
	if !ok {
		return resource{}, false
	}
	return resource{posOf(n), "", []pathpattern.Pattern{pattern}, []string{pathpattern.Written(pattern, text)}}, true
}

// maxPattern is the maximum length of a path in bytes. Longer addresses and lines do not work everywhere.
const maxPattern = 2048

// pattern parses a path. The caller sets setsToo at places where the file may also have the name of a set. This only
// changes the error messages.
func (p *parser) pattern(n *yaml.Node, text string, setsToo bool) (pathpattern.Pattern, bool) {
	if len(text) > maxPattern {
		return pathpattern.Pattern{}, p.refuse(n, "bad-path", "", "a path can have up to %d characters, and this one has %d; write only its beginning, which matches everything below it", maxPattern, len(text))
	}
	if severalPaths.MatchString(text) && n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) == 0 {
		return pathpattern.Pattern{}, p.refuse(n, "bad-path", "", `this looks like several paths; write each on its own line after a hyphen and a space: "- /a". If it is one path, put it in quotation marks`)
	}
	if text[0] == '/' || text[0] == '*' {
		pattern, err := pathpattern.Parse(text)
		if err != nil {
			return pattern, p.refuse(n, "bad-path", "", "%s", err)
		}
		return pattern, true
	}
	switch scheme, rest, isURL := strings.Cut(text, "://"); {
	case isURL && scheme != "":
		path := "/"
		if i := strings.IndexByte(rest, '/'); i >= 0 {
			path = rest[i:]
		}
		p.report(posOf(n), "bad-path", path, "this is a full web address; write only the path, and if the rule is not for all hosts, put the host under \"hosts\"")
	case hostAndPath.MatchString(text) && p.sets[strings.ToLower(text)] == nil:
		p.report(posOf(n), "bad-path", text[strings.IndexByte(text, '/'):], "this is a host with a path; write only the path, and if the rule is not for all hosts, put the host under \"hosts\"")
	case containsFold(yesAndNo, text) && setsToo:
		p.report(posOf(n), "bad-path", "", "invalid path %s: write paths, or / for the whole site. If you mean the opposite rule, move this entry from disallow to allow, or from allow to disallow", quote(text))
	case !setsToo && p.sets[strings.ToLower(text)] != nil:
		p.report(posOf(n), "bad-path", "", "a set can only have paths, not other sets; repeat the paths of %s here", quote(text))
	case !setsToo:
		p.report(posOf(n), "bad-path", nearPath(text), `invalid path %s: a path must start with "/" or "*"`, quote(text))
	default:
		near := Nearest(text, slices.Sorted(maps.Keys(p.sets)))
		if near != "" {
			near = p.sets[near].name
		} else {
			near = nearPath(text)
		}
		p.report(posOf(n), "bad-path", near, `invalid path %s: a path must start with "/" or "*", or be the name of a set under "resources"`, quote(text))
	}
	return pathpattern.Pattern{}, false
}

var ending = regexp.MustCompile(`^\.[A-Za-z0-9]+\$?$`)

// nearPath returns the path that a text without "/" may mean, or "".
func nearPath(text string) string {
	var path string
	switch {
	case strings.ContainsAny(text, ",;:#"):
		return ""
	case everyoneWords[squash(text)]:
		path = "/"
	case lint.IsRegexp(text):
		path = lint.PlainPath(text)
	case ending.MatchString(text) || text[0] == '?' || text[0] == '&':
		path = "/*" + text
	default:
		path = "/" + strings.TrimLeft(strings.ReplaceAll(text, `\`, "/"), "/")
		path = strings.ReplaceAll(path, " ", "%20")
	}
	if _, err := pathpattern.Parse(path); err != nil || lint.IsRegexp(path) {
		return ""
	}
	return path
}
