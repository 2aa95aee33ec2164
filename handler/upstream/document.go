// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"fmt"
	"sync"

	"github.com/robotspolicy/caddy-robots-policy/channels"
	"github.com/robotspolicy/caddy-robots-policy/rights"
)

// Document is a site's own rights document. It caches the results of merging it with the policy's documents.
type Document struct {
	Notes []string // what is unusual in the document, or why it cannot be parsed

	site rights.SiteDocument // empty if the document cannot be parsed

	mu sync.Mutex
	// keyed by the policy's document; sites with equal own documents share the map
	merged map[*rights.Document]*rights.Document
	noted  bool // Notes have been returned
}

// KindOf returns the Kind of a rights document that a site may also serve itself.
func KindOf(f *channels.File) Kind[Document] {
	return Kind[Document]{
		Name: f.Name, Path: f.Site.Path, Accept: f.Site.Type,
		Reject: func(_ string, body []byte) error {
			if f.Site.IsLikely(body) {
				return nil
			}
			return fmt.Errorf("this is not a %s", f.Name)
		},
		Parse: func(data []byte) *Document {
			site, notes, err := f.Site.Parse(data)
			if err != nil {
				notes = []string{err.Error()}
			}
			return &Document{site: site, Notes: notes}
		},
	}
}

// maxMerged limits the number of merged documents that a Document caches.
const maxMerged = 32

// Merged returns a document that combines the policy's document ours with the site's document. The first call also
// returns the notes about the site's document. For each value of ours, the first call reports in stricter whether the
// combined document is stricter than necessary, because it cannot express the restrictions of both documents exactly.
func (d *Document) Merged(ours *rights.Document) (both *rights.Document, notes []string, stricter bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if both = d.merged[ours]; both != nil {
		return both, nil, false
	}
	both, exact := d.site.MergeInto(ours)
	if d.merged == nil || len(d.merged) >= maxMerged {
		d.merged = map[*rights.Document]*rights.Document{}
	}
	d.merged[ours] = both
	if !d.noted {
		notes, d.noted = d.Notes, true
	}
	return both, notes, !exact
}
