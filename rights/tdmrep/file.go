// SPDX-License-Identifier: Apache-2.0

package tdmrep

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy/solve"
	"github.com/robotspolicy/caddy-robots-policy/rights"
)

// Rule is the declaration for the paths that match a location.
type Rule struct {
	Location pathpattern.Pattern
	Declaration
}

// File holds the rules of a tdmrep.json. The first rule that matches a path applies.
type File struct {
	Rules []Rule
}

// at returns the file's declaration about paths that match a pattern. It ignores rules whose locations do not cover all
// these paths.
func (f *File) at(p pathpattern.Pattern) Declaration {
	for _, r := range f.Rules {
		if r.Location.Covers(p) {
			return r.Declaration
		}
	}
	return Declaration{}
}

// New returns the file of a view. policyURL is the URL of the TDM policy, or "". exact is false if the file is
// stricter than the view.
func New(v *rights.View, policyURL string) (f *File, exact bool) {
	cells, exact := v.Cells()
	f = &File{}
	for _, c := range cells {
		if d := Of(c.Value.Verdicts(), policyURL); d.Reservation != Unset {
			f.Rules = append(f.Rules, Rule{c.Pattern, d})
		}
	}
	f.sort()
	f.reduce()
	return f, exact
}

// sort sorts the rules by the length of their location, longest first.
func (f *File) sort() {
	slices.SortStableFunc(f.Rules, func(a, b Rule) int {
		return cmp.Or(b.Location.Len()-a.Location.Len(), strings.Compare(a.Location.String(), b.Location.String()))
	})
}

// reduce drops unnecessary rules. A rule is unnecessary if a later rule with the same declaration covers its location,
// because the later rule then applies to the same paths. But a rule with another declaration between the two must not
// overlap the location.
func (f *File) reduce() {
	for i, r := range slices.Backward(f.Rules) {
		for _, next := range f.Rules[i+1:] {
			if next.Declaration == r.Declaration {
				if next.Location.Covers(r.Location) {
					f.Rules = slices.Delete(f.Rules, i, i+1)
					break
				}
				continue
			}
			if next.Location.Overlaps(r.Location) {
				break
			}
		}
	}
}

const maxRules = 1000

// Merge returns a file that reserves all rights that f or other reserves. The result exact is false if merged reserves
// more rights than the two files, because their locations overlap in too many ways. Then the merged file leaves out
// exceptions or, if there are many locations, reserves every path.
func (f *File) Merge(other *File) (merged *File, exact bool) {
	var patterns []pathpattern.Pattern
	seen := map[pathpattern.Pattern]bool{}
	for _, rules := range [][]Rule{f.Rules, other.Rules} {
		for _, r := range rules {
			if !seen[r.Location] {
				seen[r.Location] = true
				patterns = append(patterns, r.Location)
			}
		}
	}
	merged = &File{}
	form := solve.Form[[2]Declaration]{
		Value: func(p pathpattern.Pattern) [2]Declaration { return [2]Declaration{f.at(p), other.at(p)} },
		Same:  func(a, b [2]Declaration) bool { return a[0].Merge(a[1]) == b[0].Merge(b[1]) },
		Alike: func(a, b [2]Declaration) bool { return a == b },
	}
	if len(patterns) <= maxRules {
		cells, ok := form.Cells(patterns)
		if ok {
			for _, c := range cells {
				if d := c.Value[0].Merge(c.Value[1]); d.Reservation != Unset {
					merged.Rules = append(merged.Rules, Rule{c.Pattern, d})
				}
			}
			merged.sort()
			merged.reduce()
			return merged, true
		}
	}
	for _, r := range slices.Concat(f.Rules, other.Rules) {
		if r.Reservation != Reserved {
			continue
		}
		if len(patterns) > maxRules {
			merged.Rules = []Rule{{pathpattern.All, r.Declaration}}
			return merged, false
		}
		merged.Rules = append(merged.Rules, r)
	}
	for _, r := range slices.Concat(f.Rules, other.Rules) {
		if r.Reservation == NotReserved {
			merged.Rules = append(merged.Rules, r)
		}
	}
	return merged, !f.hasExceptions() && !other.hasExceptions()
}

func (f *File) hasExceptions() bool {
	for i, r := range f.Rules {
		if r.Reservation == NotReserved && slices.ContainsFunc(f.Rules[i+1:], func(next Rule) bool {
			return next.Reservation == Reserved && next.Location.Overlaps(r.Location)
		}) {
			return true
		}
	}
	return false
}

type jsonRule struct {
	Location    string `json:"location"`
	Reservation int    `json:"tdm-reservation"`
	Policy      string `json:"tdm-policy,omitempty"`
}

// JSON returns the file as JSON in the format of tdmrep.json.
func (f *File) JSON() []byte {
	b := bytes.NewBufferString("[")
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	for i, r := range f.Rules {
		if i > 0 {
			b.Truncate(b.Len() - len("\n"))
			b.WriteString(",")
		}
		b.WriteString("\n  ")
		if err := e.Encode(jsonRule{r.Location.String(), int(r.Reservation - NotReserved), r.Policy}); err != nil {
			panic("tdmrep: writing into memory: " + err.Error())
		}
	}
	b.WriteString("]\n")
	return b.Bytes()
}

// Document returns the document that hosts serve for the file.
func (f *File) Document() *rights.Document {
	doc := rights.NewDocument(f.JSON(), MediaType)
	doc.Source = f
	return doc
}

// MediaType is the media type of the file.
const MediaType = "application/json"

// MergeInto implements [rights.SiteDocument].
func (f *File) MergeInto(ours *rights.Document) (both *rights.Document, exact bool) {
	merged, exact := ours.Source.(*File).Merge(f)
	return merged.Document(), exact
}

// IsLikely reports whether a body is likely to be JSON. It returns false for the HTML page that some applications serve
// for every path.
func IsLikely(body []byte) bool {
	start := bytes.TrimLeft(bytes.TrimPrefix(body, []byte("\ufeff")), " \t\r\n")
	return bytes.HasPrefix(start, []byte("[")) || bytes.HasPrefix(start, []byte("{"))
}
