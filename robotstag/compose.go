// SPDX-License-Identifier: Apache-2.0

package robotstag

import (
	"net/http"
	"slices"
	"strings"

	"github.com/dunglas/httpsfv"

	"github.com/robotspolicy/caddy-robots-policy/rights"
	"github.com/robotspolicy/caddy-robots-policy/robotsrule"
)

// separator is the text between the members of a field (RFC 9110 section 5.2).
const separator = ", "

// audiences maps tokens in lowercase to their rules. The rules for everyone have the key Everyone.
type audiences map[string]robotsrule.Set

// field is Robots-Tag or X-Robots-Tag, the two fields that contain rules for each audience.
type field struct {
	name    string
	oneLine bool
	accepts func(token string) bool
	// member returns the text of the rules for one token, or "" if the field cannot express any of them. lost are
	// the rules that it cannot express.
	member func(token string, rules robotsrule.Set) (text string, lost []string)
	read   func(lines []string) (audiences, []Problem)
}

var robotsTag = field{RobotsTagField, true, isKey, robotsTagMember, readRobotsTag}

var xRobotsTag = field{XRobotsTagField, false, isAgent, xRobotsTagMember, readXRobotsTag}

func robotsTagMember(token string, rules robotsrule.Set) (string, []string) {
	members := rules.Params()
	list := make(httpsfv.List, 0, len(members))
	for _, params := range members {
		item := httpsfv.NewItem(httpsfv.Token(token))
		item.Params = params
		list = append(list, item)
	}
	if len(list) == 0 {
		return "", rules.ParamsLose()
	}
	text, err := httpsfv.Marshal(list)
	if err != nil {
		return "", []string{rules.String()}
	}
	return text, rules.ParamsLose()
}

func xRobotsTagMember(token string, rules robotsrule.Set) (string, []string) {
	var lost []string
	text := rules.String()
	if rules.WithoutUnknown() != rules {
		if !readsBack(text, rules) {
			text, lost = readable(rules)
		}
		text = unscoped(text)
	}
	if text != "" && token != Everyone {
		text = token + ": " + text
	}
	return text, lost
}

// readable returns the text of rules for X-Robots-Tag. lost are the rules that X-Robots-Tag cannot express.
func readable(rules robotsrule.Set) (text string, lost []string) {
	text = rules.Without(func(rule string) bool {
		name, value, _ := strings.Cut(rule, ":")
		// The value of a bad rule would need quotation marks, which readers of X-Robots-Tag would treat as part of the
		// value.
		bad := strings.Contains(name, "=") || strings.Contains(value, ",")
		if bad {
			lost = append(lost, rule)
		}
		return bad
	}).String()
	return text, lost
}

// unscoped returns text with an equals sign instead of the colon in unknown rules, because readers would understand a
// name before a colon as a user agent.
func unscoped(text string) string {
	var rules []string
	for text != "" {
		var rule string
		rule, text = robotsrule.Cut(text)
		if name, value, valued := strings.Cut(rule, ":"); valued && isScope(strings.Trim(name, ` "'()`)) {
			rule = name + "=" + value
		}
		rules = append(rules, rule)
	}
	return strings.Join(rules, ",")
}

type member struct {
	token, text string
}

// compose returns the lines of the field with the members of v and of the upstream. The member for everyone comes
// first, then the members of v for single crawlers, sorted by token, then the upstream's members. compose reports
// members that do not fit in Limit. If a member of v does not fit, compose moves its rules into the member for
// everyone. If a member of the upstream does not fit, compose leaves it out.
func (f *field) compose(v *Values, upstream audiences) ([]string, []Problem) {
	star := v.star.Union(upstream[Everyone]).Restrictive()
	ours, theirs := f.tokens(v, upstream)
	if star.Has("indexifembedded") && (plainNoindex(ours) || plainNoindex(theirs)) {
		// A reader that combines all lines would apply the indexifembedded for one audience to the noindex of another
		// audience.
		star = star.WithoutEmbedding()
	}
	w := f.write(&star, ours)
	for problems := w.problems; !w.over.IsEmpty(); w.problems = problems {
		star = star.Union(w.over.WithoutEmbedding())
		w = f.write(&star, ours)
	}
	for _, m := range theirs {
		w.put(m.Token, m.Rules.Restrictive().Beyond(star))
	}
	return w.lines(), w.problems
}

// write writes the member for everyone and the members of v. It sets star to the rules that the field now has for
// everyone.
func (f *field) write(star *robotsrule.Set, ours []Member) writer {
	w := writer{field: f}
	*star = w.put(Everyone, *star)
	for _, m := range ours {
		w.put(m.Token, m.Rules.Restrictive().Beyond(*star))
	}
	return w
}

// tokens returns the members for single crawlers whose tokens the field can contain. The result ours has v's members,
// including the upstream's rules for the same tokens. The result theirs has the upstream's members for tokens that are
// not in v.
func (f *field) tokens(v *Values, upstream audiences) (ours, theirs []Member) {
	ours = make([]Member, 0, len(v.members))
	for _, m := range v.members {
		if f.accepts(m.Token) {
			ours = append(ours, Member{m.Token, m.Rules.Union(upstream[m.Token])})
		}
	}
	for token, rules := range upstream {
		_, found := slices.BinarySearchFunc(v.members, token, func(m Member, t string) int { return strings.Compare(m.Token, t) })
		if !found && token != Everyone {
			theirs = append(theirs, Member{token, rules})
		}
	}
	slices.SortFunc(theirs, func(a, b Member) int { return strings.Compare(a.Token, b.Token) })
	return ours, theirs
}

func plainNoindex(members []Member) bool {
	return slices.ContainsFunc(members, func(m Member) bool { return m.Rules.PlainNoindex() })
}

// writer collects the members that fit in Limit.
type writer struct {
	field    *field
	members  []member
	used     int
	over     robotsrule.Set // known rules of members that do not fit
	problems []Problem
}

func (w *writer) put(token string, rules robotsrule.Set) robotsrule.Set {
	if rules.IsEmpty() {
		return rules
	}
	text, lost := w.field.member(token, rules)
	if !w.fits(text) {
		w.problems = addProblem(w.problems, TooLong, w.field.name, text)
		rules = rules.WithoutUnknown()
		text, lost = w.field.member(token, rules)
	}
	if !w.fits(text) {
		w.over = w.over.Union(rules)
		text = ""
	}
	if text == "" {
		rules = robotsrule.Set{}
	}
	for _, l := range lost {
		w.problems = addProblem(w.problems, RuleLost, w.field.name, l)
	}
	if text != "" {
		w.used += w.cost(text)
		w.members = append(w.members, member{token, text})
	}
	if len(lost) == 0 {
		return rules
	}
	return rules.Without(func(rule string) bool { return slices.Contains(lost, rule) })
}

func (w *writer) cost(text string) int {
	if len(w.members) == 0 {
		return len(text)
	}
	return len(separator) + len(text)
}

func (w *writer) fits(text string) bool { return w.used+w.cost(text) <= Limit }

// lines returns the lines of the field. The line for everyone is the first, and the others are sorted by token.
// Therefore the result does not depend on the order in which members were merged.
func (w *writer) lines() []string {
	if len(w.members) == 0 {
		return nil
	}
	first := 0
	if w.members[0].token == Everyone {
		first = 1
	}
	slices.SortFunc(w.members[first:], func(a, b member) int { return strings.Compare(a.token, b.token) })
	texts := make([]string, len(w.members))
	for i, m := range w.members {
		texts[i] = m.text
	}
	if w.field.oneLine {
		return []string{strings.Join(texts, separator)}
	}
	if len(texts) > maxLines {
		return packLines(w.members, texts)
	}
	return texts
}

// maxLines limits the lines of X-Robots-Tag, because some clients give up at 100 header lines.
const maxLines = 32

// ownLine has the beginnings of the names of large engines' crawlers. The members for these crawlers get separate
// lines, because some readers recognize a name only at the start of a line.
var ownLine = []string{
	"google", "adsbot-google", "bingbot", "msnbot", "yandex", "baiduspider", "slurp", "applebot",
	"duckduck", "seznam", "yeti", "petal", "qwant",
}

// packLines joins the members that do not get separate lines into a last line. RFC 9110 section 5.3 allows this.
func packLines(members []member, texts []string) []string {
	var lines, rest []string
	for i, m := range members {
		if m.token == Everyone || slices.ContainsFunc(ownLine, func(p string) bool { return strings.HasPrefix(m.token, p) }) {
			lines = append(lines, texts[i])
		} else {
			rest = append(rest, texts[i])
		}
	}
	return append(lines, strings.Join(rest, separator))
}

// Channels is a set of header fields that Apply may change.
type Channels uint8

// Each field has a bit, so that fields can be combined with |. firstPreference is the bit of the first field of
// rights.Vocabularies; the bits of the others follow it.
const (
	RobotsTag Channels = 1 << iota
	XRobotsTag
	firstPreference
	AllChannels = firstPreference<<len(rights.Vocabularies) - 1
)

// Fields returns the canonical names of the header fields.
func Fields() []string {
	names := make([]string, 0, 2+len(rights.Vocabularies))
	names = append(names, RobotsTagField, XRobotsTagField)
	for i := range rights.Vocabularies {
		names = append(names, rights.Vocabularies[i].Field)
	}
	return names
}

// ChannelNames returns the names of the fields in lowercase. Configurations use these names.
func ChannelNames() []string {
	names := Fields()
	for i := range names {
		names[i] = strings.ToLower(names[i])
	}
	return names
}

// ParseChannel returns the field that configurations call name (see ChannelNames), or 0 if there is none.
func ParseChannel(name string) Channels {
	i := slices.Index(ChannelNames(), name)
	if i < 0 {
		return 0
	}
	return 1 << i
}

// Apply merges v into the header h of a response, just before it is sent. The names in h must be canonical, as
// http.Header.Set writes them.
//
// Apply merges the fields that the upstream or another handler has set. The result is never weaker than v. It is also
// never weaker than h, except for the returned problems and the restrictions that v lifts. The result does not depend
// on the order of several calls, or on repeated calls. Words that only allow something (all, index, follow, …) are
// dropped. If a field of preferences is not published but the upstream sends it, Apply only adds the usages that v
// disallows.
//
// Each field is merged only with the same field in h, because its readers may not read the other fields. There is one
// exception: if v has Robots-Tag, the rules of X-Robots-Tag in h are also added to Robots-Tag, because readers of
// Robots-Tag may ignore X-Robots-Tag.
//
// Usually, Apply returns no problems. It returns at most 32 problems for each field.
func Apply(h http.Header, v *Values, channels Channels) []Problem {
	if v == nil {
		return nil
	}
	a := applier{header: h, values: v}
	if channels&RobotsTag != 0 {
		a.rules(&robotsTag, v.RobotsTag)
	}
	if channels&XRobotsTag != 0 {
		a.rules(&xRobotsTag, v.XRobotsTag)
	}
	for i := range rights.Vocabularies {
		if channels&(firstPreference<<i) != 0 {
			a.usage(preferenceField{rights.Vocabularies[i]}, v.Preferences[i])
		}
	}
	return a.problems
}

type applier struct {
	header   http.Header
	values   *Values
	spare    []string // memory for the slices that set stores in the header
	problems []Problem
}

// set sets the field to a copy of lines. Without a copy, Caddy's "header" directive, which replaces text in place,
// would change later responses.
func (a *applier) set(name string, lines []string) {
	if a.spare == nil {
		size := len(a.values.RobotsTag) + len(a.values.XRobotsTag)
		for _, lines := range a.values.Preferences {
			size += len(lines)
		}
		a.spare = make([]string, size)
	}
	n := copy(a.spare, lines)
	a.header[name], a.spare = a.spare[:n:n], a.spare[n:]
}

// unmerged reports whether nothing is left to merge for a field. If the response does not have the field yet, unmerged
// sets the field to the lines in ours, and returns true.
func (a *applier) unmerged(name string, ours []string) bool {
	theirs := a.header[name]
	if len(ours) == 0 || slices.Equal(theirs, ours) {
		return true
	}
	if len(theirs) == 0 {
		a.set(name, ours)
		return true
	}
	return false
}

func (a *applier) rules(f *field, ours []string) {
	older, lift := a.olderName(f), a.values.Lift
	if lift != 0 && len(a.header[f.name]) == 0 {
		lift = 0
	}
	if lift == 0 && (len(ours) == 0 || older == nil && a.unmerged(f.name, ours)) {
		return
	}
	upstream, problems := f.read(a.header[f.name])
	a.problems = append(a.problems, problems...)
	if lift != 0 && !upstream.lift(lift) && len(ours) == 0 {
		return
	}
	if len(ours) == 0 {
		older = nil
	}
	for token, rules := range older {
		if rules = rules.Without(isUnknown).Restrictive(); token == Everyone || f.accepts(token) {
			upstream[token] = upstream[token].Union(rules)
		}
	}
	lines, problems := f.compose(a.values, upstream)
	a.problems = append(a.problems, problems...)
	if a.header[f.name] = lines; len(lines) == 0 {
		delete(a.header, f.name)
	}
}

// lift removes the restrictions in l from the rules of all audiences, and reports whether it changed any rules.
func (all audiences) lift(l robotsrule.Lift) (changed bool) {
	for token, rules := range all {
		if lifted := rules.Lifted(l); lifted != rules {
			all[token], changed = lifted, true
		}
	}
	return changed
}

// isUnknown reports whether rule, which may include a value, has an unknown name. It returns false for a known name
// with a malformed value.
func isUnknown(rule string) bool {
	name, _, _ := strings.Cut(strings.ReplaceAll(rule, "=", ":"), ":")
	return !robotsrule.IsRule(name)
}

// olderName returns the rules that Robots-Tag must repeat from the response's field X-Robots-Tag, which is the older
// name of Robots-Tag. If f is another field, or if X-Robots-Tag has only the rules of the policy, it returns nil.
func (a *applier) olderName(f *field) audiences {
	lines := a.header[XRobotsTagField]
	if f != &robotsTag || len(lines) == 0 || slices.Equal(lines, a.values.XRobotsTag) {
		return nil
	}
	found, _ := readXRobotsTag(lines) // the problems are reported when X-Robots-Tag itself is merged
	found.lift(a.values.Lift)
	return found
}
