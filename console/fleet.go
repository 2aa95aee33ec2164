// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// node is one server of a fleet.
type node struct {
	Name    string
	Policy  string // its name
	SHA256  string
	Loaded  time.Time
	Visits  int64
	Dropped int64
	Gone    bool // it was there in the last day, and does not answer now
	Failing bool // it does not use the newest state of its policy's source
}

// nodes are the servers that Prometheus knows of.
func (v *view) nodes() ([]node, error) {
	p := v.options.prometheus
	at := v.now.Truncate(rememberFor)
	by := map[string]*node{}
	var order []string
	get := func(s sample) *node {
		name := s.Metric["instance"]
		if by[name] == nil {
			by[name] = &node{Name: name}
			order = append(order, name)
		}
		return by[name]
	}
	days := fmt.Sprintf("[%dd]", v.Days)
	for _, q := range []struct {
		query string
		add   func(*node, sample)
	}{
		{"max by (instance) (last_over_time(caddy_robots_policy_sites[1d]))", func(n *node, _ sample) { n.Gone = true }},
		{"caddy_robots_policy_info", func(n *node, s sample) {
			n.Gone = false
			n.Policy, n.SHA256 = join(n.Policy, s.Metric["policy"]), join(n.SHA256, s.Metric["sha256"])
		}},
		{"max by (instance) (caddy_robots_policy_loaded_timestamp_seconds)", func(n *node, s sample) { n.Loaded = time.Unix(int64(s.Value.value), 0) }},
		{"min by (instance) (caddy_robots_policy_last_reload_successful)", func(n *node, s sample) { n.Failing = s.Value.value == 0 }},
		{"sum by (instance) (increase(" + metricVisits + days + "))", func(n *node, s sample) { n.Visits = round(s.Value.value) }},
		{"sum by (instance) (increase(caddy_robots_policy_visits_dropped_total" + days + "))", func(n *node, s sample) { n.Dropped = round(s.Value.value) }},
	} {
		samples, err := p.instant(v.ctx, q.query, at)
		if err != nil {
			return nil, err
		}
		for _, s := range samples {
			q.add(get(s), s)
		}
	}
	all := make([]node, 0, len(order))
	for _, name := range order {
		all = append(all, *by[name])
	}
	slices.SortFunc(all, func(a, b node) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}

func join(a, b string) string {
	if a == "" || a == b {
		return b
	}
	return a + " " + b
}

// fleetNotices says which nodes disagree, fail or are gone.
func (v *view) fleetNotices() (all []notice) {
	if !v.Fleet() {
		return nil
	}
	nodes, err := v.nodes()
	if err != nil {
		return []notice{{Screen: "health", Heading: "The numbers of the fleet cannot be read", Text: "This server's pages work, but " + err.Error() + "."}}
	}
	var gone, failing []string
	versions := map[string]string{}
	differ := false
	for _, n := range nodes {
		switch {
		case n.Gone:
			gone = append(gone, n.Name)
			continue
		case n.Failing:
			failing = append(failing, n.Name)
		}
		if before, ok := versions[n.Policy]; ok && before != n.SHA256 {
			differ = true
		}
		versions[n.Policy] = n.SHA256
	}
	see := []action{{"See the nodes", v.Link("health", "#", "nodes")}}
	if differ {
		all = append(all, notice{Alarm: true, Screen: "health", Heading: "The nodes do not serve the same policy", Actions: see,
			Text: "Crawlers get another robots.txt from one node than from the next. Right after publishing this lasts a few seconds."})
	}
	if len(failing) > 0 {
		all = append(all, notice{Alarm: true, Screen: "health", Heading: plural(len(failing), "node does", "nodes do") + " not use the newest policy", Actions: see,
			Text: strings.Join(failing, ", ") + " cannot load the present state of its source. The version before stays in use there."})
	}
	if len(gone) > 0 {
		all = append(all, notice{Screen: "health", Heading: plural(len(gone), "node has", "nodes have") + " not been heard of", Actions: see,
			Text: strings.Join(gone, ", ") + " answered in the last day, and Prometheus cannot reach it now."})
	}
	return all
}
