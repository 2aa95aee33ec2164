// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"sync"

	"github.com/robotspolicy/caddy-robots-policy/channels"
	"github.com/robotspolicy/caddy-robots-policy/rights"
)

// Document is a site's own document of a channel. It caches the result of the last merge.
type Document struct {
	Notes []string // what is unusual about it, or why it cannot be read

	site rights.SiteDocument // empty if it cannot be read

	mu     sync.Mutex
	merged map[*rights.Document]*rights.Document // with documents of policies; sites may share this one
	noted  bool                                  // Notes
}

// KindOf returns the Kind for the document of a channel, which a site may also serve itself.
func KindOf(f *channels.File) Kind[Document] {
	return Kind[Document]{
		Name: f.Name, Path: f.Site.Path, Accept: f.Site.Type,
		IsLikely: func(_ string, body []byte) bool { return f.Site.IsLikely(body) },
		Parse: func(data []byte) *Document {
			site, notes, err := f.Site.Parse(data)
			if err != nil {
				notes = []string{err.Error()}
			}
			return &Document{site: site, Notes: notes}
		},
	}
}

// maxMerged bounds how many merged documents are remembered for one file.
const maxMerged = 32

// Merged returns the document of ours and the site's own together, and what there is to
// report of it, each once: the notes, and that it is stricter than both.
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
