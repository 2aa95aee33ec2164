// SPDX-License-Identifier: Apache-2.0

package store

import "github.com/robotspolicy/caddy-robots-policy/activity"

// maxNames is the number of pairs of a host and a crawler that have rows in an hour. Clients
// can make up both, and each would be a row in the totals that are kept for a year.
const maxNames = 10_000

// other stands for the hosts, and for the names of clients of unknown kind, that have no rows of their own.
const other = "(other)"

// names bounds the pairs of a host and a crawler in an hour.
type names struct {
	hour int64
	seen map[pair]struct{}
}

type pair struct{ host, crawler string }

// bound puts a request under other if there are too many names in its hour already. Nothing is
// known of what it read there.
func (n *names) bound(v *activity.Request) {
	if hour := v.Time.Unix() / 3600; hour != n.hour || n.seen == nil {
		n.hour, n.seen = hour, map[pair]struct{}{}
	}
	if _, ok := n.seen[pair{v.Host, v.Crawler}]; ok {
		return
	}
	if len(n.seen) < maxNames {
		n.seen[pair{activity.Text(v.Host), activity.Text(v.Crawler)}] = struct{}{}
		return
	}
	v.Host, v.Robots = other, ""
	if v.Category == activity.CategoryUnlisted {
		v.Crawler = other
	}
}
