// SPDX-License-Identifier: Apache-2.0

package console

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/activity/store"
)

// numbered is a publication in the history of a policy. Live is true for the publication in force.
type numbered struct {
	store.Publication
	Live bool
}

// history holds the published versions of the policy, and the texts that crawlers received.
type history struct {
	publications []numbered // the newest publication is first
	documents    []store.Document
	reads        []store.Read      // the latest first
	newest       map[served]string // the version of each robots.txt that crawlers received last; see isCurrent
}

// served identifies a robots.txt by its host and scheme. The robots.txt files for http and https can differ in their
// sitemaps.
type served struct{ host, scheme string }

func servedAs(r *store.Read) served {
	scheme, _, _ := strings.Cut(r.Form, ",")
	return served{r.Host, scheme}
}

func (v *view) readHistory() (*history, error) {
	h := &history{newest: map[served]string{}}
	r := v.store
	var p *activity.Publication
	if v.Running != nil && !v.Running.first {
		p = v.Running.Publication()
	}
	if r != nil {
		name := ""
		if p != nil {
			name = p.Name
		}
		all, err := r.Publications(v.ctx, name)
		if err != nil {
			return nil, err
		}
		for _, x := range all {
			h.publications = append(h.publications, numbered{x, p != nil && x.ID == p.ID[:12] && x.Number == p.Number})
		}
	}
	if p != nil && h.live() == nil { // the publication is not stored yet
		x := store.Publication{ID: p.ID[:12], Number: p.Number, Name: p.Name, Policy: v.Running.Version(), First: p.Time, Text: p.Text}
		h.publications = slices.Insert(h.publications, 0, numbered{x, true})
	}
	if r == nil {
		return h, nil
	}
	reads, err := r.Reads(v.ctx)
	if err != nil {
		return nil, err
	}
	h.reads = reads
	for i := range h.reads { // the latest first
		r, live := &h.reads[i], h.live()
		if _, ok := h.newest[servedAs(r)]; !ok && live != nil && r.Publication == live.ID {
			h.newest[servedAs(r)] = r.Version
		}
	}
	documents, err := r.Documents(v.ctx)
	for _, d := range documents {
		if v.allowed(d.Host) && (v.Host == "" || d.Host == v.Host) {
			h.documents = append(h.documents, d)
		}
	}
	return h, err
}

// live returns the publication in force, or nil if the history does not have this publication.
func (h *history) live() *numbered {
	for i := range h.publications {
		if h.publications[i].Live {
			return &h.publications[i]
		}
	}
	return nil
}

// isCurrent reports whether a crawler has read the robots.txt in force. It does not render this robots.txt for the
// comparison. Instead, it uses the last file that any crawler received while the version in force was served, from the
// same host and with the same scheme.
func (h *history) isCurrent(r *store.Read) bool { return h.newest[servedAs(r)] == r.Version }

// changes returns at most limit events, newest first. There is an event for each version that came into force, and for
// each crawler that read the robots.txt of the version in force for the first time.
func (v *view) changes(limit int) ([]event, error) {
	h, err := v.history()
	if err != nil {
		return nil, err
	}
	var all []event
	for i := range h.publications {
		p := &h.publications[i]
		all = append(all, event{Time: p.First, Text: p.Label() + " of the policy came into force" + v.signedOf(&p.Publication) + ".", Link: v.Link("published"), More: "Version"})
	}
	if live := h.live(); live != nil {
		for _, x := range h.reads {
			if v.allowed(x.Host) && x.Publication == live.ID && x.Number == live.Number {
				all = append(all, event{Time: x.First, Text: fmt.Sprintf("%s read the robots.txt of %s on %s for the first time.", shorten(x.Crawler), live.Label(), shorten(x.Host)), Link: v.Link("crawler", "name", x.Crawler), More: "Crawler"})
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
	case "policy":
		if !v.showsText() {
			return failed(http.StatusForbidden, "this policy has rules for hosts of other sites, so only the console in Caddy's global options shows it")
		}
		found, ok, err := v.versionOf(id)
		if err != nil {
			return err
		}
		if ok {
			text, name = found, "policy-"+shortVersion(id)+".yaml"
		}
	case "robots":
		for _, t := range h.documents {
			if t.Version == id {
				text, name = t.Text, "robots.txt"
			}
		}
	}
	if name == "" {
		return failed(http.StatusNotFound, "this version is not stored")
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Content-Disposition", `inline; filename="`+name+`"`)
	_, err = io.WriteString(w, text) //nolint:gosec // the type is text/plain, and browsers must not guess another type
	return err
}
