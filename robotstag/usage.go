// SPDX-License-Identifier: Apache-2.0

package robotstag

import (
	"maps"
	"slices"
	"strings"

	"github.com/dunglas/httpsfv"

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

// upstreamUsage is an upstream's Content-Usage. Unknown labels are passed on: the vocabulary is growing.
type upstreamUsage struct {
	known Usage
	other map[string]httpsfv.Member
}

// readUsage reads each line by itself, because a malformed one voids all, and combines equal keys by §5.1,
// where a reader of the joined lines would take the last.
func readUsage(lines []string) (upstreamUsage, []Problem) {
	up := upstreamUsage{other: map[string]httpsfv.Member{}}
	problems := eachLine(lines, ContentUsageField, lastMemberEnd, func(line string, p []Problem) []Problem {
		line = strings.Trim(line, " \t")
		if line == "" {
			return p
		}
		whole, err := httpsfv.UnmarshalDictionary([]string{line})
		if err != nil {
			return addProblem(p, Malformed, ContentUsageField, line)
		}
		up.addAll(whole)
		if texts := splitMembers(line); len(texts) > len(whole.Names()) {
			// A key stands there twice, and the Dictionary has only the last.
			for _, text := range texts {
				if d, err := httpsfv.UnmarshalDictionary([]string{strings.Trim(text, " \t")}); err == nil {
					up.addAll(d)
				}
			}
		}
		return p
	})
	return up, problems
}

func (up *upstreamUsage) addAll(d *httpsfv.Dictionary) {
	for _, name := range d.Names() {
		m, _ := d.Get(name)
		up.add(name, m)
	}
}

func (up *upstreamUsage) add(name string, m httpsfv.Member) {
	p := usageValue(m)
	for i, u := range policy.RightsUsages() {
		if name == u.String() {
			up.known.Verdicts[i] = max(up.known.Verdicts[i], p)
			return
		}
	}
	if before, ok := up.other[name]; !ok || usageValue(before) <= p {
		up.other[name] = m
	}
}

// usageValue reads the Token y or n; anything else is unknown and no error.
func usageValue(m httpsfv.Member) policy.Verdict {
	if item, ok := m.(httpsfv.Item); ok {
		switch item.Value {
		case httpsfv.Token("n"):
			return policy.Disallowed
		case httpsfv.Token("y"):
			return policy.Allowed
		}
	}
	return policy.Unstated
}

// mergeUsage writes both in one line. Unknown labels that do not fit in Limit are left out and reported.
func mergeUsage(u Usage, up upstreamUsage, problems []Problem) ([]string, []Problem) {
	line := u.Combine(up.known).String()
	for _, name := range slices.Sorted(maps.Keys(up.other)) {
		d := httpsfv.NewDictionary()
		d.Add(name, up.other[name])
		text, err := httpsfv.Marshal(d)
		if err != nil || len(line)+len(separator)+len(text) > Limit {
			problems = addProblem(problems, TooLong, ContentUsageField, name)
			continue
		}
		if line != "" {
			line += separator
		}
		line += text
	}
	if line == "" {
		return nil, problems
	}
	return []string{line}, problems
}
