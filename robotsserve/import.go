// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dunglas/httpsfv"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve/acap"
)

// ImportOptions are what Import goes by beside the file.
type ImportOptions struct {
	// Name reports whether a policy file takes a name for a crawler's, and whether it
	// must be listed among the policy's crawlers for that. Nil takes every name.
	Name func(name string) (valid, listed bool)
	// Crawlers are known crawlers, of which it is told where the policy means them
	// and the file did not.
	Crawlers []policy.Crawler
}

// Import reads an existing robots.txt as a policy: its groups, sitemaps and
// crawl-delays, Content-Usage, Content-Signal, App-Directives and License lines,
// and ACAP records. It tells what it had to leave out, to guess, or to say a
// little otherwise. The positions in the Spec are lines of the robots.txt; its
// Crawlers are those that must be listed.
func Import(data []byte, o ImportOptions) (*policy.Spec, []Told) {
	im := importer{f: readForeign(data), spec: &policy.Spec{}, check: o.Name}
	if im.check == nil {
		im.check = func(string) (valid, listed bool) { return true, false }
	}
	im.sitemaps()
	im.licence()
	im.dropNames()
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
	im.notNamed(o.Crawlers, star)
	if im.f.acap {
		im.records(acap.Parse(data))
	}
	slices.SortStableFunc(im.f.told, func(a, b Told) int { return a.Line - b.Line })
	return im.spec, im.f.told
}

// licence takes over the first of the file that can be; the first of a group if
// there is no other.
func (im *importer) licence() {
	all := im.f.licenses
	inGroups := map[int]bool{}
	for _, g := range im.f.groups {
		for _, l := range g.lines {
			if l.key == "license" && !inGroups[l.line] {
				inGroups[l.line] = true
				all = append(all, l)
			}
		}
	}
	for _, l := range all {
		switch {
		case im.spec.Publish.License == l.value:
		case im.spec.Publish.License != "":
			im.f.tell(l.line, "a policy has one licence, so that %q is left out", l.value)
		case !isAddress(l.value):
			im.f.tell(l.line, "the licence %q is no address that starts with https://, and is left out", l.value)
		default:
			im.spec.Publish.License = l.value
			if inGroups[l.line] {
				im.f.tell(l.line, "this licence is of one group, and the policy publishes it for everyone")
			}
		}
	}
}

// dropNames leaves out the groups of names that a policy file cannot have.
func (im *importer) dropNames() {
	im.f.groups = slices.DeleteFunc(im.f.groups, func(g *foreignGroup) bool {
		name := g.tokens[0]
		if name == "*" || im.name(name) {
			return false
		}
		im.f.tell(g.line, "%q cannot be a crawler's name, and its group is left out: what it says holds for nobody by that name", name)
		delete(im.f.byToken, strings.ToLower(name))
		return true
	})
}

// name reports whether a policy file can have a crawler's name, and lists it there
// if it must be.
func (im *importer) name(name string) bool {
	valid, listed := im.check(name)
	if valid && listed && !slices.ContainsFunc(im.spec.Crawlers, func(c policy.Crawler) bool { return strings.EqualFold(c.Token, name) }) {
		im.spec.Crawlers = append(im.spec.Crawlers, policy.Crawler{Token: name})
	}
	return valid
}

// notNamed tells of known crawlers that the file does not name and that do not
// obey the group of "*": the policy says to them what it says to everyone.
func (im *importer) notNamed(known []policy.Crawler, star *foreignGroup) {
	var deaf []string
	follow := map[*foreignGroup][]string{}
	for _, info := range known {
		if im.f.byToken[strings.ToLower(info.Token)] != nil {
			continue
		}
		switch g := im.f.obeyed(info); {
		case g == star:
		case g != nil:
			follow[g] = append(follow[g], info.Token)
		case slices.ContainsFunc(star.rules, func(r foreignRule) bool { return !r.allow }):
			deaf = append(deaf, info.Token)
		}
	}
	for _, g := range im.f.groups {
		if names := follow[g]; names != nil {
			im.f.tell(g.line, "crawlers that have no group obey this one: %s; the policy says to them what it says to everyone, unless their names are added to the rule for %s", some(names), g.tokens[0])
		}
	}
	if deaf != nil {
		im.f.tell(star.line, "crawlers that only obey a group of their own do not obey this one: %s; everyone means them too, in a policy, and they will be named", some(deaf))
	}
}

// some lists names, if there are many not all.
func some(names []string) string {
	const most = 6
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// isAddress reports whether a text is a URL of the web that can stand in a line.
func isAddress(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https") && printable(text) && !strings.ContainsAny(text, " \t#")
}

// sitemaps takes over what a policy can name: URLs of the web, and paths.
func (im *importer) sitemaps() {
	for _, l := range im.f.sitemaps {
		path := strings.HasPrefix(l.value, "/") && !strings.HasPrefix(l.value, "//")
		switch {
		case !isAddress(l.value) && !(path && isAddress("https://x"+l.value)):
			im.f.tell(l.line, "the sitemap %q is no URL such as https://www.example.com/sitemap.xml, and is left out", l.value)
		case !slices.Contains(im.spec.Sitemaps, l.value):
			im.spec.Sitemaps = append(im.spec.Sitemaps, l.value)
		}
	}
}

type importer struct {
	f     *foreign
	spec  *policy.Spec
	check func(name string) (valid, listed bool)
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
	all := false
	rules := g.decisive()
	for _, fr := range rules {
		if im.tooLong(fr.line, fr.pattern) {
			continue
		}
		all = all || fr.pattern == pathpattern.All
		r.Statements = append(r.Statements, policy.Statement{Pos: policy.Pos{Line: fr.line, Column: 1}, Allow: fr.allow, Usage: policy.Crawl, Pattern: fr.pattern})
	}
	im.flips(rules)
	if star != nil && slices.ContainsFunc(star.rules, func(fr foreignRule) bool { return !fr.allow }) {
		if !all {
			r.Statements = append(r.Statements, policy.Statement{Allow: true, Usage: policy.Crawl, Pattern: pathpattern.All})
		}
	}
	im.delay(&r, g)
	for _, l := range g.lines {
		im.extension(&r, l)
	}
	im.fallsThrough(audience, g, star)
	r.Pos = firstPos(&r)
	if len(r.Statements)+len(r.AppDirectives) > 0 || r.CrawlDelay > 0 {
		im.spec.Rules = append(im.spec.Rules, r)
	}
}

// maxPath is the longest pattern that a policy file takes.
const maxPath = 2048

// tooLong tells of a pattern that a policy file does not take.
func (im *importer) tooLong(line int, p pathpattern.Pattern) bool {
	if p.Len() <= maxPath {
		return false
	}
	im.f.tell(line, "a path in a policy file has up to %d octets, and this one %d; it is left out", maxPath, p.Len())
	return true
}

// fallsThrough tells of what is said to everyone and not in a group of its own,
// where a crawler obeys its own group alone, and the policy falls through.
func (im *importer) fallsThrough(audience []policy.Audience, g, star *foreignGroup) {
	if star == nil {
		return
	}
	if star.crawlDelay() != "" && g.crawlDelay() == "" {
		im.f.tell(star.delayN, "what this line asks of everyone, the policy asks of %s too", audience[0])
	}
	for _, l := range star.lines {
		if l.key != "license" && !slices.ContainsFunc(g.lines, func(own foreignLine) bool { return own.key == l.key }) {
			im.f.tell(l.line, "what this line says to everyone, the policy says to %s too", audience[0])
		}
	}
}

// maxPairs bounds the pairs of rules that flips looks at.
const maxPairs = 1 << 22

// flips tells of rules whose length in the policy is not that in the file, where
// another one wins for that.
func (im *importer) flips(rules []foreignRule) {
	pairs := 0
	wins := func(a, b foreignRule, sizeA, sizeB int) bool { return sizeA > sizeB || sizeA == sizeB && a.allow }
	for _, r := range rules {
		if r.size == r.pattern.Len() {
			continue
		}
		for _, s := range rules {
			if pairs++; pairs > maxPairs {
				im.f.tell(r.line, "the length of this path, by which the longest wins, is another in the policy")
				break
			}
			if r.allow != s.allow && wins(r, s, r.size, s.size) != wins(r, s, r.pattern.Len(), s.pattern.Len()) && r.pattern.Overlaps(s.pattern) {
				im.f.tell(r.line, "this path is %d octets long and %q in the policy %d, so that where both match, it is the path of line %d that decides in one of them, and this one in the other", r.size, r.pattern, r.pattern.Len(), s.line)
				break
			}
		}
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
		if im.tooLong(l.line, p) {
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
