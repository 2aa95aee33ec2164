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

// Mode says what becomes of the lines that an upstream or another handler has
// set.
type Mode uint8

const (
	// Merge combines them with ours to the most restrictive. A field of which
	// we have nothing to say stays as it is.
	Merge Mode = iota
	// Replace drops them, also where we have nothing to say: the policy alone
	// speaks.
	Replace
)

// Options say how Apply works. The zero value touches no field.
type Options struct {
	Channels Channels
	Mode     Mode
	// Shared puts the slices of Values themselves into the header, which saves
	// Apply's one allocation. It is for servers where nothing changes a value in
	// place once it is set. Caddy's header directive does just that when it
	// replaces text, and would change the policy for all later responses.
	Shared bool
}

// Apply puts v into the header h of a response, once, just before the header
// goes out. h has the names as http.Header.Set writes them.
//
// In Merge mode the result is never weaker than v and, but for what the problems
// tell, never weaker than what h held. It does not depend on the order in which
// several values are applied, and applying one twice is the same as once. Words
// that only allow (all, index, follow, …) are not carried over. Each field is
// merged with itself only: a reader of one field may not read the others.
//
// The problems, at most 32 a field, are nil in the common case.
func Apply(h http.Header, v *Values, o Options) []Problem {
	if v == nil {
		return nil
	}
	a := applier{header: h, values: v, Options: o}
	if o.Channels&RobotsTag != 0 {
		a.rules(&robotsTag, v.RobotsTag)
	}
	if o.Channels&XRobotsTag != 0 {
		a.rules(&xRobotsTag, v.XRobotsTag)
	}
	if o.Channels&ContentUsage != 0 {
		a.usage(v.ContentUsage)
	}
	return a.problems
}

type applier struct {
	Options
	header   http.Header
	values   *Values
	spare    []string // backing of the slices that go into the header
	problems []Problem
}

// set puts lines, which are v's own, under name.
func (a *applier) set(name string, lines []string) {
	if len(lines) == 0 {
		delete(a.header, name)
		return
	}
	if !a.Shared {
		if a.spare == nil {
			v := a.values
			a.spare = make([]string, len(v.RobotsTag)+len(v.XRobotsTag)+len(v.ContentUsage))
		}
		n := copy(a.spare, lines)
		lines, a.spare = a.spare[:n:n], a.spare[n:]
	}
	a.header[name] = lines
}

// alone reports whether ours can go out as they are, and puts them out if so.
func (a *applier) alone(name string, ours []string) bool {
	theirs := a.header[name]
	switch {
	case a.Mode == Replace || len(theirs) == 0 && len(ours) > 0:
		a.set(name, ours)
	case len(ours) > 0 && !slices.Equal(theirs, ours):
		return false
	}
	return true
}

func (a *applier) rules(f *field, ours []string) {
	if a.alone(f.name, ours) {
		return
	}
	upstream, problems := f.read(a.header[f.name])
	a.problems = append(a.problems, problems...)
	lines, problems := f.compose(a.values, upstream)
	a.problems = append(a.problems, problems...)
	a.header[f.name] = lines
}

func (a *applier) usage(ours []string) {
	if a.alone(ContentUsageField, ours) {
		return
	}
	up, problems := readUsage(a.header[ContentUsageField])
	lines, problems := mergeUsage(a.values.usage, up, problems)
	a.problems = append(a.problems, problems...)
	a.header[ContentUsageField] = lines
}
