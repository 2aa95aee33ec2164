// SPDX-License-Identifier: Apache-2.0

package robotstag

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/dunglas/httpsfv"

	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/ascii"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/rights"
)

// Usage holds the preferences that a response states for everyone, and the settings of the vocabularies that state
// them.
type Usage struct {
	rights.Verdicts
	Publish *policy.Publish // nil if no vocabulary is published
}

// IsEmpty reports whether u has neither preferences nor a value for the label "use" (see rights.Vocabulary).
func (u *Usage) IsEmpty() bool {
	return !u.Stated() && (u.Publish == nil || !rights.StatesUse(u.Publish))
}

// published reports whether the policy switches the vocabulary on, so that its field is sent even if the upstream does
// not send it.
func (u *Usage) published(f *rights.Vocabulary) bool { return u.Publish != nil && f.On(u.Publish) }

// text returns the value of the vocabulary's field, or "" if the policy does not publish the vocabulary.
func (u *Usage) text(f *rights.Vocabulary) string {
	if !u.published(f) {
		return ""
	}
	return f.Text(u.Verdicts, f.UseOf(u.Publish))
}

// word returns the value that the policy states for the label l, such as "n", or "" if it does not state any. If the
// policy does not publish the vocabulary f, word returns a value only if it disallows the usage.
func (u *Usage) word(f *rights.Vocabulary, l *rights.Label) string {
	if u.published(f) {
		return l.Word(u.Verdicts, f.UseOf(u.Publish))
	}
	return l.Word(u.Restrictions(), "")
}

// preferenceField is a header field whose value is a Dictionary of preferences (draft-ietf-aipref-attach-05).
type preferenceField struct{ *rights.Vocabulary }

// upstreamUsage holds the strictest member for each label in an upstream's field. It includes unknown labels, and
// values that are not preferences, because vocabularies grow.
type upstreamUsage struct {
	preferenceField
	members map[string]httpsfv.Member
}

var aroundEquals = regexp.MustCompile(`[ \t]*=[ \t]*`)

// read reads each line separately, because a malformed line would make the whole field unreadable. If a key occurs in
// several lines, it combines the values (draft-ietf-aipref-vocab section 5.1), whereas a reader of the joined lines
// would use the last value. In a malformed line it reads each member separately, but uses only members that disallow a
// usage. Readers of the whole field would ignore the line, so its permissions have no effect.
func (f preferenceField) read(lines []string) (upstreamUsage, []Problem) {
	up := upstreamUsage{f, map[string]httpsfv.Member{}}
	problems := eachLine(lines, f.Field, lastMemberEnd, func(line string, p []Problem) []Problem {
		line = strings.Trim(line, " \t")
		if line == "" {
			return p
		}
		if f.Lenient {
			line = aroundEquals.ReplaceAllString(ascii.Lower(line), "=")
		}
		whole, err := httpsfv.UnmarshalDictionary([]string{line})
		if err == nil {
			up.addAll(whole, unstated)
		}
		texts := splitMembers(line)
		if err == nil && len(texts) == len(whole.Names()) {
			return p
		}
		// The members are read separately in two cases: the line is malformed, or a key occurs twice and the parsed
		// Dictionary has only its last value.
		least := unstated
		if err != nil {
			least = laxest + 1
			p = addProblem(p, Repaired, f.Field, line)
		}
		for _, text := range texts {
			text = strings.Trim(text, " \t")
			if d, err := httpsfv.UnmarshalDictionary([]string{text}); err == nil {
				up.addAll(d, least)
			} else if !up.addLoosely(text) && text != "" {
				p = addProblem(p, Malformed, f.Field, text)
			}
		}
		return p
	})
	return up, problems
}

// strictness ranks the words for a label. Higher numbers are stricter.
type strictness int

const (
	unstated strictness = iota
	laxest
	odd       strictness = 1 << 10 // an unknown word, whose meaning may be anything
	strictest strictness = odd + 1
)

// words returns the words that the label name may have as its value, the laxest first, such as "y" and "n". If the
// vocabulary does not know the label, words returns the words of the vocabulary's first label.
func (f preferenceField) words(name string) []string {
	i := slices.IndexFunc(f.Labels, func(l rights.Label) bool { return l.Name == name })
	return f.Labels[max(i, 0)].Words
}

// strictnessOf returns the strictness of a word. words are all words of a label, sorted from the laxest to the
// strictest. If word is not one of them, strictnessOf returns odd.
func strictnessOf(words []string, word string) strictness {
	switch i := slices.Index(words, word); i {
	case -1:
		return odd
	case len(words) - 1:
		return strictest
	default:
		return laxest + strictness(i)
	}
}

func (f preferenceField) strictnessOf(name string, m httpsfv.Member) strictness {
	if item, ok := m.(httpsfv.Item); ok {
		if word, ok := item.Value.(httpsfv.Token); ok {
			return strictnessOf(f.words(name), string(word))
		}
	}
	return odd
}

func (up upstreamUsage) addAll(d *httpsfv.Dictionary, least strictness) {
	for _, name := range d.Names() {
		if m, _ := d.Get(name); up.strictnessOf(name, m) >= least {
			up.add(name, m)
		}
	}
}

func (up upstreamUsage) add(name string, m httpsfv.Member) {
	if before, ok := up.members[name]; !ok || up.strictnessOf(name, before) <= up.strictnessOf(name, m) {
		up.members[name] = m
	}
}

// looseNo finds labels with the value "n" or "no" in text that is not a valid Dictionary, as in `train-ai: no`.
var looseNo = regexp.MustCompile(`(?i)([a-z*][a-z0-9_.*-]*)["' \t()]*[:=]["' \t()=:]*no?\b`)

// addLoosely adds the labels that a malformed member disallows, and reports whether there are any.
func (up upstreamUsage) addLoosely(text string) bool {
	found := looseNo.FindAllStringSubmatch(text, -1)
	for _, label := range found {
		up.add(ascii.Lower(label[1]), httpsfv.NewItem(httpsfv.Token(up.No())))
	}
	return len(found) > 0
}

// maxUsage limits the bytes that are kept of an upstream's member for a known label.
const maxUsage = 1 << 10

// member returns a member of the merged field: a label with its value. word is the policy's value for the label, or ""
// if it has none. The stricter one of word and the upstream's value is used. If the upstream's value is at least as
// strict as word, it keeps its spelling.
func (up upstreamUsage) member(l *rights.Label, word string) string {
	ours, theirs := unstated, unstated
	if word != "" {
		ours = strictnessOf(l.Words, word)
	}
	if m, ok := up.members[l.Name]; ok {
		theirs = up.strictnessOf(l.Name, m)
		if text, err := marshalMember(l.Name, m); err == nil && theirs >= ours && len(text) <= maxUsage {
			return text
		}
	}
	switch most := max(ours, theirs); {
	case most >= odd:
		return l.Name + "=" + l.Words[len(l.Words)-1]
	case most >= laxest:
		return l.Name + "=" + l.Words[most-laxest]
	}
	return ""
}

func marshalMember(name string, m httpsfv.Member) (string, error) {
	if item, ok := m.(httpsfv.Item); ok && len(item.Params.Names()) == 0 {
		if token, ok := item.Value.(httpsfv.Token); ok {
			return name + "=" + string(token), nil
		}
	}
	d := httpsfv.NewDictionary()
	d.Add(name, m)
	return httpsfv.Marshal(d)
}

// merge returns one line with the upstream's preferences, in up, and the policy's, in u. If the upstream uses labels
// that the vocabulary does not know, and the line would become longer than Limit, merge leaves out such labels and
// reports them.
func (up upstreamUsage) merge(u *Usage, problems []Problem) ([]string, []Problem) {
	var members []string
	size := -len(separator)
	add := func(text string) {
		if text != "" {
			members = append(members, text)
			size += len(separator) + len(text)
		}
	}
	for i := range up.Labels {
		l := &up.Labels[i]
		add(up.member(l, u.word(up.Vocabulary, l)))
		delete(up.members, l.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(up.members)) {
		text, err := marshalMember(name, up.members[name])
		if err != nil || size+len(separator)+len(text) > Limit {
			problems = addProblem(problems, TooLong, up.Field, name)
			continue
		}
		add(text)
	}
	if len(members) == 0 {
		return nil, problems
	}
	return []string{strings.Join(members, separator)}, problems
}

// usage merges one field of preferences. ours are the policy's lines for it. If the policy does not publish the field,
// usage does not add it to a response. But if the upstream sends the field, usage makes it at least as strict as the
// policy.
func (a *applier) usage(f preferenceField, ours []string) {
	u, theirs := &a.values.usage, a.header[f.Field]
	if len(theirs) == 0 {
		a.unmerged(f.Field, ours)
		return
	}
	if slices.Equal(theirs, ours) || !u.published(f.Vocabulary) && !u.Restrictions().Stated() {
		return
	}
	up, problems := f.read(theirs)
	lines, problems := up.merge(u, problems)
	a.problems = append(a.problems, problems...)
	a.header[f.Field] = lines
}
