// SPDX-License-Identifier: Apache-2.0

package agreement

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
)

// reproduce describes the first disagreement in found, and how to repeat it. number is the number of the policy. The
// text also shows the smallest policy with this disagreement that reproduce could find.
func (r *run) reproduce(number int, at *running, p *loaded, found []disagreement) string {
	d := found[0]
	small, last := r.shrink(at, p, d)
	if small == nil {
		small, last = p, d
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d disagreements. The first one is\n  %s\n", len(found), d)
	for _, other := range found[1:min(len(found), 6)] {
		fmt.Fprintf(&b, "  %s\n", other)
	}
	fmt.Fprintf(&b, "to repeat: go test ./integration_test/agreement -seed %d -policy %d -registers=%t -door %s\n", *seed, number, *registers, at.door)
	fmt.Fprintf(&b, "the site has %s; %q on %q is requested by %q, and its upstream has %s\n", at.name, last.q.path, last.q.host, last.q.agent, pages[last.q.page].name)
	fmt.Fprintf(&b, "the smallest policy that was found is\n%s\nwith the disagreement\n  %s\n", indent(string(small.text)), last)
	if at.merges {
		fmt.Fprintf(&b, "the upstream's robots.txt:\n%s", indent(p.theirs))
	}
	_ = at.take(small)
	r.show(&b, at, small, last.q)
	return b.String()
}

// show prints the answer of every channel to a question.
func (r *run) show(b *strings.Builder, at *running, p *loaded, q question) {
	x := &exam{tally: newTally(), at: at, p: p, theirs: mergedOn(at, p)}
	file := q
	file.path = "/robots.txt"
	if a, err := at.get(file); err == nil && !a.dropped {
		fmt.Fprintf(b, "robots.txt:\n%s", indent(a.body))
	}
	if a, err := at.get(q); err == nil && !a.dropped {
		fmt.Fprintf(b, "response: %d\n", a.status)
		for _, f := range allFields {
			fmt.Fprintf(b, "    %s: %q\n", f, a.header.Values(f))
		}
		fmt.Fprintf(b, "page:\n%s\n", indent(a.body))
	} else {
		fmt.Fprintf(b, "response: none, %v\n", err)
	}
	var text bytes.Buffer
	if e, err := x.explanation(q); err == nil && e.WriteText(&text) == nil {
		fmt.Fprintf(b, "explain:\n%s", indent(text.String()))
	} else {
		fmt.Fprintf(b, "explain: %v\n", err)
	}
}

func indent(text string) string {
	return "    " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n    ") + "\n"
}

// shrink removes parts of the policy p as long as the disagreement d still occurs, and returns the smallest such
// policy. It returns nil if the disagreement does not occur when d.q is the only question.
func (r *run) shrink(at *running, p *loaded, d disagreement) (*loaded, disagreement) {
	try := func(p *loaded) (disagreement, bool) {
		found, err := r.examine(newTally(), at, p, []question{d.q})
		i := slices.IndexFunc(found, func(f disagreement) bool { return f.channel == d.channel })
		if err != nil || i < 0 {
			return disagreement{}, false
		}
		return found[i], true
	}
	p = p.again()
	last, ok := try(p)
	if !ok {
		return nil, d
	}
	spec := *p.site.File.Spec
	for smaller := true; smaller; {
		smaller = false
		for _, candidate := range cuts(&spec) {
			q, _ := load(p.name, policyfile.PrintWith(candidate, policyfile.PrintOptions{Catalog: p.site.File.Catalog}), p.tokens)
			if q == nil {
				continue
			}
			q.theirs = p.theirs
			if now, ok := try(q); ok {
				p, last, spec, smaller = q, now, *candidate, true
				break
			}
		}
	}
	return p, last
}

// cuts returns copies of a policy. Each copy lacks one part of the policy.
func cuts(spec *policy.Spec) (all []*policy.Spec) {
	with := func(change func(s *policy.Spec)) {
		s := *spec
		s.Rules = slices.Clone(s.Rules)
		change(&s)
		all = append(all, &s)
	}
	for i := range spec.Rules {
		with(func(s *policy.Spec) { s.Rules = slices.Delete(s.Rules, i, i+1) })
	}
	for i := range spec.Rules {
		r := &spec.Rules[i]
		rule := func(change func(r *policy.Rule)) {
			with(func(s *policy.Spec) { change(&s.Rules[i]) })
		}
		for j := range r.Statements {
			rule(func(r *policy.Rule) { r.Statements = slices.Delete(slices.Clone(r.Statements), j, j+1) })
			if r.Statements[j].Qualifiers != nil {
				rule(func(r *policy.Rule) {
					r.Statements = slices.Clone(r.Statements)
					r.Statements[j].Qualifiers = nil
				})
			}
		}
		for j := range r.For {
			if len(r.For) > 1 {
				rule(func(r *policy.Rule) { r.For = slices.Delete(slices.Clone(r.For), j, j+1) })
			}
		}
		for j := range r.EngineRules {
			rule(func(r *policy.Rule) { r.EngineRules = slices.Delete(slices.Clone(r.EngineRules), j, j+1) })
		}
		for j := range r.AppDirectives {
			rule(func(r *policy.Rule) { r.AppDirectives = slices.Delete(slices.Clone(r.AppDirectives), j, j+1) })
		}
		if len(r.Hosts) > 0 {
			rule(func(r *policy.Rule) { r.Hosts = nil })
		}
		if r.Identity != policy.DemandAny {
			rule(func(r *policy.Rule) { r.Identity = policy.DemandAny })
		}
		if r.CrawlDelay > 0 {
			rule(func(r *policy.Rule) { r.CrawlDelay = 0 })
		}
		if len(r.UsagePurposes) > 0 {
			rule(func(r *policy.Rule) { r.UsagePurposes = nil })
		}
		if r.Name != "" {
			rule(func(r *policy.Rule) { r.Name = "" })
		}
	}
	if spec.Sitemaps != nil {
		with(func(s *policy.Spec) { s.Sitemaps = nil })
	}
	if plain := (policy.Publish{ContentUsage: policy.On, ACAP: policy.Off}); !reflect.DeepEqual(spec.Publish, plain) {
		with(func(s *policy.Spec) { s.Publish = plain })
	}
	return all
}
