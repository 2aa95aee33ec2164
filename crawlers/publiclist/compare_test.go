// SPDX-License-Identifier: Apache-2.0

package publiclist

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
)

// Count is the number of User-Agents that the catalog recognizes, and the number of all User-Agents.
type Count struct {
	Recognized int `json:"recognized"`
	Total      int `json:"total"`
}

// Percent returns the recognized share in percent. For an empty list, it returns 100.
func (c Count) Percent() float64 {
	if c.Total == 0 {
		return 100
	}
	return 100 * float64(c.Recognized) / float64(c.Total)
}

// Missing is an entry of a collection with its unrecognized User-Agents.
type Missing struct {
	Name       string   `json:"name"`
	Kinds      []string `json:"further"`
	UserAgents []string `json:"user_agents"`
}

// Report is the result of comparing the catalog with a collection.
type Report struct {
	Format string `json:"list"`
	// Kinds counts User-Agents by kind. If an entry has several kinds, its User-Agents are counted for each kind.
	Kinds map[string]Count `json:"further"`
	// All counts each User-Agent of a crawler once. It does not count tools.
	All     Count     `json:"all"`
	Missing []Missing `json:"missing,omitempty"`
}

// Compare counts how many User-Agents of the collection r recognizes. The collection ai.robots.txt has tokens instead
// of headers. Some of its tokens are control tokens, which no header contains, so Compare also looks up these tokens in
// the catalog c.
func (l *List) Compare(c *crawlers.Catalog, r *crawlers.Recognizer) Report {
	report := Report{Format: l.Format, Kinds: map[string]Count{}}
	for _, e := range l.Entries {
		missing := Missing{Name: e.Name, Kinds: e.Kinds}
		for _, ua := range e.UserAgents {
			_, ok := r.Recognize(ua)
			if !ok && l.Format == FormatAI {
				_, ok = c.Lookup(ua)
			}
			for _, k := range e.Kinds {
				report.Kinds[k] = report.Kinds[k].add(ok)
			}
			if slices.Contains(e.Kinds, KindTool) {
				continue
			}
			report.All = report.All.add(ok)
			if !ok {
				missing.UserAgents = append(missing.UserAgents, ua)
			}
		}
		if missing.UserAgents != nil {
			report.Missing = append(report.Missing, missing)
		}
	}
	return report
}

func (c Count) add(ok bool) Count {
	c.Total++
	if ok {
		c.Recognized++
	}
	return c
}

// WriteTable prints the share of recognized User-Agents, with a line for each kind and a column for each collection.
func WriteTable(out io.Writer, reports []Report) error {
	var kinds []string
	for _, r := range reports {
		for k := range r.Kinds {
			kinds = append(kinds, k)
		}
	}
	slices.SortFunc(kinds, func(a, b string) int { return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b)) })
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "category\t")
	for _, r := range reports {
		fmt.Fprintf(w, "%s\t", r.Format)
	}
	fmt.Fprintln(w)
	line := func(name string, count func(r Report) Count) {
		fmt.Fprintf(w, "%s\t", name)
		for _, r := range reports {
			if c := count(r); c.Total == 0 {
				fmt.Fprint(w, "-\t")
			} else {
				fmt.Fprintf(w, "%d of %d, %.1f%%\t", c.Recognized, c.Total, c.Percent())
			}
		}
		fmt.Fprintln(w)
	}
	for _, k := range slices.Compact(kinds) {
		line(k, func(r Report) Count { return r.Kinds[k] })
	}
	line("all but tools", func(r Report) Count { return r.All })
	return w.Flush()
}

// rank returns the position of a kind in the order of a table. Categories that policies often name come first. Words
// that are not categories come last.
func rank(kind string) int {
	switch kind {
	case KindAI:
		return 0
	case string(crawlers.CategorySearch):
		return 1
	case KindNone:
		return 3
	case KindTool:
		return 4
	}
	return 2
}
