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

// Usage is the value of Content-Usage (draft-ietf-aipref-attach-05): Allowed is y, Disallowed is n, and
// Unstated is not written. It is for everyone.
type Usage struct{ rights.Verdicts }

// Combine unites preferences (draft-ietf-aipref-vocab §5.1): any no is no, else any yes is yes.
func (u Usage) Combine(t Usage) Usage {
	for i := range u.Verdicts {
		u.Verdicts[i] = max(u.Verdicts[i], t.Verdicts[i])
	}
	return u
}

// Restrictions are the preferences of u that disallow.
func (u Usage) Restrictions() Usage {
	for i, v := range u.Verdicts {
		if v != policy.Disallowed {
			u.Verdicts[i] = policy.Unstated
		}
	}
	return u
}

// String is the field's value, such as "train-ai=n, search=y", or "".
func (u Usage) String() string { return u.ContentUsage() }

// upstreamUsage has, of each label in an upstream's Content-Usage, the strictest member. Unknown labels are passed
// on, because the vocabulary is growing, and so are values that are not preferences.
type upstreamUsage map[string]httpsfv.Member

// readUsage reads each line separately, because a malformed one voids all. It combines equal keys by §5.1, where
// a reader of the joined lines would take the last. In a malformed line it reads each member separately, but only
// the disallowing ones, because such a line does not allow anything to readers of the whole field.
func readUsage(lines []string) (upstreamUsage, []Problem) {
	up := upstreamUsage{}
	problems := eachLine(lines, ContentUsageField, lastMemberEnd, func(line string, p []Problem) []Problem {
		line = strings.Trim(line, " \t")
		if line == "" {
			return p
		}
		whole, err := httpsfv.UnmarshalDictionary([]string{line})
		if err == nil {
			up.addAll(whole, unstated)
		}
		texts := splitMembers(line)
		if err == nil && len(texts) == len(whole.Names()) {
			return p
		}
		// The key occurs twice, and the Dictionary has only the last; or the line is malformed.
		least := unstated
		if err != nil {
			least = odd
			p = addProblem(p, Repaired, ContentUsageField, line)
		}
		for _, text := range texts {
			text = strings.Trim(text, " \t")
			if d, err := httpsfv.UnmarshalDictionary([]string{text}); err == nil {
				up.addAll(d, least)
			} else if !up.addLoosely(text) && text != "" {
				p = addProblem(p, Malformed, ContentUsageField, text)
			}
		}
		return p
	})
	return up, problems
}

// strictness orders what may be said of a label.
type strictness int

const (
	unstated strictness = iota
	allowed
	odd // it may mean anything
	disallowed
)

func (up upstreamUsage) addAll(d *httpsfv.Dictionary, least strictness) {
	for _, name := range d.Names() {
		if m, _ := d.Get(name); usageValue(m) >= least {
			up.add(name, m)
		}
	}
}

func (up upstreamUsage) add(name string, m httpsfv.Member) {
	if before, ok := up[name]; !ok || usageValue(before) <= usageValue(m) {
		up[name] = m
	}
}

// looseNo is a label with a value that is n or begins with the word no, in text that is not a Dictionary.
var looseNo = regexp.MustCompile(`(?i)([a-z*][a-z0-9_.*-]*)["' \t()]*[:=]["' \t()=:]*no?\b`)

// addLoosely adds what a malformed member disallows, and reports whether that is anything.
func (up upstreamUsage) addLoosely(text string) bool {
	found := looseNo.FindAllStringSubmatch(text, -1)
	for _, label := range found {
		up.add(ascii.Lower(label[1]), httpsfv.NewItem(httpsfv.Token("n")))
	}
	return len(found) > 0
}

// usageValue reads the Token y or n; anything else is odd and no error.
func usageValue(m httpsfv.Member) strictness {
	if item, ok := m.(httpsfv.Item); ok {
		switch item.Value {
		case httpsfv.Token("n"):
			return disallowed
		case httpsfv.Token("y"):
			return allowed
		}
	}
	return odd
}

// maxUsage bounds what is kept of an upstream's member for a label of ours, in bytes.
const maxUsage = 1 << 10

// member returns the stricter preference of u and the upstream for a usage, in the upstream's spelling if
// both are equal.
func (up upstreamUsage) member(name string, u policy.Verdict) string {
	ours := [...]strictness{policy.Unstated: unstated, policy.Allowed: allowed, policy.Disallowed: disallowed}[u]
	theirs := unstated
	if m, ok := up[name]; ok {
		theirs = usageValue(m)
		if text, err := marshalMember(name, m); err == nil && theirs >= ours && len(text) <= maxUsage {
			return text
		}
	}
	switch max(ours, theirs) {
	case disallowed, odd:
		return name + "=n"
	case allowed:
		return name + "=y"
	case unstated:
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

// mergeUsage writes both in one line. Unknown labels that do not fit in Limit are left out and reported.
func mergeUsage(u Usage, up upstreamUsage, problems []Problem) ([]string, []Problem) {
	var members []string
	size := -len(separator)
	add := func(text string) {
		if text != "" {
			members = append(members, text)
			size += len(separator) + len(text)
		}
	}
	for i, usage := range policy.RightsUsages() {
		name := usage.String()
		add(up.member(name, u.Verdicts[i]))
		delete(up, name)
	}
	for _, name := range slices.Sorted(maps.Keys(up)) {
		text, err := marshalMember(name, up[name])
		if err != nil || size+len(separator)+len(text) > Limit {
			problems = addProblem(problems, TooLong, ContentUsageField, name)
			continue
		}
		add(text)
	}
	if len(members) == 0 {
		return nil, problems
	}
	return []string{strings.Join(members, separator)}, problems
}
