// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dunglas/httpsfv"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve/acap"
)

// Import reads an existing robots.txt as a policy: its groups, sitemaps and
// crawl-delays, Content-Usage, Content-Signal, App-Directives and License lines,
// and ACAP records. It tells what it had to leave out, to guess, or to say a
// little otherwise. The positions in the Spec are lines of the robots.txt; it
// has no catalogue of crawlers.
func Import(data []byte) (*policy.Spec, []Told) {
	im := importer{f: readForeign(data), spec: &policy.Spec{}}
	for _, s := range im.f.sitemaps {
		if !strings.Contains(s, "://") && !strings.HasPrefix(s, "/") {
			im.f.tell(0, "the sitemap %q is no URL and is left out", s)
			continue
		}
		im.spec.Sitemaps = append(im.spec.Sitemaps, s)
	}
	if len(im.f.licenses) > 0 {
		im.spec.Publish.License = im.f.licenses[0]
	}
	star := im.f.byToken["*"]
	if star != nil {
		im.rule([]policy.Audience{{}}, star, nil)
	}
	for _, gs := range im.joined() {
		var audience []policy.Audience
		for _, g := range gs {
			audience = append(audience, policy.Audience{Kind: policy.ForToken, Name: g.tokens[0]})
		}
		im.rule(audience, gs[0], star)
	}
	if im.f.acap {
		im.records(acap.Parse(data))
	}
	slices.SortStableFunc(im.f.told, func(a, b Told) int { return a.Line - b.Line })
	return im.spec, im.f.told
}

type importer struct {
	f    *foreign
	spec *policy.Spec
}

// joined puts the groups of named crawlers together that say the same in the
// same lines.
func (im *importer) joined() (all [][]*foreignGroup) {
	for _, g := range im.f.groups {
		if g.tokens[0] == "*" {
			continue
		}
		i := slices.IndexFunc(all, func(gs []*foreignGroup) bool {
			return slices.Equal(gs[0].rules, g.rules) && slices.Equal(gs[0].lines, g.lines) && gs[0].delayN == g.delayN
		})
		if i < 0 {
			all = append(all, []*foreignGroup{g})
		} else {
			all[i] = append(all[i], g)
		}
	}
	return all
}

// rule adds what a group says. The group of a named crawler stands for that of
// "*" (RFC 9309 section 2.2.1), where a rule of the policy only adds to that for
// everyone: so it allows all that it does not speak of.
func (im *importer) rule(audience []policy.Audience, g, star *foreignGroup) {
	r := policy.Rule{For: audience}
	at := map[pathpattern.Pattern]int{}
	for _, fr := range g.rules {
		s := policy.Statement{Pos: policy.Pos{Line: fr.line, Column: 1}, Allow: fr.allow, Usage: policy.Crawl, Pattern: fr.pattern}
		i, said := at[fr.pattern]
		if !said {
			at[fr.pattern] = len(r.Statements)
			r.Statements = append(r.Statements, s)
			continue
		}
		if r.Statements[i].Allow != s.Allow {
			im.f.tell(fr.line, "%q is both allowed and disallowed: it is allowed, as RFC 9309 has it", fr.pattern)
			r.Statements[i].Allow = true
		}
	}
	if star != nil && slices.ContainsFunc(star.rules, func(fr foreignRule) bool { return !fr.allow }) {
		if _, said := at[pathpattern.All]; !said {
			r.Statements = append(r.Statements, policy.Statement{Allow: true, Usage: policy.Crawl, Pattern: pathpattern.All})
		}
	}
	im.delay(&r, g)
	for _, l := range g.lines {
		im.extension(&r, l)
	}
	if star != nil && len(star.lines) > 0 && len(g.lines) == 0 {
		im.f.tell(star.lines[0].line, "what this line says to everyone, it now says to %s too", audience[0])
	}
	r.Pos = firstPos(&r)
	if len(r.Statements)+len(r.AppDirectives) > 0 || r.CrawlDelay > 0 {
		im.spec.Rules = append(im.spec.Rules, r)
	}
}

func firstPos(r *policy.Rule) policy.Pos {
	for _, s := range r.Statements {
		if s.Pos.Line > 0 {
			return s.Pos
		}
	}
	return policy.Pos{}
}

func (im *importer) delay(r *policy.Rule, g *foreignGroup) {
	if g.delay == "" {
		return
	}
	seconds, err := strconv.ParseFloat(g.delay, 64)
	if err != nil || !(seconds > 0) || seconds > maxDelay.Seconds() {
		im.f.tell(g.delayN, "the crawl-delay %q is left out", g.delay)
		return
	}
	r.CrawlDelay = time.Duration(seconds * float64(time.Second))
	r.CrawlDelayPos = policy.Pos{Line: g.delayN, Column: 1}
}

// extension adds what a line of an extension says. In the file a longer path
// replaces all that a shorter one says, in the policy it only adds.
func (im *importer) extension(r *policy.Rule, l foreignLine) {
	pattern, value := pathpattern.All, l.value
	if strings.HasPrefix(value, "/") || strings.HasPrefix(value, "*") {
		path, rest, _ := strings.Cut(strings.ReplaceAll(value, "\t", " "), " ")
		p, ok := foreignPattern(path)
		if !ok {
			im.f.tell(l.line, "%q is no path", path)
			return
		}
		pattern, value = p, strings.TrimSpace(rest)
		im.f.tell(l.line, "where %q says nothing, what shorter paths say now holds for it too", l.key+": "+l.value)
	}
	switch l.key {
	case "app-directives":
		im.directives(r, l, pattern, value)
	case "content-usage":
		im.usage(r, l, pattern, value)
	case "content-signal":
		im.signal(r, l, pattern, value)
	}
}

func (im *importer) directives(r *policy.Rule, l foreignLine, pattern pathpattern.Pattern, value string) {
	list, err := httpsfv.UnmarshalList([]string{value})
	if err != nil {
		im.f.tell(l.line, "%q is no list of directives: %v", value, err)
		return
	}
	for _, m := range list {
		item, ok := m.(httpsfv.Item)
		app, isToken := item.Value.(httpsfv.Token)
		if !ok || !isToken {
			im.f.tell(l.line, "a member of %q is no application's name", value)
			continue
		}
		r.AppDirectives = append(r.AppDirectives, policy.AppDirective{Pos: policy.Pos{Line: l.line, Column: 1}, Pattern: pattern, App: string(app), Item: item})
	}
}

func (im *importer) usage(r *policy.Rule, l foreignLine, pattern pathpattern.Pattern, value string) {
	dict, err := httpsfv.UnmarshalDictionary([]string{value})
	if err != nil {
		im.f.tell(l.line, "%q is no dictionary of preferences: %v", value, err)
		return
	}
	for _, name := range dict.Names() {
		m, _ := dict.Get(name)
		item, _ := m.(httpsfv.Item)
		u, ok := policy.ParseUsage(name)
		says, _ := item.Value.(httpsfv.Token)
		if !ok || u.IsACAP() || says != "y" && says != "n" {
			im.f.tell(l.line, "%q of %q says nothing that is known", name, value)
			continue
		}
		im.prefer(r, l, pattern, u, says == "y")
	}
}

// prefer adds a preference; what any line disallows is disallowed.
func (im *importer) prefer(r *policy.Rule, l foreignLine, pattern pathpattern.Pattern, u policy.Usage, allow bool) {
	im.spec.Publish.ContentUsage = policy.On
	i := slices.IndexFunc(r.Statements, func(s policy.Statement) bool { return s.Usage == u && s.Pattern == pattern })
	if i >= 0 {
		r.Statements[i].Allow = r.Statements[i].Allow && allow
		return
	}
	r.Statements = append(r.Statements, policy.Statement{Pos: policy.Pos{Line: l.line, Column: 1}, Allow: allow, Usage: u, Pattern: pattern})
}

// signal adds a Content-Signal line, whose names are not those of the policy.
func (im *importer) signal(r *policy.Rule, l foreignLine, pattern pathpattern.Pattern, value string) {
	names := map[string]policy.Usage{"ai-train": policy.TrainAI, "ai-input": policy.AIUse, "search": policy.Search}
	for member := range strings.SplitSeq(value, ",") {
		name, says, _ := strings.Cut(member, "=")
		name, says = strings.ToLower(strings.TrimSpace(name)), strings.ToLower(strings.TrimSpace(says))
		u, ok := names[name]
		if !ok || says != "yes" && says != "no" {
			im.f.tell(l.line, "%q says nothing that is known", strings.TrimSpace(member))
			continue
		}
		im.spec.Publish.ContentSignal = policy.On
		im.prefer(r, l, pattern, u, says == "yes")
	}
}
