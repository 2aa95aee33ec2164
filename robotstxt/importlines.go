// SPDX-License-Identifier: Apache-2.0

package robotstxt

import (
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/dunglas/httpsfv"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// license imports the first valid License line. The lines for the whole file are imported before the lines of groups.
func (im *importer) license(l *line, ofGroup bool) {
	switch {
	case im.spec.Publish.License == l.value:
	case im.spec.Publish.License != "":
		im.f.note(l.number, "a policy can have only one license; import leaves out %q", l.value)
	case !isAddress(l.value):
		im.f.note(l.number, "the license %q is not a URL such as https://www.example.com/license.xml; import leaves it out", l.value)
	default:
		im.spec.Publish.License = l.value
		if ofGroup {
			im.f.note(l.number, "this license is for one group of crawlers, but the policy publishes it for everyone")
		}
	}
}

// isAddress reports whether a text is a web URL that fits into a line of robots.txt.
func isAddress(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https") && printable(text) && !strings.ContainsAny(text, " \t#")
}

func (im *importer) sitemaps() {
	if all := im.f.Sitemaps(); all != nil {
		im.spec.Sitemaps = []policy.Sitemaps{{Addresses: all}}
	}
}

// maxOtherLines is the maximum number of lines such as Clean-param in a policy file. maxOtherLine is the maximum length
// of such a line in bytes.
const (
	maxOtherLines = 1000
	maxOtherLine  = 2000
)

// otherLines imports the lines for the whole file.
func (im *importer) otherLines() {
	all := im.f.OtherLines()
	lines := slices.DeleteFunc(slices.Clone(all), func(text string) bool { return len(text) > maxOtherLine })
	im.spec.Publish.Lines = lines[:min(len(lines), maxOtherLines)]
	if left := len(all) - len(im.spec.Publish.Lines); left > 0 {
		im.f.note(0, "a policy file can have at most %d Clean-param and similar lines, each of at most %d bytes; import leaves out %d of them", maxOtherLines, maxOtherLine, left)
	}
}

func (im *importer) delay(r *policy.Rule, g *Group) {
	if g.delay.implausible() {
		im.f.note(g.delay.number, implausibleDelay, g.delay.value)
	}
	if seconds := g.CrawlDelay(); seconds > 0 {
		r.CrawlDelay = time.Duration(seconds * float64(time.Second))
		r.CrawlDelayPos = position(g.delay.number)
	}
}

// path splits the text of a line such as "App-Directives: /a/ app;x" into a path, which may be "", and a value. A text
// that starts with "*" may have no path, because the value is a Structured Field, which can also start with "*". For
// example, in "*app;x", "*app" is the name of an application.
func (l *line) path() (path, value string) {
	_, err := httpsfv.UnmarshalList([]string{l.value})
	if strings.HasPrefix(l.value, "/") || strings.HasPrefix(l.value, "*") && (err != nil || l.key != "app-directives") {
		path, value, _ = strings.Cut(strings.ReplaceAll(l.value, "\t", " "), " ")
		return path, strings.TrimSpace(value)
	}
	return "", l.value
}

// extension imports a line that extends RFC 9309. In a robots.txt, only the line with the longest matching path
// applies. In a policy, all entries with a matching path apply together, so the function cancelDirectives later changes
// the rule.
func (im *importer) extension(r *policy.Rule, l *line) {
	if l.key == "license" {
		im.license(l, r.For[0].Kind != policy.ForEveryoneElse || len(im.f.Groups) > 1)
		return
	}
	pattern := pathpattern.All
	path, value := l.path()
	if l.isPreferences() {
		path = l.says.path
	}
	if path != "" {
		p, ok := acapPattern(path)
		if !ok {
			im.f.note(l.number, "%q is not a path; import leaves out the line", path)
			return
		}
		if pattern, ok = im.fit(l.number, true, p); !ok {
			return
		}
	}
	switch l.key {
	case "request-rate", "visit-time":
		im.f.note(l.number, "a policy file has no key for %q, so import leaves the line out", l.text())
	case "app-directives":
		im.directives(r, l, pattern, value)
	case "content-usage", "content-signal":
		im.preferences(r, l, pattern)
	}
}

func (im *importer) directives(r *policy.Rule, l *line, pattern pathpattern.Pattern, value string) {
	list, err := httpsfv.UnmarshalList([]string{value})
	if err != nil {
		im.f.note(l.number, "%q is not a list of directives (%v); import leaves out the line", value, err)
		return
	}
	for _, m := range list {
		item, ok := m.(httpsfv.Item)
		app, isToken := item.Value.(httpsfv.Token)
		if !ok || !isToken {
			im.f.note(l.number, "one of the directives in %q does not start with the name of an application; import leaves it out", value)
			continue
		}
		text, err := httpsfv.Marshal(item)
		if err != nil {
			im.f.note(l.number, "%q is not a list of directives (%v); import leaves out the line", value, err)
			continue
		}
		if slices.ContainsFunc(r.AppDirectives, func(d policy.AppDirective) bool {
			return d.App == string(app) && d.Pattern == pattern && d.Text != text
		}) {
			im.f.note(l.number, "%q has directives for %s, but an earlier entry for the same path also has directives for it; the policy contains only the first entry, so combine them", value, app)
		}
		r.AppDirectives = append(r.AppDirectives, policy.AppDirective{Pos: position(l.number), Pattern: pattern, App: string(app), Text: text})
	}
}

// maxCanceled limits the number of directives of a rule after cancelDirectives has added entries. maxCanceling limits
// the number of pairs of directives that cancelDirectives compares.
const maxCanceled, maxCanceling = 20_000, 1 << 20

// cancelDirectives changes a rule so that the same directives apply in a policy as in robots.txt
// (draft-nottingham-plan-b, Applying Application Directives). In robots.txt, the directives of a path replace the
// directives of shorter paths, and the directives of a crawler's group replace those in the group of "*". In a policy,
// all of them would apply. So cancelDirectives adds entries that have only the name of an application, because such an
// entry cancels all other directives for the application. If too many entries would be needed, cancelDirectives does
// not change the rule, and returns false.
func (im *importer) cancelDirectives(r *policy.Rule) bool {
	type place struct {
		pattern pathpattern.Pattern
		app     string
	}
	said := r.AppDirectives
	if len(said)*len(said) > maxCanceling {
		return false
	}
	there := map[place]bool{}
	for _, d := range said {
		there[place{d.Pattern, d.App}] = true
	}
	with := slices.Clip(said)
	cancel := func(pos policy.Pos, p pathpattern.Pattern, app string) {
		if !there[place{p, app}] && len(with) <= maxCanceled {
			there[place{p, app}] = true
			with = append(with, policy.AppDirective{Pos: pos, Pattern: p, App: app, Text: app})
		}
	}
	for _, long := range said {
		for _, short := range said {
			if short.Pattern.Len() < long.Pattern.Len() && short.Pattern.Overlaps(long.Pattern) {
				cancel(long.Pos, long.Pattern, short.App)
			}
		}
	}
	for i := range im.spec.Rules {
		if star := &im.spec.Rules[i]; star.For[0].Kind == policy.ForEveryoneElse {
			for _, d := range star.AppDirectives {
				cancel(d.Pos, pathpattern.All, d.App)
			}
		}
	}
	if len(with) > maxCanceled {
		return false
	}
	r.AppDirectives = with
	return true
}

// preferences imports a line with preferences about AI or search.
func (im *importer) preferences(r *policy.Rule, l *line, pattern pathpattern.Pattern) {
	publish, signal := &im.spec.Publish, l.key == "content-signal"
	if signal && pattern != pathpattern.All {
		im.f.note(l.number, "a Content-Signal line cannot have a path. If %q disallows a usage, the robots.txt of the policy disallows it for the whole site. The policy and the headers disallow it only for the path", l.value)
	}
	if len(l.says.members) == 0 {
		im.f.note(l.number, "%q contains no preferences; import leaves out the line", l.value)
	}
	for _, m := range l.says.members {
		switch {
		case signal && m.name == "use" && slices.Contains([]string{"immediate", "reference", "full"}, m.value):
			publish.ContentSignal, publish.ContentSignalUse = policy.On, m.value
			continue
		case !m.known || !m.no() && m.value != "yes":
			im.f.note(l.number, "%q is not a known preference; import leaves it out", m.text)
			continue
		case !strings.HasPrefix(strings.ToLower(m.text), m.name):
			im.f.note(l.number, "%q has a name from an earlier draft of the standard; it is read as %s, the name in the current draft", m.text, m.name)
		}
		if signal {
			publish.ContentSignal = policy.On
		} else {
			publish.ContentUsage = policy.On
		}
		im.prefer(r, l, pattern, m.usage, !m.no())
	}
}

// prefer adds a preference to a rule. If lines contradict each other, the line that disallows wins.
func (im *importer) prefer(r *policy.Rule, l *line, pattern pathpattern.Pattern, u policy.Usage, allow bool) {
	i := slices.IndexFunc(r.Statements, func(s policy.Statement) bool { return s.Usage == u && s.Pattern == pattern })
	if i >= 0 {
		r.Statements[i].Allow = r.Statements[i].Allow && allow
		return
	}
	r.Statements = append(r.Statements, policy.Statement{Pos: position(l.number), Allow: allow, Usage: u, Pattern: pattern})
}

// usagePrefix is the start of the names of groups for a usage (draft-kelley-aipref-training-preference-signal).
const usagePrefix = "__usage_"

// trainingToken is the name of the group for AI training. The draft does not define the name.
const trainingToken = usagePrefix + "ai-training"

// usageGroups converts the groups for usages to rules.
func (im *importer) usageGroups() {
	im.dropGroups(func(g *Group) bool {
		if !strings.HasPrefix(strings.ToLower(g.Name), usagePrefix) {
			return false
		}
		if strings.EqualFold(g.Name, trainingToken) {
			im.usageGroup(g, policy.TrainAI)
		} else {
			im.f.note(g.number, "the group %q is for a usage, not for a crawler, and a policy has no such usage; import leaves it out", g.Name)
		}
		return true
	})
}

func (im *importer) usageGroup(g *Group, u policy.Usage) {
	r := policy.Rule{For: []policy.Audience{{Kind: policy.ForEveryone}}, Pos: position(g.number)}
	for _, line := range im.beginnings(g.Decisive()) {
		s := crawl(line.Allow, line.Pattern, line.number)
		s.Usage, s.Written = u, line.Written
		r.Statements = append(r.Statements, s)
	}
	usages := policy.RightsUsages()
	im.spec.Publish.UsageTokens[slices.Index(usages[:], u)] = g.Name
	if len(r.Statements) > 0 {
		im.commentRule([]*Group{g}, &r)
		im.spec.Rules = append(im.spec.Rules, r)
	}
	for _, l := range g.lines {
		im.f.note(l.number, "the group of a usage can have only Allow and Disallow lines; import leaves out %q", l.text())
	}
}
