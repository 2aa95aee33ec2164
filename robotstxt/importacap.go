// SPDX-License-Identifier: Apache-2.0

package robotstxt

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/acap"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// records adds rules for ACAP records. Some crawlers that know ACAP ignore all Allow and Disallow lines. The others
// obey the record if a record and such a line have the same pattern (sections 2.9.1 and 2.9.2). Crawlers that do not
// know ACAP obey only the Allow and Disallow lines. A policy has the same rules for both kinds of crawlers. So it
// disallows each path that a record or a Disallow line disallows.
func (im *importer) records(f *acap.File) {
	for _, p := range f.Problems {
		im.f.note(p.Line, "ACAP: %s", p.Message)
	}
	im.spec.Publish.ACAP = policy.On
	for _, s := range f.Sets {
		set := policy.ResourceSet{Name: s.Name}
		for _, text := range s.Patterns {
			if p, ok := im.acapPattern(0, text, true); ok {
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
	im.noteProhibited(f)
	if len(f.Records) > 0 {
		im.f.note(0, "if several paths match, ACAP uses the narrowest path and ignores letter case. A policy uses the longest path and distinguishes letter case. To find differences, compare this file with the output of the command \"render\"")
	}
	im.permitted = im.withoutRecord(f)
	im.repeat()
	for i := range f.Records {
		im.record(&f.Records[i])
	}
}

// recordWeight returns the weight of the ACAP records for maxImported. A line needs one entry for each pair of a usage and
// a path, so a line about a set of paths or of usages needs several entries. In a record for any crawler, an
// entry about crawling is also for the crawlers whose groups have Allow lines.
func (im *importer) recordWeight() (n int) {
	if im.acap == nil {
		return 0
	}
	allowing := 0
	for _, g := range im.f.Groups {
		if slices.ContainsFunc(g.rules, func(r Rule) bool { return r.Allow }) {
			allowing++
		}
	}
	for i := range im.acap.Records {
		r := &im.acap.Records[i]
		anyone := slices.Contains(r.Crawlers, "*")
		for fd := range r.All() {
			for _, part := range fd.Parts {
				each := stated
				if anyone && (part.Usage == policy.Crawl || part.Usage == policy.Other) {
					each += allowing
				}
				n += each * len(fd.Patterns)
			}
		}
	}
	return n
}

// withoutRecord filters im.permitted, the list of crawlers whose groups allow them to crawl something. It returns the
// crawlers that no ACAP record with their name permits to crawl. If a record for "*" prohibits crawling, it also
// applies to these crawlers (section 2.2).
func (im *importer) withoutRecord(f *acap.File) []policy.Audience {
	return slices.DeleteFunc(slices.Clone(im.permitted), func(a policy.Audience) bool {
		return slices.ContainsFunc(f.Records, func(r acap.Record) bool {
			return slices.ContainsFunc(r.Crawlers, func(c string) bool { return strings.EqualFold(c, a.Name) }) &&
				slices.ContainsFunc(r.Fields, func(fd acap.Field) bool { return !prohibits(&fd) && speaksOfCrawl(&fd) })
		})
	})
}

func prohibits(f *acap.Field) bool { return !f.Allow || f.Unreadable }

func speaksOfCrawl(f *acap.Field) bool {
	return slices.ContainsFunc(f.Parts, func(p acap.Part) bool { return p.Usage == policy.Crawl })
}

func (im *importer) record(rec *acap.Record) {
	audience := im.audience(rec)
	if len(audience) == 0 {
		return
	}
	im.requests(audience, rec)
	if rec.PermissionsReference != "" {
		im.spec.Rules = append(im.spec.Rules, policy.Rule{For: audience, PermissionsReference: rec.PermissionsReference})
		return
	}
	im.fields(policy.Rule{Pos: position(rec.Line), For: audience}, rec.Fields)
	for _, sub := range rec.Subs {
		im.fields(policy.Rule{Pos: position(rec.Line), For: audience, UsagePurposes: sub.Purposes}, sub.Fields)
	}
}

func (im *importer) requests(audience []policy.Audience, rec *acap.Record) {
	r := policy.Rule{For: audience}
	for _, q := range rec.Requests {
		if strings.ContainsAny(q.Path, "?#") {
			im.f.note(q.Line, "import leaves out the request to %s %q, because a policy cannot request an action for a path with a query", q.Action, q.Path)
			continue
		}
		r.Requests = append(r.Requests, policy.ActionRequest{Pos: position(q.Line), Action: q.Action, Path: pathpattern.NormalizePath(q.Path)})
	}
	if len(r.Requests) > 0 {
		im.spec.Publish.ActionRequests = policy.On
		im.spec.Rules = append(im.spec.Rules, r)
	}
}

// sameAs returns a value that is equal for audiences whose names differ only in letter case.
func sameAs(a policy.Audience) policy.Audience {
	return policy.Audience{Kind: a.Kind, Name: strings.ToLower(a.Name)}
}

func (im *importer) audience(rec *acap.Record) (all []policy.Audience) {
	there := map[policy.Audience]bool{}
	for _, c := range rec.Crawlers {
		a := policy.Audience{Kind: policy.ForToken, Name: c}
		switch {
		case c == "*":
			a = policy.Audience{}
		case !printable(c) || len(c) > maxName || !im.name(c):
			im.misnamed(rec.Line, c, "import leaves out the rules for it in this ACAP record")
			continue
		}
		if !there[sameAs(a)] {
			there[sameAs(a)] = true
			all = append(all, a)
		}
	}
	return all
}

// fields adds the permissions and prohibitions of a record to the policy. r is a rule for the crawlers of the record,
// and does not have entries yet. If the record is for "*", its fields about crawling become a separate rule, which is
// for everyone-else and for the crawlers in im.permitted. These crawlers have their own rules that allow crawling, so a
// rule for everyone-else would not apply to them.
func (im *importer) fields(r policy.Rule, fields []acap.Field) {
	crawls := policy.Rule{Pos: r.Pos, For: slices.Clone(r.For), UsagePurposes: r.UsagePurposes}
	for i, a := range crawls.For {
		if a.Kind == policy.ForEveryone {
			crawls.For[i].Kind = policy.ForEveryoneElse
			crawls.For = append(crawls.For, im.permitted...)
		}
	}
	for i := range fields {
		f := &fields[i]
		for _, part := range f.Parts {
			for _, text := range f.Patterns {
				p, ok := im.acapPattern(f.Line, text, !prohibits(f))
				switch {
				case !ok:
				case !prohibits(f) && im.undetermined(r.For, f, part.Usage, p):
				case part.Usage != policy.Crawl:
					im.field(&r, f, part, p)
					if part.Usage == policy.Other && prohibits(f) && !im.permitsCrawl(&r, p) {
						im.stricter = stricterRecords
						im.f.note(f.Line, "%q prohibits every usage that is not permitted by another ACAP field, including crawling (section 2.5.6)", "ACAP-disallow-other: "+text)
						im.field(&crawls, f, acap.Part{Usage: policy.Crawl}, p)
					}
				case !im.closedToOthers(r.For, f, p):
					im.field(&crawls, f, part, p)
				}
			}
		}
	}
	closed := map[policy.Audience]bool{}
	for _, a := range crawls.For {
		closed[sameAs(a)] = true
	}
	for _, s := range crawls.Statements {
		if !s.Allow && len(r.UsagePurposes) == 0 {
			im.close(closed, s.Pattern)
		}
	}
	for _, r := range []policy.Rule{crawls, r} {
		if len(r.Statements) > 0 {
			im.spec.Rules = append(im.spec.Rules, r)
		}
	}
}

// permitsCrawl reports whether an ACAP record permits the crawlers of the rule r to crawl all paths that the pattern p
// matches. The record must apply to all purposes, or to the same purposes as the rule.
func (im *importer) permitsCrawl(r *policy.Rule, p pathpattern.Pattern) bool {
	for fd, purposes := range im.acapFields(r.For) {
		if !prohibits(fd) && speaksOfCrawl(fd) && (len(purposes) == 0 || slices.Equal(purposes, r.UsagePurposes)) &&
			slices.ContainsFunc(fd.Patterns, func(text string) bool {
				own, ok := acapPattern(text)
				return ok && own.Covers(p)
			}) {
			return true
		}
	}
	return false
}

// acapFields yields the fields of all records for any of the crawlers, with the purposes of each field.
func (im *importer) acapFields(audience []policy.Audience) iter.Seq2[*acap.Field, []string] {
	return func(yield func(*acap.Field, []string) bool) {
		for i := range im.acap.Records {
			rec := &im.acap.Records[i]
			if !slices.ContainsFunc(rec.Crawlers, func(c string) bool {
				return slices.ContainsFunc(audience, func(a policy.Audience) bool { return strings.EqualFold(a.Name, strings.TrimPrefix(c, "*")) })
			}) {
				continue
			}
			for fd, purposes := range rec.All() {
				if !yield(fd, purposes) {
					return
				}
			}
		}
	}
}

// repeat copies prohibitions from the records for "*" to the records for named crawlers. For example, a record for "*"
// prohibits a usage of /a for the purpose "news", and a record for ExampleBot permits this usage for the purpose
// "books". In ACAP, ExampleBot must also obey the prohibition, because a permission overrides only a prohibition with
// the same purposes (section 2.2). In the policy, the permission would override it. So repeat adds the prohibition to
// the records for ExampleBot.
func (im *importer) repeat() {
	everyone := []policy.Audience{{}}
	var added []acap.Record
	for i := range im.acap.Records {
		rec := &im.acap.Records[i]
		if slices.Contains(rec.Crawlers, "*") {
			continue
		}
		var subs []acap.SubRecord
		for fd, purposes := range im.acapFields(everyone) {
			if !prohibits(fd) {
				continue
			}
			for own, others := range rec.All() {
				if prohibits(own) || slices.Equal(purposes, others) || !own.Meets(fd) {
					continue
				}
				if n := len(subs); n == 0 || !slices.Equal(subs[n-1].Purposes, purposes) {
					subs = append(subs, acap.SubRecord{Purposes: purposes})
				}
				sub := &subs[len(subs)-1]
				sub.Fields = append(sub.Fields, *fd)
				break
			}
		}
		if subs != nil {
			added = append(added, acap.Record{Line: rec.Line, Crawlers: rec.Crawlers, Subs: subs})
		}
	}
	im.acap.Records = append(im.acap.Records, added...)
}

// undetermined reports whether the import must leave out the permission f of the usage u with the given pattern. In
// ACAP, a permission wins over a prohibition only if its pattern is narrower (section 2.4.5). In a policy, it would
// also win over other prohibitions of the same usage for the same crawlers. If there is such a prohibition,
// undetermined adds a note and returns true.
func (im *importer) undetermined(audience []policy.Audience, f *acap.Field, u policy.Usage, pattern pathpattern.Pattern) bool {
	own := acap.Fold(pattern)
	for fd := range im.acapFields(audience) {
		if !prohibits(fd) || !slices.ContainsFunc(fd.Parts, func(p acap.Part) bool { return p.Usage == u }) {
			continue
		}
		for _, against := range fd.Patterns {
			p, ok := acapPattern(against)
			if p = acap.Fold(p); ok && p.Overlaps(own) && own.Len() >= p.Len() && !acap.Narrower(own, p) {
				im.f.note(f.Line, "import leaves out %q, because in ACAP it is not narrower than %q of line %d, which disallows it (section 2.4.5)", pattern, against, fd.Line)
				return true
			}
		}
	}
	return false
}

// close is called if an ACAP record prohibits some crawlers to crawl p. closed is true for these crawlers. Such a record
// wins over an Allow line with the same pattern (section 2.9.2). So close removes the allow entries for p in the rules
// for these crawlers. All these entries come from Allow lines.
func (im *importer) close(closed map[policy.Audience]bool, p pathpattern.Pattern) {
	opens := func(s policy.Statement) bool { return s.Allow && s.Usage == policy.Crawl && s.Pattern == p }
	for i := range im.spec.Rules {
		r := &im.spec.Rules[i]
		if !slices.ContainsFunc(r.Statements, opens) {
			continue
		}
		left := *r
		left.Statements = slices.DeleteFunc(slices.Clone(r.Statements), opens)
		left.For = nil
		var others []policy.Audience
		for _, a := range r.For {
			if closed[sameAs(a)] {
				left.For = append(left.For, a)
			} else {
				others = append(others, a)
			}
		}
		switch {
		case others == nil:
			*r = left
		case left.For != nil:
			r.For = others
			im.spec.Rules = append(im.spec.Rules, left)
		}
	}
}

// stricterRecords is the value of Imported.Stricter if the policy is stricter because of ACAP records.
const stricterRecords = "Today, crawlers that do not read ACAP ignore the ACAP records of the file. In the policy, the paths that these records prohibit are disallowed for all crawlers."

// noteProhibited looks for ACAP records that prohibit crawling of paths that a group of the file allows. If there are
// any, the policy is stricter than the file for crawlers that ignore ACAP, so noteProhibited sets im.stricter. If such
// a record is for "*", noteProhibited also adds a note.
func (im *importer) noteProhibited(f *acap.File) {
	open := func(pattern string) bool {
		p, ok := acapPattern(pattern)
		return ok && (im.f.Group("*") == nil || slices.ContainsFunc(im.f.Groups, func(g *Group) bool {
			return !slices.ContainsFunc(g.rules, func(r Rule) bool { return !r.Allow && r.Pattern.Covers(p) })
		}))
	}
	for i := range f.Records {
		for j := range f.Records[i].Fields {
			fd := &f.Records[i].Fields[j]
			if !prohibits(fd) || !speaksOfCrawl(fd) || !slices.ContainsFunc(fd.Patterns, open) {
				continue
			}
			im.stricter = stricterRecords
			if slices.Contains(f.Records[i].Crawlers, "*") {
				im.f.note(fd.Line, "today, crawlers that do not read ACAP ignore the ACAP records of the file; in the policy, the paths that these records prohibit are disallowed for all crawlers")
				return
			}
		}
	}
}

// closedToOthers reports whether the import must leave out the field f, which permits the crawlers of audience to crawl
// p. This is the case if a Disallow line applies to such paths, because crawlers that do not know ACAP obey this line.
// If so, closedToOthers adds a note. If f is a prohibition, it returns false.
func (im *importer) closedToOthers(audience []policy.Audience, f *acap.Field, p pathpattern.Pattern) bool {
	if prohibits(f) {
		return false
	}
	seen := map[*Group]bool{} // many crawlers may obey the group of "*"
	for _, a := range audience {
		g := im.f.Group(a.Name)
		if a.Kind == policy.ForEveryone || g == nil {
			g = im.f.Group("*")
		}
		if g == nil || seen[g] {
			continue
		}
		seen[g] = true
		opened := 0 // the size of the largest Allow for all paths of p
		for _, r := range g.rules {
			if r.Allow && r.Size > opened && r.Pattern.Covers(p) {
				opened = r.Size
			}
		}
		for _, r := range g.rules {
			if !r.Allow && r.Size > opened && r.Size <= p.Len() && r.Pattern.Overlaps(p) {
				im.f.note(f.Line, "this line allows %q for crawlers that know ACAP (section 2.9.2), but line %d disallows it for all others; in the policy, it remains disallowed", p, r.number)
				return true
			}
		}
	}
	return false
}

func (im *importer) field(r *policy.Rule, f *acap.Field, part acap.Part, p pathpattern.Pattern) {
	s := policy.Statement{
		Pos: position(f.Line), Allow: !prohibits(f), Usage: part.Usage, Pattern: p, Resource: f.Set, Local: f.Local,
	}
	if s.Allow {
		s.Qualifiers = part.Qualifiers
	} else {
		s.Local = ""
	}
	if s.Usage == policy.Other && s.Allow {
		im.f.note(f.Line, "a policy cannot have an allow entry for the usage \"other\", so import leaves out this field")
		return
	}
	i := slices.IndexFunc(r.Statements, func(t policy.Statement) bool { return t.Usage == s.Usage && t.Pattern == s.Pattern })
	switch {
	case i < 0:
		r.Statements = append(r.Statements, s)
	case r.Statements[i].Allow && !s.Allow:
		r.Statements[i] = s
	case r.Statements[i].Allow == s.Allow && !slices.Equal(r.Statements[i].Qualifiers.Strings(), s.Qualifiers.Strings()):
		im.f.note(f.Line, "another line permits the same usage with other qualifiers, so import leaves out this line")
	}
}

// acapPattern is like the function acapPattern, but shortens or leaves out a pattern that is too long for a policy
// file.
func (im *importer) acapPattern(line int, value string, allow bool) (pathpattern.Pattern, bool) {
	p, ok := acapPattern(value)
	if !ok {
		return p, false
	}
	return im.fit(line, allow, p)
}

func acapPattern(value string) (pathpattern.Pattern, bool) {
	if value != "" && value[0] != '/' && value[0] != '*' {
		value = "/" + value
	}
	var b strings.Builder
	for i := range len(value) {
		if c := value[i]; c <= ' ' || c == 0x7f {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	p, err := pathpattern.Parse(b.String())
	return p, err == nil
}
