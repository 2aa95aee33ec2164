// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/policies"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
	"github.com/robotspolicy/caddy-robots-policy/site"
	"github.com/robotspolicy/caddy-robots-policy/source"
)

// own returns the Readings of this server. They say which text of robots.txt each crawler has read last on each host.
func (x *exchange) own() []site.Reading {
	all := slices.Clone(x.restored)
	for _, d := range policies.Pool.Loaded() {
		all = append(all, d.Current().Memory.Readings.All()...)
	}
	all = newest(all)
	unverified := 0
	all = slices.DeleteFunc(all, func(r site.Reading) bool {
		if !r.Verified {
			unverified++
		}
		return !r.Verified && unverified > maxUnverified
	})
	return all[:min(len(all), maxReadings)]
}

// maxPolicies limits the number of policies in a message.
const maxPolicies = 100

// served returns the hashes of all policies that this server serves, keyed by the names of the policies. The hash of a
// policy that does not have a version yet is "".
func served() map[string]string {
	all := map[string]string{}
	for _, d := range slices.Concat(policies.Pool.Waiting(), policies.Pool.Unavailable()) {
		if len(all) < maxPolicies {
			all[d.Name] = ""
		}
	}
	for _, d := range policies.Pool.Documents() {
		if len(all) < maxPolicies {
			all[d.Name] = d.Current().SHA256
		}
	}
	return all
}

// newest sorts readings: readings of verified crawlers come first, and newer readings before older ones. It keeps only
// the first reading for each crawler, identity, host and policy.
func newest(all []site.Reading) []site.Reading {
	rank := map[bool]int{true: 0, false: 1}
	slices.SortFunc(all, func(a, b site.Reading) int {
		return cmp.Or(rank[a.Verified]-rank[b.Verified], cmp.Compare(b.At, a.At), strings.Compare(a.Crawler, b.Crawler), strings.Compare(a.Host, b.Host))
	})
	type id struct {
		crawler, host, policy string
		verified              bool
	}
	seen := map[id]bool{}
	return slices.DeleteFunc(all, func(r site.Reading) bool {
		k := id{r.Crawler, r.Host, r.Policy, r.Verified}
		before := seen[k]
		seen[k] = true
		return before
	})
}

// learn adds Readings to each policy, so that this server can detect violations of versions that crawlers read
// elsewhere. The Readings come from other servers, and from this server before its restart. A Reading contains only the
// hash of a version. learn finds the version if this server serves or has served it, or if the policy's history
// contains it.
func (x *exchange) learn(ctx context.Context) {
	all := slices.Clone(x.restored)
	x.mu.Lock()
	for _, p := range x.peers {
		all = append(all, p.Readings...)
	}
	x.mu.Unlock()
	by, known := map[string][]site.Reading{}, map[string]bool{}
	for _, r := range newest(all) {
		by[r.Policy] = append(by[r.Policy], r)
	}
	documents := policies.Pool.Loaded()
	sites := make([]map[string]*site.Site, len(documents))
	for i, d := range documents {
		now := d.Current()
		sites[i] = now.Memory.Readings.Sites()
		sites[i][now.SHA256] = now.Site
		for sum := range sites[i] {
			known[sum] = true
		}
	}
	var unknown []string
	for sum := range by {
		if !known[sum] {
			unknown = append(unknown, sum)
		}
	}
	for i, d := range documents {
		if len(unknown) > 0 && d.Writable() {
			x.addOlder(ctx, d, unknown, sites[i])
		}
		var readings []site.Reading
		for sum := range sites[i] {
			readings = append(readings, by[sum]...)
		}
		d.Current().Memory.Readings.SetElsewhere(newest(readings), sites[i])
	}
}

// addOlder looks in the history of the policy d for the versions whose hashes are in sums. It stores the versions that
// it finds in into.
func (x *exchange) addOlder(ctx context.Context, d *source.Document, sums []string, into map[string]*site.Site) {
	id := func(sum string) string { return d.Name + " " + sum }
	if slices.ContainsFunc(sums, func(sum string) bool { _, ok := x.older[id(sum)]; return !ok }) {
		st, err := d.Standing(ctx)
		if err != nil {
			return
		}
		if len(x.older) > maxOlder {
			clear(x.older)
		}
		for _, sum := range sums {
			x.older[id(sum)] = nil
		}
		for _, v := range st.History {
			if slices.Contains(sums, v.SHA256) {
				x.older[id(v.SHA256)], _ = site.LoadWith(d.Name, []byte(v.Text), policyfile.Options{Accepted: true})
			}
		}
	}
	for _, sum := range sums {
		if s := x.older[id(sum)]; s != nil {
			into[sum] = s
		}
	}
}
