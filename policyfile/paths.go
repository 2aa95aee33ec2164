// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policyfile/lint"
)

type resourceSet struct {
	name     string
	patterns []pathpattern.Pattern
	written  []string // of each, see policy.Statement
	used     bool
}

// namePattern is ACAP 1.0 section 3: name-start-char *name-char.
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
				if text != "" {
					paths[i] = text
				}
			}
			w.texts(set.Name, paths)
		}
	})
}

// hostAndPath is a web address without its scheme.
var hostAndPath = regexp.MustCompile(`^(?i:www\.[^/ ]+|[a-z0-9-]+(?:\.[a-z0-9-]+)*\.(?:com|org|net|example|eu|uk|de|fr|io))(?::[0-9]+)?/`)

var yesAndNo = []string{"false", "no", "off", "true", "yes", "on"}

// severalPaths matches the text as which YAML reads a list without hyphens.
var severalPaths = regexp.MustCompile(`^-?[/*]\S*(?:,? -? ?|,)[/*]`)

// resource is one mention of paths in a rule: a path, or the name of a set.
type resource struct {
	pos      policy.Pos
	set      string // its name, or empty for a path
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

// maxPattern is the longest path, in bytes. Longer web addresses do not work
// everywhere, and readers of robots.txt need not read longer lines.
const maxPattern = 2048

// pattern reads a path. setsToo allows the name of a set.
func (p *parser) pattern(n *yaml.Node, text string, setsToo bool) (pathpattern.Pattern, bool) {
	if len(text) > maxPattern {
		return pathpattern.Pattern{}, p.refuse(n, "bad-path", "", "a path can have up to %d characters, and this one has %d; write only its beginning, which stands for everything below", maxPattern, len(text))
	}
	if severalPaths.MatchString(text) && n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) == 0 {
		return pathpattern.Pattern{}, p.refuse(n, "bad-path", "", `this looks like several paths; write one a line, each after a hyphen and a space: "- /a"; if it is one path, put it in quotation marks`)
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
		p.report(posOf(n), "bad-path", path, "this is a whole address; write only the path, and put the host under hosts if the rule is not for all hosts")
	case hostAndPath.MatchString(text) && p.sets[strings.ToLower(text)] == nil:
		p.report(posOf(n), "bad-path", text[strings.IndexByte(text, '/'):], "this is a host with a path; write only the path, and put the host under hosts if the rule is not for all hosts")
	case containsFold(yesAndNo, text) && setsToo:
		p.report(posOf(n), "bad-path", "", "invalid path %s: write the paths that you mean, / for the whole site; to say the opposite, write them under the other one of allow and disallow", quote(text))
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
		p.report(posOf(n), "bad-path", near, `invalid path %s: a path must start with "/" or "*", or be the name of a set under resources`, quote(text))
	}
	return pathpattern.Pattern{}, false
}

var ending = regexp.MustCompile(`^\.[A-Za-z0-9]+\$?$`)

// nearPath is the path that a text which does not start with "/" may mean, or "".
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
