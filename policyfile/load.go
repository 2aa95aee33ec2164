// SPDX-License-Identifier: Apache-2.0

// Package policyfile reads a site's policy file: YAML in, a [policy.Policy] and
// diagnostics out. It also lints a policy, prints one as YAML, and gives the JSON
// Schema of the file.
//
// The people who write policy files are publishers. Every diagnostic therefore
// names the place, says what is wrong in plain words, and says what to do.
//
// Values are the source text of YAML's scalars and never YAML's guess at them: on,
// 1e3 and 2027-01-31 are those very characters.
package policyfile

import (
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policyfile/lint"
)

// File is a policy file that was read.
type File struct {
	Name string
	// Spec is what the file states, with the defaults filled in. Its Crawlers are
	// the whole catalogue.
	Spec *policy.Spec
	// Policy is the Spec, compiled.
	Policy *policy.Policy
	// Catalogue is the built-in catalogue with the file's own crawlers.
	Catalogue *crawlers.Catalogue

	lines []string
}

// Options change how a file is loaded. The zero value is what Load does.
type Options struct {
	// Now is the time by which time limits are past. The zero value means the
	// time of the call.
	Now time.Time
	// Catalogue is what the file's own crawlers are added to. Nil means the
	// built-in one.
	Catalogue *crawlers.Catalogue
	// Accepted says that these bytes were accepted before. A test of the file that
	// fails is then a warning: a time limit has passed, or the catalogue is newer.
	Accepted bool
}

// Load reads a policy file: it parses, checks, compiles, lints and tests it. Name
// is for messages. The diagnostics are sorted. There is a File exactly when none of
// them is an error.
func Load(name string, data []byte) (*File, Diagnostics) {
	return LoadWith(name, data, Options{})
}

// LoadWith is Load with options.
func LoadWith(name string, data []byte, o Options) (*File, Diagnostics) {
	p := newParser(name)
	var f *File
	if root := p.document(data); root != nil {
		f = p.load(root, o)
	}
	return f, p.list.Sorted()
}

func newParser(name string) *parser {
	return &parser{
		reporter:   reporter{file: name},
		skip:       map[*yaml.Node]bool{},
		keys:       allKeys(),
		ofRules:    setOf(ruleFields.names()),
		settings:   map[string][]string{"publish": publishFields.names(), "rights": rightsFields.names(), "enforcement": enforcementFields.names()},
		spec:       &policy.Spec{File: name},
		sets:       map[string]*resourceSet{},
		usages:     map[string]*localUsage{},
		intended:   map[string][]string{},
		ruleTokens: map[string]bool{},
	}
}

func (p *parser) load(root *yaml.Node, o Options) *File {
	if o.Now.IsZero() {
		o.Now = time.Now()
	}
	p.base = o.Catalogue
	if p.base == nil {
		base, err := crawlers.Default()
		if err != nil {
			p.report(policy.Pos{Line: 1, Column: 1}, "bad-crawler", "", "reading the built-in catalogue of crawlers failed: %v", err)
			return nil
		}
		p.base = base
	}
	p.read(root)
	if p.errors > 0 {
		return nil
	}
	compiled, err := policy.Compile(p.spec)
	if err != nil {
		p.report(policy.Pos{Line: 1, Column: 1}, "too-many-rules", "", "%v; use categories of crawlers and wildcards for hosts instead of listing each", err)
		return nil
	}
	p.lint(compiled, o.Now)
	p.checkExpectations(compiled, o)
	if p.errors > 0 {
		return nil
	}
	return &File{Name: p.file, Spec: p.spec, Policy: compiled, Catalogue: p.catalogue, lines: p.lines}
}

func (p *parser) lint(compiled *policy.Policy, now time.Time) {
	problems := lint.Check(lint.Input{
		Policy: compiled, Catalogue: p.catalogue, Sources: p.sources, Enforcement: p.enforcementAt, Now: now,
		UsagePos: func(local string) policy.Pos {
			if u := p.usages[strings.ToLower(local)]; u != nil {
				return u.pos
			}
			return policy.Pos{}
		},
	})
	for _, problem := range problems {
		p.report(problem.Pos, problem.Code, "", "%s", problem.Message)
	}
}

// Add turns problems that a channel found in the policy into diagnostics with
// their lines, in the order of the file.
func (f *File) Add(problems []policy.Problem) Diagnostics {
	r := reporter{file: f.Name, lines: f.lines}
	for _, p := range problems {
		r.list = append(r.list, r.diagnostic(p, ""))
	}
	return r.list.Sorted()
}
