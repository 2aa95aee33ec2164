// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"slices"
	"strings"
)

// Limits are the qualifiers of several permissions that all hold. Nil is none.
type Limits []*Qualifiers

// Strings is each limit as name=value, in the documents' order: of each kind the
// strictest, and all that are neither stricter nor laxer than each other.
func (l Limits) Strings() []string {
	if len(l) == 1 {
		return l[0].Strings()
	}
	strictest := map[string]limit{}
	for _, q := range l {
		for _, text := range q.text {
			x := limitOf(q, text)
			if have, ok := strictest[x.kind]; !ok || x.size < have.size {
				strictest[x.kind] = x
			}
		}
	}
	any := string(QualifierProhibitedModification) + "=any"
	_, nothing := strictest[any]
	texts := make([]string, 0, len(strictest))
	for kind, x := range strictest {
		if nothing && kind != any && strings.HasPrefix(kind, string(QualifierProhibitedModification)+"=") {
			continue
		}
		texts = append(texts, x.text)
	}
	slices.SortFunc(texts, func(a, b string) int { return cmp.Or(qualifierRank(a)-qualifierRank(b), strings.Compare(a, b)) })
	return texts
}

// limit is one qualifier. Of those of one kind the smaller is the stricter.
type limit struct {
	kind string
	size int64
	text string
}

func limitOf(q *Qualifiers, text string) limit {
	name, value, _ := strings.Cut(text, "=")
	if name == string(QualifierMaxLength) {
		return limit{name + " " + string(q.MaxLength.Unit), int64(q.MaxLength.N), text}
	}
	if name != string(QualifierTimeLimit) {
		return limit{name + "=" + value, 0, text}
	}
	switch t := q.TimeLimit; t.Kind {
	case UntilDate:
		return limit{name + " until", t.Last.Unix(), text}
	case ForDays:
		return limit{name + " days", int64(t.Days), text}
	case NoTimeLimit, UntilRecrawled:
	}
	return limit{name, 0, text}
}
