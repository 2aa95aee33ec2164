// SPDX-License-Identifier: Apache-2.0

package robotstag

import (
	"net/http"
	"slices"
)

// Channels are the fields that Apply touches.
type Channels uint8

// The channels; they can be combined with |.
const (
	RobotsTag Channels = 1 << iota
	XRobotsTag
	ContentUsage
	AllChannels = RobotsTag | XRobotsTag | ContentUsage
)

// Apply puts v into the header h of a response, once, just before the header
// goes out. h has the names as http.Header.Set writes them.
//
// What an upstream or another handler has set is merged: the result is never weaker than
// v and, but for what the problems name, never weaker than what h held. It does not
// depend on the order in which several values are applied, and applying one twice is the
// same as once. Words that only allow (all, index, follow, …) are dropped. Each field is
// merged with itself only, as a reader of one may not read the others, but for this: where
// v has Robots-Tag, it also says what h had in X-Robots-Tag, as who reads the new name may
// not look at the old one then.
//
// The problems, at most 32 a field, are nil in the common case.
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
	if channels&ContentUsage != 0 {
		a.usage(v.ContentUsage)
	}
	return a.problems
}

type applier struct {
	header   http.Header
	values   *Values
	spare    []string // backing of the slices that go into the header
	problems []Problem
}

// set puts a copy of lines, which are the values' own, under name: Caddy's header
// directive replaces text in place, which would change all later responses.
func (a *applier) set(name string, lines []string) {
	if a.spare == nil {
		v := a.values
		a.spare = make([]string, len(v.RobotsTag)+len(v.XRobotsTag)+len(v.ContentUsage))
	}
	n := copy(a.spare, lines)
	a.header[name], a.spare = a.spare[:n:n], a.spare[n:]
}

// unmerged reports whether there is nothing to merge in a field, and sets ours if only
// the policy speaks in it.
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
	older := a.olderName(f)
	if len(ours) == 0 || older == nil && a.unmerged(f.name, ours) {
		return
	}
	upstream, problems := f.read(a.header[f.name])
	a.problems = append(a.problems, problems...)
	for token, rules := range older {
		if rules = rules.WithoutUnknown().Restrictive(); token == Everyone || f.accepts(token) {
			upstream[token] = upstream[token].Union(rules)
		}
	}
	lines, problems := f.compose(a.values, upstream)
	a.problems = append(a.problems, problems...)
	a.header[f.name] = lines
}

// olderName is what the response says in X-Robots-Tag that Robots-Tag is to say too; nil
// for nothing.
func (a *applier) olderName(f *field) audiences {
	lines := a.header[XRobotsTagField]
	if f != &robotsTag || len(lines) == 0 || slices.Equal(lines, a.values.XRobotsTag) {
		return nil
	}
	found, _ := readXRobotsTag(lines) // merging that field reports its problems
	return found
}

func (a *applier) usage(ours []string) {
	if a.unmerged(ContentUsageField, ours) {
		return
	}
	up, problems := readUsage(a.header[ContentUsageField])
	lines, problems := mergeUsage(a.values.usage, up, problems)
	a.problems = append(a.problems, problems...)
	a.header[ContentUsageField] = lines
}
