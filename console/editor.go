// SPDX-License-Identifier: Apache-2.0

package console

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
)

// editorLine is a line in the gutter of the editor, next to the text.
type editorLine struct {
	N      int
	New    bool
	Class  string // err, warn, or empty without a diagnostic
	Target string // the ID of the diagnostic in the page
}

func (d *changeData) setLines(inserted map[int]bool) {
	n := strings.Count(strings.TrimSuffix(d.Text, "\n"), "\n") + 1
	d.Rows = n + 1
	d.Lines = make([]editorLine, n)
	for i := range d.Lines {
		d.Lines[i] = editorLine{N: i + 1, New: inserted[i+1]}
	}
	if d.Draft == nil {
		return
	}
	for i, x := range d.Draft.Diagnostics {
		if x.Severity == policy.Hint || x.Pos.Line < 1 || x.Pos.Line > n {
			continue
		}
		l := &d.Lines[x.Pos.Line-1]
		if l.Class == "err" {
			continue
		}
		l.Class, l.Target = "warn", fmt.Sprintf("d%d", i+1)
		if x.Severity == policy.Error {
			l.Class = "err"
		}
	}
}

// diagnosticsJSON returns the diagnostics of a draft to the editor while the user types.
func diagnosticsJSON(w http.ResponseWriter, v *view) error {
	if v.Running == nil {
		return failed(http.StatusNotFound, "no policy is loaded")
	}
	text := strings.ReplaceAll(v.r.PostFormValue("text"), "\r\n", "\n")
	d, err := checkDraft(v.ctx, v.Running.File(), text, v.stands().Returns(hashOf(text)))
	if err != nil {
		return err
	}
	type row struct {
		Line     int    `json:"line"`
		Severity string `json:"severity"`
		Message  string `json:"message"`
	}
	rows := []row{}
	for _, x := range d.Diagnostics {
		if x.Severity != policy.Hint {
			rows = append(rows, row{x.Pos.Line, x.Severity.String(), x.Message})
		}
	}
	w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(w).Encode(rows)
}

var schemaKey = regexp.MustCompile(`(?m)^ *"([a-z-]+)": \{$`)

// keywords returns the keys of a policy file. The editor offers them as completions.
var keywords = sync.OnceValue(func() string {
	found := map[string]bool{}
	for _, m := range schemaKey.FindAllSubmatch(policyfile.Schema(), -1) {
		found[string(m[1])] = true
	}
	for _, name := range []string{"allowed", "disallowed", "items", "not", "path", "properties"} {
		delete(found, name) // this word is a key of the schema, not of policy files
	}
	return strings.Join(slices.Sorted(maps.Keys(found)), " ")
})
