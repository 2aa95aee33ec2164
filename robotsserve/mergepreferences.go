// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
)

// refuse adds to lines of preferences what another file disallows everywhere: to each, as
// the line with the longest path replaces the others. It returns lines for keys of which
// none is for all paths.
func refuse(ours []Line, refused map[string][]string) (more []Line) {
	for _, k := range []struct{ key, name, no string }{{"content-usage", "Content-Usage", "=n"}, {"content-signal", "Content-Signal", "=no"}} {
		names := refused[k.key]
		if len(names) == 0 {
			continue
		}
		everywhere := false
		for i := range ours {
			l := &ours[i]
			if head, value, ok := strings.Cut(l.Text, ": "); ok && head == k.name {
				path, members := "", value
				if strings.HasPrefix(value, "/") || strings.HasPrefix(value, "*") {
					path, members, _ = strings.Cut(value, " ")
					path += " "
				} else {
					everywhere = true
				}
				l.Text = k.name + ": " + path + withRefused(members, names, k.no)
			}
		}
		if !everywhere {
			more = append(more, Line{Text: k.name + ": " + withRefused("", names, k.no), key: k.key, pattern: pathpattern.All})
		}
	}
	return more
}

// withRefused is a list of preferences in which some are disallowed.
func withRefused(members string, names []string, no string) string {
	var all []string
	for m := range strings.SplitSeq(members, ", ") {
		if name, _, _ := strings.Cut(m, "="); m != "" && !slices.Contains(names, name) {
			all = append(all, m)
		}
	}
	for _, name := range names {
		all = append(all, name+no)
	}
	return strings.Join(all, ", ")
}
