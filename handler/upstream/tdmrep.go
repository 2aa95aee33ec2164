// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"bytes"
	"sync"

	"github.com/robotspolicy/caddy-robots-policy/rights"
	"github.com/robotspolicy/caddy-robots-policy/rights/tdmrep"
)

// TDMRepFile is a site's own tdmrep.json. It keeps what it was last merged with.
type TDMRepFile struct {
	Notes []string // what is unusual about it, or why it cannot be read

	file *tdmrep.File // empty if it cannot be read

	mu     sync.Mutex
	merged map[*tdmrep.File]*rights.Document // with the files of policies; sites may share this one
	noted  bool                              // Notes
}

func parseTDMRep(data []byte) *TDMRepFile {
	f, notes, err := tdmrep.Parse(data)
	if err != nil { // readers get nothing from it either
		return &TDMRepFile{file: &tdmrep.File{}, Notes: []string{err.Error()}}
	}
	return &TDMRepFile{file: f, Notes: notes}
}

// maxMerged bounds how many merged documents are remembered for one file.
const maxMerged = 32

// Merged is the document of ours and the site's own together, and what there is to
// report of it, each once: the notes, and that more is reserved than either file says.
func (t *TDMRepFile) Merged(ours *tdmrep.File) (both *rights.Document, notes []string, stricter bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if both = t.merged[ours]; both != nil {
		return both, nil, false
	}
	merged, exact := ours.Merge(t.file)
	both = merged.Document()
	if t.merged == nil || len(t.merged) >= maxMerged {
		t.merged = map[*tdmrep.File]*rights.Document{}
	}
	t.merged[ours] = both
	if !t.noted {
		notes, t.noted = t.Notes, true
	}
	return both, notes, !exact
}

// looksLikeJSON reports whether a body is JSON rather than a page that an application serves for every path.
func looksLikeJSON(_ string, body []byte) bool {
	start := bytes.TrimLeft(bytes.TrimPrefix(body, []byte("\ufeff")), " \t\r\n")
	return bytes.HasPrefix(start, []byte("[")) || bytes.HasPrefix(start, []byte("{"))
}
