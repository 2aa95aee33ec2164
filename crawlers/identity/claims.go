// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"fmt"

	"github.com/robotspolicy/caddy-robots-policy/claim"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
)

// IsStale reports whether the list is too old to be used, or will soon be too old, or could not be fetched the last
// time.
func (l *ListStatus) IsStale() bool {
	return l.Old != "" || l.Refreshed && (l.Error != "" || !l.Fresh && !l.AsOf.IsZero())
}

// Stale returns the URLs of the stale lists (see [ListStatus.IsStale]), and of the key directories whose last fetch
// failed.
func (s *Status) Stale() (all []string) {
	for i := range s.Lists {
		if s.Lists[i].IsStale() {
			all = append(all, s.Lists[i].URL)
		}
	}
	for i := range s.Directories {
		if s.Directories[i].Error != "" {
			all = append(all, s.Directories[i].URL)
		}
	}
	return all
}

// listsSubject holds the data that [listsCurrent] judges.
type listsSubject struct {
	Used  claim.Known[int] `gap:"no-lists" what:"address lists are not in use, so crawlers are not verified by their addresses" close:"write \"verify lists\" in robots_policy"`
	Stale int
}

// listsCurrent is the claim that all lists of addresses and keys are recent enough.
var listsCurrent = claim.Register("lists-current", func(s listsSubject) claim.Finding {
	used, _ := s.Used.Get()
	lists := english.Number(int64(used)) + map[bool]string{true: " list of addresses or keys", false: " lists of addresses and keys"}[used == 1]
	f := claim.Finding{Fails: s.Stale > 0, Text: "None of " + lists + " is out of date", Unjudged: "It cannot be judged whether the lists of addresses and keys are out of date"}
	if f.Fails {
		f.Text = fmt.Sprintf("%d of %s %s out of date", s.Stale, lists, map[bool]string{true: "is", false: "are"}[s.Stale == 1])
	}
	return f
})

// ListsCurrent judges the age of the lists and keys in use. It ignores a list without a date, unless fetching this list
// has failed.
func (s *Status) ListsCurrent() claim.Claim {
	subject, used := listsSubject{Stale: len(s.Stale())}, 0
	for i := range s.Lists {
		used += map[bool]int{true: 1}[!s.Lists[i].AsOf.IsZero() || s.Lists[i].IsStale()]
	}
	for i := range s.Directories {
		used += map[bool]int{true: 1}[!s.Directories[i].Fetched.IsZero() || s.Directories[i].Error != ""]
	}
	if used > 0 {
		subject.Used = claim.Read(used, claim.Coverage{})
	}
	return claim.Judge(listsCurrent, subject)
}
