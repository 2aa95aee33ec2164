// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"encoding/csv"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity/store"
	"github.com/robotspolicy/caddy-robots-policy/crawlers"
)

// whoCameData holds the data of the page "Who came".
type whoCameData struct {
	Clients      []*client
	Total        counts
	Came         int // number of clients, except unlisted clients, before the filters
	Columns      []column
	Unknown      []*client
	UnknownTotal counts
	Naming       *naming
	Kinds        []crawlers.Category
	NoStore      bool

	Matching          int    // number of crawlers after the filters
	More, MoreUnknown string // links to more rows
}

// column is a heading of the table. A click on the heading sorts the table by this column.
type column struct {
	Key, Name, Class string
	Sorted           string // ascending or descending; empty if the table is not sorted by this column
	Link             string
}

// naming holds the lines that add an unlisted client to the policy as a crawler.
type naming struct{ Name, Lines, File string }

func whoCame(v *view) (*page, error) {
	d := &whoCameData{Kinds: crawlers.Categories(), NoStore: v.store == nil}
	p := &page{template: "whocame", Title: "Who came", Lead: "Nothing is recorded yet.", Scope: scope{Host: true, Period: true}, Data: d}
	if v.store == nil {
		return p, nil
	}
	all, unknown, err := v.whoCame()
	if err != nil {
		return nil, err
	}
	d.Came = len(all)
	d.Clients = v.filter(all)
	for _, c := range d.Clients {
		d.Total.plus(c.counts)
	}
	v.sort(d)
	d.Matching = len(d.Clients)
	d.Clients, d.More = pageOf(v, d.Clients, "row", maxRows)
	p.Lead = lead(all, unknown, v.Days)
	if v.Param("q") != "" {
		unknown = v.filter(unknown)
	}
	for _, c := range unknown {
		d.UnknownTotal.plus(c.counts)
	}
	d.Unknown, d.MoreUnknown = pageOf(v, unknown, "unlisted", maxUnknown)
	d.Naming = v.naming(d.Unknown)
	return p, v.addPaths(d.Unknown)
}

// whoCame returns the clients that sent requests in the chosen period: unlisted clients in unknown, crawlers in all. If
// the URL has the parameter "path", only requests for paths that begin with its value are counted.
func (v *view) whoCame() (all, unknown []*client, err error) {
	rows, err := v.totals(v.traffic("", v.Param("path")))
	if err != nil {
		return nil, nil, err
	}
	clients := v.clients(rows)
	v.addSeen(clients)
	for _, c := range clients {
		if c.IsUnknown() {
			unknown = append(unknown, c)
		} else {
			all = append(all, c)
		}
	}
	return all, unknown, nil
}

// lead returns a text with the total number of requests, the crawler that sent the most requests, and the crawler with
// the most violations.
func lead(all, unknown []*client, days int) string {
	var total int64
	for _, c := range slices.Concat(all, unknown) {
		total += c.All
	}
	if total == 0 {
		return "No crawler came in this period."
	}
	text := plural(total, "request", "requests") + " in " + plural(days, "day", "days") + "."
	if len(all) == 0 {
		return text
	}
	text += " Most from " + all[0].Label()
	if worst := slices.MaxFunc(all, func(a, b *client) int { return cmp.Compare(a.Violations, b.Violations) }); worst.Violations > 0 {
		text += "; most violations from " + worst.Label()
	}
	return text + "."
}

// filter returns the clients that match the form above the table.
func (v *view) filter(all []*client) []*client {
	q, kind, identity, verdict := strings.ToLower(v.Param("q")), v.Param("category"), v.Param("identity"), v.Param("decision")
	return slices.DeleteFunc(slices.Clone(all), func(c *client) bool {
		switch {
		case q != "" && !strings.Contains(strings.ToLower(c.Name), q) && !strings.Contains(strings.ToLower(c.Operator), q),
			kind != "" && c.Kind != kind,
			identity != "" && c.Tag() != identity,
			verdict == "allowed" && c.Allowed == 0, verdict == "would_block" && c.Would == 0, verdict == "disallowed" && c.Closed == 0,
			verdict == "blocked" && c.Blocked == 0, verdict == "violations" && c.Violations == 0:
			return true
		}
		return false
	})
}

var sortKeys = []struct {
	key, name, class string
	text             bool
	compare          func(a, b *client) int
}{
	{"name", "Crawler", "", true, func(a, b *client) int {
		return strings.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name))
	}},
	{"identity", "Identity", "p2", true, func(a, b *client) int { return strings.Compare(a.Tag(), b.Tag()) }},
	{"", "By day", "p3", true, nil},
	{"requests", "Requests", "n", false, func(a, b *client) int { return cmp.Compare(a.All, b.All) }},
	{"disallowed", "Disallowed, served", "n p3", false, func(a, b *client) int { return cmp.Compare(a.Closed, b.Closed) }},
	{"would", "Would be blocked", "n p3", false, func(a, b *client) int { return cmp.Compare(a.Would, b.Would) }},
	{"blocked", "Blocked", "n", false, func(a, b *client) int { return cmp.Compare(a.Blocked, b.Blocked) }},
	{"violations", "Violations", "n", false, func(a, b *client) int { return cmp.Compare(a.Violations, b.Violations) }},
	{"bytes", "Bytes", "n p3", false, func(a, b *client) int { return cmp.Compare(a.Bytes, b.Bytes) }},
	{"first", "First seen", "p4", true, func(a, b *client) int { return a.First.Compare(b.First) }},
	{"last", "Last seen", "p2", false, func(a, b *client) int { return a.Last.Compare(b.Last) }},
}

func (v *view) sort(d *whoCameData) {
	key := cmp.Or(v.Param("sort"), "requests")
	for _, k := range sortKeys {
		if k.key == "disallowed" && d.Total.Closed == 0 {
			continue // the column is left out, as on the Overview page
		}
		c := column{Key: k.key, Name: k.name, Class: k.class}
		if k.compare == nil {
			d.Columns = append(d.Columns, c)
			continue
		}
		ascending := k.text
		if k.key == key {
			if v.Param("order") != "" {
				ascending = v.Param("order") == "up"
			}
			slices.SortStableFunc(d.Clients, func(a, b *client) int {
				if ascending {
					return k.compare(a, b)
				}
				return k.compare(b, a)
			})
			c.Sorted = map[bool]string{true: "ascending", false: "descending"}[ascending]
			ascending = !ascending
		}
		c.Link = v.Link("who-came", "sort", k.key, "order", map[bool]string{true: "up", false: "down"}[ascending],
			"q", v.Param("q"), "category", v.Param("category"), "identity", v.Param("identity"), "decision", v.Param("decision"), "path", v.Param("path"))
		d.Columns = append(d.Columns, c)
	}
}

// maxUnknown limits the number of rows in the table of unlisted clients.
const maxUnknown = 25

// addPaths sets the path that each unlisted client requested most often in the chosen period, or in the last seven days
// of a longer period.
func (v *view) addPaths(unknown []*client) error {
	q := v.query(store.ByCrawler, store.ByPath)
	q.From, q.Limit = maxTime(q.From, q.To.AddDate(0, 0, -7)), 500
	by := map[string]*client{}
	for _, c := range unknown {
		q.Only[store.ByCrawler], by[c.Name] = append(q.Only[store.ByCrawler], c.Name), c
	}
	if len(by) == 0 {
		return nil
	}
	rows, err := v.totals(q)
	for _, r := range rows {
		if c := by[r.Values[store.ByCrawler]]; c != nil && r.Requests > c.PathN {
			c.Path, c.PathN = r.Values[store.ByPath], r.Requests
		}
	}
	return err
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// CanBeNamed reports whether the client has a name that a policy could use. Names in parentheses, such as "(other)",
// cannot be used.
func (c *client) CanBeNamed() bool { return !strings.HasPrefix(c.Name, "(") }

// naming returns the lines that would name the chosen unlisted client in a policy. If no client is chosen, it returns
// the lines for the first client with a name that a policy can use.
func (v *view) naming(unknown []*client) *naming {
	name := ""
	for _, c := range unknown {
		if c.CanBeNamed() && (name == "" || c.Name == v.Param("name")) {
			name = c.Name
		}
	}
	if name == "" {
		return nil
	}
	file := "the policy file"
	if v.Running != nil {
		file = v.Running.File()
	}
	return &naming{Name: name, File: file, Lines: namingLines(name)}
}

var notInTokens = regexp.MustCompile(`[^A-Za-z0-9_-]+`)

// namingLines returns the lines of a policy file that add a client as a crawler.
func namingLines(name string) string {
	token := notInTokens.ReplaceAllString(name, "")
	if token == "" || token[0] >= '0' && token[0] <= '9' {
		token = "Client" + token
	}
	fields := ""
	if token != name {
		fields = "user-agent: " + strconv.Quote(name)
	}
	return "crawlers:\n  # Add its operator and its category if you know them: {operator: Example, category: feed}\n  " + token + ": {" + fields + "}\n"
}

// whoCameCSV sends both tables of the page "Who came" as one CSV file.
func whoCameCSV(w http.ResponseWriter, v *view) error {
	if v.store == nil {
		return failed(http.StatusNotFound, "%w", errNoStore())
	}
	all, unknown, err := v.whoCame()
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="who-came.csv"`)
	out := csv.NewWriter(w)
	_ = out.Write([]string{"crawler", "operator", "category", "identity", "requests", "allowed", "disallowed_but_served", "would_be_blocked", "blocked", "unlisted", "violations", "cannot_be_judged", "bytes", "first_seen", "last_seen"})
	n := func(i int64) string { return strconv.FormatInt(i, 10) }
	for _, c := range append(v.filter(all), v.filter(unknown)...) {
		_ = out.Write([]string{
			plainCell(c.Name), plainCell(c.Operator), c.Kind, c.Tag(), n(c.All), n(c.Allowed), n(c.Closed), n(c.Would), n(c.Blocked), n(c.Unknown),
			n(c.Violations), n(c.All - c.Judged()), n(c.Bytes), stamp(c.First), stamp(c.Last),
		})
	}
	out.Flush()
	return out.Error()
}

func plainCell(s string) string {
	if s != "" && strings.ContainsRune("=+-@\t\r", rune(s[0])) {
		return "'" + s
	}
	return s
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
