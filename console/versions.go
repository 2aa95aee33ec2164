// SPDX-License-Identifier: Apache-2.0

package console

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity/store"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
)

// numbered is a version of the policy with its number.
type numbered struct {
	store.Version
	Live bool
}

// Label is what pages call a version: the number of its publication or, if that was not
// counted, the start of its hash.
func (n *numbered) Label() string {
	if n.Number == "" {
		return shortVersion(n.Version.Version)
	}
	return "v" + n.Number
}

// history is what was published: the versions of the policy and of robots.txt.
type history struct {
	policies []numbered // newest first
	robots   []store.Version
	current  map[string]string // of each host, see currentRobots
}

func (v *view) history() (*history, error) {
	if v.versions == nil {
		h, err := v.readHistory()
		if err != nil {
			return nil, err
		}
		v.versions = h
	}
	return v.versions, nil
}

func (v *view) readHistory() (*history, error) {
	h := &history{current: map[string]string{}}
	r := v.store
	if r == nil {
		return h, nil
	}
	policies, err := r.Versions(v.ctx, store.PolicyVersion, "")
	if err != nil {
		return nil, err
	}
	robots, err := r.Versions(v.ctx, store.RobotsVersion, "")
	if err != nil {
		return nil, err
	}
	for _, p := range policies {
		if v.Running == nil || p.Name == v.Running.Site.File.Name {
			h.policies = append(h.policies, numbered{Version: p, Live: v.Running != nil && p.Version == v.Running.Version()})
		}
	}
	for _, t := range robots {
		if v.allowed(t.Host) && (v.Host == "" || t.Host == v.Host) {
			h.robots = append(h.robots, t)
		}
	}
	return h, nil
}

// live is the version in force, nil if the store does not have it.
func (h *history) live() *numbered {
	for i := range h.policies {
		if h.policies[i].Live {
			return &h.policies[i]
		}
	}
	return nil
}

// slack is by how much a robots.txt may be older than the policy that it is from: both
// are written down when a crawler first asks.
const slack = time.Minute

// policyOf is the version of the policy under which a robots.txt was first served.
func (h *history) policyOf(host, version string) *numbered {
	first := h.firstOf(host, version)
	if first.IsZero() {
		return nil
	}
	for i := range h.policies {
		if !h.policies[i].First.After(first.Add(slack)) {
			return &h.policies[i]
		}
	}
	return nil
}

// firstOf is when a robots.txt was first served; zero if the store does not have it.
func (h *history) firstOf(host, version string) time.Time {
	for _, t := range h.robots {
		if t.Host == host && t.Version == version {
			return t.First
		}
	}
	return time.Time{}
}

// label is what pages call the version of a robots.txt: that of its policy, or its own.
func (h *history) label(host, version string) string {
	if p := h.policyOf(host, version); p != nil {
		return p.Label()
	}
	return shortVersion(version)
}

// currentRobots is the version of the robots.txt of a host that is served now, as far as
// that is known; it need not be stored.
func (v *view) currentRobots(h *history, host string) string {
	version, ok := h.current[host]
	if !ok {
		version = v.findRobots(h, host)
		h.current[host] = version
	}
	return version
}

func (v *view) findRobots(h *history, host string) string {
	if v.Running != nil && !v.Running.merges {
		f, _ := robotsserve.Render(v.Running.Site.Policy, host, robotsserve.Options{})
		return robotsserve.Version(f.ETag)
	}
	live := h.live()
	for _, t := range h.robots {
		if live != nil && t.Host == host && !t.First.Add(slack).Before(live.First) {
			return t.Version // merged with the upstream's since the policy is in force
		}
	}
	return ""
}

// changes are the last things that changed, newest first.
func (v *view) changes(limit int) ([]event, error) {
	h, err := v.history()
	if err != nil {
		return nil, err
	}
	var all []event
	for i := range h.policies {
		p := &h.policies[i]
		all = append(all, event{Time: p.First, Text: p.Label() + " of the policy came into force" + v.noteOf(p.Version.Version) + ".", Link: v.Link("published"), More: "Version"})
	}
	if r := v.store; r != nil && h.live() != nil {
		reads, err := r.Reads(v.ctx, "", "")
		if err != nil {
			return nil, err
		}
		for _, x := range reads {
			if live := h.live(); v.allowed(x.Host) && x.Version == v.currentRobots(h, x.Host) && !x.First.Before(live.First) {
				all = append(all, event{Time: x.First, Text: fmt.Sprintf("%s read %s for the first time.", shorten(x.Crawler), live.Label()), Link: v.Link("crawler", "name", x.Crawler), More: "Crawler"})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b event) int { return b.Time.Compare(a.Time) })
	return all[:min(limit, len(all))], nil
}

// versionText sends the text of a version of the policy, or of a robots.txt.
func versionText(w http.ResponseWriter, v *view) error {
	h, err := v.history()
	if err != nil {
		return err
	}
	var text, name string
	switch kind, id := v.Param("kind"), v.Param("id"); kind {
	case store.PolicyVersion:
		if !v.showsText() {
			return failed(http.StatusForbidden, "this policy has rules for hosts of other sites: see it in the admin API")
		}
		for i := range h.policies {
			if h.policies[i].Version.Version == id && (v.may == nil || h.policies[i].Live) {
				text, name = h.policies[i].Text, h.policies[i].Label()+".yaml"
			}
		}
	case store.RobotsVersion:
		for _, t := range h.robots {
			if t.Version == id && (v.Host == "" || t.Host == v.Host) {
				text, name = t.Text, "robots.txt"
			}
		}
	}
	if name == "" {
		return failed(http.StatusNotFound, "this version is not stored")
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Content-Disposition", `inline; filename="`+name+`"`)
	_, err = w.Write([]byte(text))
	return err
}
