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

// Apply puts v into the header h of a response, just before it is sent. h has the names as http.Header.Set
// writes them.
//
// It merges what an upstream or another handler has set: the result is never weaker than v and, except for
// what the problems name, never weaker than h. It does not depend on the order in which values are applied,
// nor on how often. Words that only allow (all, index, follow, …) are dropped. Each field is merged with
// itself, as its readers may not read the others, except that Robots-Tag in v also says what h has in
// X-Robots-Tag: readers of the new name may ignore the old one then.
//
// The problems, at most 32 a field, are usually nil.
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

// set puts a copy of lines under name: Caddy's header directive replaces text in place, which would
// change all later responses.
func (a *applier) set(name string, lines []string) {
	if a.spare == nil {
		v := a.values
		a.spare = make([]string, len(v.RobotsTag)+len(v.XRobotsTag)+len(v.ContentUsage))
	}
	n := copy(a.spare, lines)
	a.header[name], a.spare = a.spare[:n:n], a.spare[n:]
}

// unmerged reports whether a field needs no merging, and sets ours if nothing else is there.
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

// olderName is what Robots-Tag must repeat from the response's X-Robots-Tag, or nil.
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
