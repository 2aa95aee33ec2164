// SPDX-License-Identifier: Apache-2.0

package store

import "github.com/robotspolicy/caddy-robots-policy/activity"

// maxNames limits the number of pairs of a host and a crawler that have rows in an hour. A limit is needed because
// clients can invent both, and the totals are stored for a year.
const maxNames = 10_000

// other represents all hosts, and all names of unlisted clients, that do not have their own rows.
const other = "(other)"

// names counts the pairs of a host and a crawler in an hour.
type names struct {
	hour int64
	seen map[pair]struct{}
}

type pair struct{ host, crawler string }

// bound replaces the host of the request v by the constant other if v's hour already has maxNames pairs of a host and a
// crawler, and v has a new pair. It also clears v.Robots, because the constant represents several hosts with different
// robots.txt files.
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
