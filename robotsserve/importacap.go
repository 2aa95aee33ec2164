// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve/acap"
)

// records adds what ACAP records say. Among several patterns the policy takes
// the longest, ACAP the narrowest (section 2.4.5), which is told. What they say
// of crawl is left out where groups say it.
func (im *importer) records(f *acap.File) {
	for _, p := range f.Problems {
		im.f.tell(p.Line, "%s", p.Message)
	}
	im.spec.Publish.ACAP = policy.On
	for _, s := range f.Sets {
		set := policy.ResourceSet{Name: s.Name}
		for _, text := range s.Patterns {
			if p, ok := foreignPattern(text); ok && !im.tooLong(0, p) {
				set.Patterns = append(set.Patterns, p)
			}
		}
		im.spec.Resources = append(im.spec.Resources, set)
	}
	for _, u := range f.Usages {
		local := policy.LocalUsage{Name: u.Name}
		for _, p := range u.Parts {
			local.Parts = append(local.Parts, policy.UsagePart{Usage: p.Usage, Qualifiers: p.Qualifiers, Local: p.Local})
		}
		im.spec.Usages = append(im.spec.Usages, local)
	}
	if len(f.Records) > 0 {
		im.f.tell(0, "of several paths of ACAP records the policy takes the longest, where ACAP takes the narrowest: compare what is rendered")
	}
	for i := range f.Records {
		im.record(&f.Records[i], len(im.f.groups) == 0 || f.IgnoreConventional && !im.saysCrawl())
	}
}

// saysCrawl reports whether a group allows or disallows anything.
func (im *importer) saysCrawl() bool {
	return slices.ContainsFunc(im.f.groups, func(g *foreignGroup) bool { return len(g.rules) > 0 })
}

func (im *importer) record(rec *acap.Record, crawl bool) {
	audience := im.audience(rec)
	if len(audience) == 0 {
		return
	}
	im.requests(audience, rec)
	if rec.PermissionsReference != "" {
		im.spec.Rules = append(im.spec.Rules, policy.Rule{For: audience, PermissionsReference: rec.PermissionsReference})
		return
	}
	im.fields(policy.Rule{For: audience}, rec.Fields, crawl)
	for _, sub := range rec.Subs {
		im.fields(policy.Rule{For: audience, UsagePurposes: sub.Purposes}, sub.Fields, crawl)
	}
}

// requests takes over action requests. The switch that publishes them is set, as
// the file does.
func (im *importer) requests(audience []policy.Audience, rec *acap.Record) {
	r := policy.Rule{For: audience}
	for _, q := range rec.Requests {
		if strings.ContainsAny(q.Path, "?#") {
			im.f.tell(q.Line, "the request to %s %q is left out: a policy cannot ask for a path with a query", q.Action, q.Path)
			continue
		}
		r.Requests = append(r.Requests, policy.ActionRequest{Pos: policy.Pos{Line: q.Line, Column: 1}, Action: q.Action, Path: pathpattern.NormalizePath(q.Path)})
	}
	if len(r.Requests) > 0 {
		im.spec.Publish.ActionRequests = policy.On
		im.spec.Rules = append(im.spec.Rules, r)
	}
}

// audience is the crawlers of a record that a policy file can name.
func (im *importer) audience(rec *acap.Record) (all []policy.Audience) {
	for _, c := range rec.Crawlers {
		a := policy.Audience{Kind: policy.ForToken, Name: c}
		switch {
		case c == "*":
			a = policy.Audience{}
		case !printable(c) || len(c) > maxToken || !im.name(c):
			im.f.tell(rec.Line, "%q cannot be a crawler's name, and what this record says to it is left out", c)
			continue
		}
		if !slices.ContainsFunc(all, func(b policy.Audience) bool { return a.Kind == b.Kind && strings.EqualFold(a.Name, b.Name) }) {
			all = append(all, a)
		}
	}
	return all
}

// fields adds a rule of permissions and prohibitions. Of both for one pattern
// the prohibition stays (section 2.4.5).
func (im *importer) fields(r policy.Rule, fields []acap.Field, crawl bool) {
	for i := range fields {
		f := &fields[i]
		for _, part := range f.Parts {
			if part.Usage == policy.Crawl && !crawl {
				im.f.tell(f.Line, "what this says of crawl is left out, as the Allow and Disallow lines say it")
				continue
			}
			for _, text := range f.Patterns {
				p, ok := foreignPattern(text)
				if !ok || im.tooLong(f.Line, p) {
					continue
				}
				im.field(&r, f, part, p)
			}
		}
	}
	r.Pos = firstPos(&r)
	if len(r.Statements) > 0 {
		im.spec.Rules = append(im.spec.Rules, r)
	}
}

func (im *importer) field(r *policy.Rule, f *acap.Field, part acap.Part, p pathpattern.Pattern) {
	s := policy.Statement{
		Pos: policy.Pos{Line: f.Line, Column: 1}, Allow: f.Allow && !f.Unreadable, Usage: part.Usage, Pattern: p, Resource: f.Set, Local: f.Local,
	}
	if s.Allow {
		s.Qualifiers = part.Qualifiers
	} else {
		s.Local = ""
	}
	if s.Usage == policy.Other && s.Allow {
		im.f.tell(f.Line, "a permission of other is left out: it has no meaning")
		return
	}
	i := slices.IndexFunc(r.Statements, func(t policy.Statement) bool { return t.Usage == s.Usage && t.Pattern == s.Pattern })
	switch {
	case i < 0:
		r.Statements = append(r.Statements, s)
	case r.Statements[i].Allow && !s.Allow:
		r.Statements[i] = s
	case r.Statements[i].Allow == s.Allow && qualifiers(&r.Statements[i]) != qualifiers(&s):
		im.f.tell(f.Line, "another line permits the same with other qualifiers; this one is left out")
	}
}
