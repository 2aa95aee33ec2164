// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
)

// QualifierName names a restriction on a permission (ACAP 1.0 section 2.5).
type QualifierName string

// The qualifiers of ACAP 1.0.
const (
	QualifierTimeLimit              QualifierName = "time-limit"
	QualifierMaxLength              QualifierName = "max-length"
	QualifierMustUseResource        QualifierName = "must-use-resource"
	QualifierProhibitedModification QualifierName = "prohibited-modification"
	QualifierMustIncludeResource    QualifierName = "must-include-resource"
	QualifierProhibitedContext      QualifierName = "prohibited-context"
	QualifierRequiredContext        QualifierName = "required-context"
)

// TimeLimitKind is a kind of time limit (ACAP 1.0 section 2.5.3.1).
type TimeLimitKind uint8

// The kinds of time limits.
const (
	NoTimeLimit    TimeLimitKind = iota
	UntilRecrawled               // until-recrawled
	UntilDate                    // until-yyyy-mm-dd
	ForDays                      // n-days; the days start with the first use of the resource in this way
)

// TimeLimit limits how long a usage is permitted.
type TimeLimit struct {
	Kind TimeLimitKind
	Last time.Time // for UntilDate, the end of the last permitted day in UTC
	Days int       // for ForDays, the number of days
}

// Passed reports whether the limit is a date that is before now. It returns false for limits without a date.
func (t TimeLimit) Passed(now time.Time) bool {
	return t.Kind == UntilDate && now.After(t.Last)
}

// LengthUnit is the unit of a Length.
type LengthUnit string

// The units of a length (ACAP 1.0, section 2.5.5.2.3).
const (
	Chars LengthUnit = "chars"
	Words LengthUnit = "words"
)

// Length is the maximum length of a snippet. An empty Unit means that there is no limit.
type Length struct {
	N    int
	Unit LengthUnit
}

// Qualifiers are the restrictions on a permission (ACAP 1.0 section 2.5).
type Qualifiers struct {
	TimeLimit              TimeLimit
	MaxLength              Length
	MustUseResource        string
	ProhibitedModification []string // "any", or some of "format", "style", "translation" and "annotation"
	MustIncludeResource    string
	ProhibitedContext      bool // the value is within-user-frame
	RequiredContext        bool // the value is within-original-frame

	text []string // the qualifiers as name=value, in the order of ACAP 1.0 section 2.5
}

// Strings returns each qualifier as name=value, in the order of ACAP 1.0 section 2.5.
func (q *Qualifiers) Strings() []string {
	if q == nil {
		return nil
	}
	return q.text
}

type qualifierSyntax struct {
	name   QualifierName
	usages []Usage
	value  string // the accepted values, for messages
	set    func(q *Qualifiers, v string) bool
}

var (
	presentations = []Usage{
		Present, PresentOriginal, PresentCurrentCopy, PresentOldCopy, PresentSnippet,
		PresentThumbnail, PresentOldSnippet, PresentOldThumbnail, PresentLink,
	}
	copies = []Usage{PresentOriginal, PresentCurrentCopy, PresentOldCopy}
)

// qualifierTable lists the qualifiers of ACAP 1.0 section 2.5 with their usages and values.
var qualifierTable = []qualifierSyntax{
	{
		QualifierTimeLimit, append([]Usage{Index, Preserve}, presentations...),
		"until-recrawled, until-YYYY-MM-DD or N-days", setTimeLimit,
	},
	{
		QualifierMaxLength,
		[]Usage{PresentSnippet, PresentOldSnippet},
		"N-chars or N-words", setMaxLength,
	},
	{
		QualifierMustUseResource, append([]Usage{Index}, presentations...),
		"a URI without spaces, quotes or #, or the-acap:extract:id:NAME, where id may also be class or meta", func(q *Qualifiers, v string) bool {
			q.MustUseResource = v
			return isValue(v) && isKnownScheme(v, "extract:id:", "extract:class:", "extract:meta:")
		},
	},
	{
		QualifierProhibitedModification, append([]Usage{Present}, copies...),
		"the word any alone, or one or more of format, style, translation and annotation, each only once", setModification,
	},
	{
		QualifierMustIncludeResource, presentations,
		"a URI without spaces, quotes or #, or the-acap:credit:TEXT or the-acap:link:TEXT", func(q *Qualifiers, v string) bool {
			q.MustIncludeResource = v
			return isValue(v) && isKnownScheme(v, "credit:", "link:")
		},
	},
	{
		QualifierProhibitedContext, copies,
		"within-user-frame", func(q *Qualifiers, v string) bool { q.ProhibitedContext = true; return v == "within-user-frame" },
	},
	{
		QualifierRequiredContext, copies,
		"within-original-frame", func(q *Qualifiers, v string) bool { q.RequiredContext = true; return v == "within-original-frame" },
	},
}

// AllQualifiers yields the name of every qualifier and a description of its values, in the order of ACAP 1.0 section
// 2.5.
func AllQualifiers(yield func(name QualifierName, values string) bool) {
	for _, s := range qualifierTable {
		if !yield(s.name, s.value) {
			return
		}
	}
}

// QualifiersOf lists the qualifiers that a usage can take.
func QualifiersOf(u Usage) []QualifierName {
	var names []QualifierName
	for _, s := range qualifierTable {
		if slices.Contains(s.usages, u) {
			names = append(names, s.name)
		}
	}
	return names
}

// SetQualifier adds a qualifier to a permission about usage u. It returns an error if the usage cannot have the
// qualifier or the value is invalid. The error says which values ACAP 1.0 section 2.5 accepts.
// QualifierProhibitedModification may be set several times, once for each modification. The value "any" cannot be
// combined with other values.
func (q *Qualifiers) SetQualifier(u Usage, name QualifierName, value string) error {
	i := slices.IndexFunc(qualifierTable, func(s qualifierSyntax) bool { return s.name == name })
	if i < 0 {
		return fmt.Errorf("there is no qualifier %q", name)
	}
	s := qualifierTable[i]
	if !slices.Contains(s.usages, u) {
		takes := QualifiersOf(u)
		if len(takes) == 0 {
			return fmt.Errorf("%q takes no qualifiers", u)
		}
		return fmt.Errorf("the usage %q cannot have the qualifier %q; it can have %s", u, name, english.List(takes, "and"))
	}
	if !s.set(q, value) {
		return fmt.Errorf("invalid %s %q: must be %s", name, value, s.value)
	}
	q.text = append(q.text, string(name)+"="+value)
	slices.SortStableFunc(q.text, func(a, b string) int { return qualifierRank(a) - qualifierRank(b) })
	return nil
}

func qualifierRank(text string) int {
	name, _, _ := strings.Cut(text, "=")
	return slices.IndexFunc(qualifierTable, func(s qualifierSyntax) bool { return string(s.name) == name })
}

func setTimeLimit(q *Qualifiers, v string) bool {
	if v == "until-recrawled" {
		q.TimeLimit = TimeLimit{Kind: UntilRecrawled}
		return true
	}
	if date, ok := strings.CutPrefix(v, "until-"); ok {
		day, err := time.Parse(time.DateOnly, date)
		q.TimeLimit = TimeLimit{Kind: UntilDate, Last: day.AddDate(0, 0, 1).Add(-time.Second)}
		return err == nil
	}
	n, ok := number(v, "-days")
	q.TimeLimit = TimeLimit{Kind: ForDays, Days: n}
	return ok
}

func setMaxLength(q *Qualifiers, v string) bool {
	for _, unit := range []LengthUnit{Chars, Words} {
		if n, ok := number(v, "-"+string(unit)); ok {
			q.MaxLength = Length{N: n, Unit: unit}
			return true
		}
	}
	return false
}

func setModification(q *Qualifiers, v string) bool {
	have := q.ProhibitedModification
	if !slices.Contains([]string{"any", "format", "style", "translation", "annotation"}, v) ||
		slices.Contains(have, v) || slices.Contains(have, "any") || v == "any" && len(have) > 0 {
		return false
	}
	q.ProhibitedModification = append(have, v)
	return true
}

func number(v, suffix string) (int, bool) {
	digits, ok := strings.CutSuffix(v, suffix)
	if !ok || digits == "" || strings.Trim(digits, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(digits, 10, 32)
	return int(n), err == nil
}

// isKnownScheme checks a URI in ACAP's own scheme, such as "the-acap:link:TEXT" (sections 2.5.3.2 and 2.5.5.2.5). It
// reports whether "the-acap:" is followed by one of the given kinds, such as "link:", and a name. It returns true for
// URIs of other schemes.
func isKnownScheme(v string, kinds ...string) bool {
	rest, own := strings.CutPrefix(strings.ToLower(v), "the-acap:")
	return !own || slices.ContainsFunc(kinds, func(kind string) bool { return len(rest) > len(kind) && strings.HasPrefix(rest, kind) })
}

// isValue reports whether v is a qualifier-value of ACAP 1.0 section 3.
func isValue(v string) bool {
	return v != "" && !strings.ContainsFunc(v, func(c rune) bool { return c <= ' ' || c > '~' || c == '"' || c == '\'' || c == '#' })
}

// Limits holds the qualifiers of several permissions, which all apply. Limits is nil if there are no qualifiers.
type Limits []*Qualifiers

// Strings returns the qualifiers as name=value, in the order of ACAP 1.0 section 2.5. If several qualifiers limit the
// same thing, such as two lengths in words, it returns only the strictest one.
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

// limit is one qualifier. If two limits have the same kind, the limit with the smaller size is stricter.
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
