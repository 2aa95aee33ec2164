// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
)

const conformancePolicy = `version: 1
rules:
  - for: everyone
    disallow:
      index: /drafts/
      train-ai: [/drafts/, /news/, /usage/]
    allow:
      search: /news/
      present-snippet:
        - {paths: [/drafts/, /news/], max-length: 50-chars}
    robots-tag:
      - {paths: /news/, rules: "max-image-preview:standard"}
  - for: ExampleBot
    disallow:
      follow: [/drafts/, /agent/]
crawlers:
  ExampleBot: {category: search, operator: Example, reads-meta: true}
`

// conformanceSays lists, for some paths, the rules that conformancePolicy demands in the header. Amazon's crawlers obey
// noarchive as a rule against AI training. So where the policy disallows train-ai, the rules contain noarchive for
// amazonbot.
var conformanceSays = map[string]struct {
	rules reading
	usage map[string]string
}{
	"/drafts/x": {reading{"*": rulesOf("noindex, max-snippet:50"), "amazonbot": rulesOf("noarchive"), "examplebot": rulesOf("nofollow")}, map[string]string{"train-ai": "n"}},
	"/news/x":   {reading{"*": rulesOf("max-snippet:50, max-image-preview:standard"), "amazonbot": rulesOf("noarchive")}, map[string]string{"train-ai": "n", "search": "y"}},
	"/agent/x":  {reading{"examplebot": rulesOf("nofollow")}, map[string]string{}},
	"/usage/x":  {reading{"amazonbot": rulesOf("noarchive")}, map[string]string{"train-ai": "n"}},
	"/open/x":   {reading{}, map[string]string{}},
}

// conformanceUpstream answers as the request's header fields demand. The field Say is an index in upstreamSays.
func conformanceUpstream(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	if i, err := strconv.Atoi(r.Header.Get("Say")); err == nil {
		for name, lines := range upstreamSays[i].fields {
			h[name] = slices.Concat(h[name], lines) // a proxy also adds the fields of its upstream
		}
	}
	h.Set("Content-Type", r.Header.Get("Type"))
	status, _ := strconv.Atoi(r.Header.Get("Status"))
	switch status {
	case 301:
		h.Set("Location", "/elsewhere")
	case 206:
		h.Set("Content-Range", "bytes 0-4/10")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "<html")
		return
	case 204, 304:
		w.WriteHeader(status)
		return
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, page(""))
	if r.Header.Get("Type") == "text/event-stream" {
		_ = http.NewResponseController(w).Flush()
	}
}

var (
	conformanceMethods  = []string{"GET", "HEAD", "POST", "OPTIONS"}
	conformanceStatuses = []int{200, 204, 206, 301, 304, 404, 500, 503}
	conformanceTypes    = []string{"text/html; charset=utf-8", "application/json", "application/pdf", "image/png", "text/event-stream", "application/byte-stream"}
)

// A route is the configuration of one site, together with what its other handlers do to header fields. Some handlers
// set fields before the upstream's fields are added: eager contains these fields. Some handlers change the final
// response: they set the fields in over, and delete the fields whose names are in gone.
type route struct {
	body       string
	eager      fields
	noUpstream bool // a handler removes the upstream's fields before robots_policy sees them
	over       fields
	gone       string
	statuses   []int
}

var headerRoutes = map[string]route{
	"proxy":             {body: "robots_policy POLICY\nreverse_proxy UPSTREAM"},
	"encode":            {body: "encode zstd gzip\nrobots_policy POLICY\nreverse_proxy UPSTREAM"},
	"templates":         {body: "robots_policy POLICY\ntemplates\nreverse_proxy UPSTREAM", statuses: []int{200, 301, 404, 500}},
	"delete":            {body: "header -X-Robots-Tag\nrobots_policy POLICY\nreverse_proxy UPSTREAM", gone: "X-Robots-Tag"},
	"delete by pattern": {body: "header -*Robots-Tag\nrobots_policy POLICY\nreverse_proxy UPSTREAM", gone: "Robots-Tag X-Robots-Tag"},
	"set": {
		body:  "header X-Robots-Tag \"nofollow\"\nrobots_policy POLICY\nreverse_proxy UPSTREAM",
		eager: fields{"X-Robots-Tag": {"nofollow"}},
	},
	"add": {
		body:  "header +X-Robots-Tag \"examplebot: noarchive\"\nrobots_policy POLICY\nreverse_proxy UPSTREAM",
		eager: fields{"X-Robots-Tag": {"examplebot: noarchive"}},
	},
	"set Robots-Tag": {
		body:  "header Robots-Tag \"noarchive\"\nheader Content-Usage \"ai-use=n\"\nrobots_policy POLICY\nreverse_proxy UPSTREAM",
		eager: fields{"Robots-Tag": {"noarchive"}, "Content-Usage": {"ai-use=n"}},
	},
	"set at last": {
		body: "header >X-Robots-Tag \"nofollow\"\nrobots_policy POLICY\nreverse_proxy UPSTREAM",
		over: fields{"X-Robots-Tag": {"nofollow"}},
	},
	"delete inside": {body: "route {\nrobots_policy POLICY\nheader {\n-X-Robots-Tag\n-Robots-Tag\n-Content-Usage\n}\nreverse_proxy UPSTREAM\n}", noUpstream: true},
	"set inside": {
		body:  "route {\nrobots_policy POLICY\nheader X-Robots-Tag \"nofollow\"\nreverse_proxy UPSTREAM\n}",
		eager: fields{"X-Robots-Tag": {"nofollow"}},
	},
	"set at last inside": {
		body:  "route {\nrobots_policy POLICY\nheader >X-Robots-Tag \"nofollow\"\nreverse_proxy UPSTREAM {\nheader_down -X-Robots-Tag\n}\n}",
		eager: fields{"X-Robots-Tag": {"nofollow"}}, gone: "-",
	},
	"before encode": {body: "route {\nrobots_policy POLICY\nencode gzip\nreverse_proxy UPSTREAM\n}"},
	"twice":         {body: "route {\nrobots_policy POLICY\nrobots_policy POLICY\nreverse_proxy UPSTREAM\n}"},
	"twice around header": {
		body:  "route {\nrobots_policy POLICY\nheader +X-Robots-Tag \"noarchive\"\nrobots_policy POLICY\nreverse_proxy UPSTREAM\n}",
		eager: fields{"X-Robots-Tag": {"noarchive"}},
	},
	"intercept": {body: "robots_policy POLICY\nintercept {\n@e status 5xx\nreplace_status @e 502\n}\nreverse_proxy UPSTREAM", statuses: []int{200, 404, 500}},
}

// siteName converts the name of a route to the name of a host.
func siteName(name string) string {
	return strings.ReplaceAll(strings.ToLower(name), " ", "-") + ".test"
}

// expected returns the upstream's header fields after the policy's rules are merged into them.
func (rt route) expected(upstream fields) fields {
	if rt.noUpstream {
		upstream = fields{}
	}
	if rt.gone == "-" {
		upstream = maps.Clone(upstream)
		delete(upstream, "X-Robots-Tag")
	}
	return rt.eager.and(upstream)
}

// settle checks the header fields of a response from the route. Fields that an outer handler sets or deletes must have
// this handler's value. judge checks the other fields. before contains the upstream's fields, and got the fields that
// the client received.
func (rt route) settle(path string, before, got fields) (wrong []string) {
	last := func(name string) bool {
		return rt.over[name] != nil || slices.Contains(strings.Fields(rt.gone), name)
	}
	for _, name := range fieldNames {
		if last(name) && !slices.Equal(got[name], rt.over[name]) {
			wrong = append(wrong, fmt.Sprintf("%s: %.200q, want %q, as the header directive says", name, got[name], rt.over[name]))
		}
	}
	for _, problem := range judge(path, before, got) {
		if name, _, _ := strings.Cut(problem, ":"); !last(name) {
			wrong = append(wrong, problem)
		}
	}
	return wrong
}

// TestHeaderConformance sends requests for every combination of a method, a status, an upstream's header and an order
// of handlers.
func TestHeaderConformance(t *testing.T) { bothDoors(t, testHeaderConformance) }

func testHeaderConformance(t *testing.T, d door) {
	sites := map[string]string{}
	for name, rt := range headerRoutes {
		sites[siteName(name)] = rt.body
	}
	s := d.startSites(t, conformancePolicy, http.HandlerFunc(conformanceUpstream), sites)
	for name, rt := range headerRoutes {
		t.Run(name, func(t *testing.T) {
			s.needs(t, siteName(name))
			paths, types := []string{"/drafts/x", "/open/x"}, conformanceTypes[:1]
			if name == "proxy" && testkit.Long() {
				paths, types = slices.Collect(maps.Keys(conformanceSays)), conformanceTypes
			}
			for i, says := range upstreamSays {
				if !testkit.Long() && name != "proxy" && size(says.fields["X-Robots-Tag"]) > 1000 {
					continue
				}
				for _, path := range paths {
					s.headerCells(t, name, rt, i, types[0], path)
				}
				for _, kind := range types[1:] {
					s.headerCells(t, name, rt, i, kind, "/drafts/x")
				}
			}
		})
	}
}

// headerCells sends requests with every combination of a method and a status. Where that would take too long, it uses
// only one method for each status. It checks that the header fields of each response are correct, and that they are the
// same in all responses.
func (s *server) headerCells(t *testing.T, name string, rt route, say int, kind, path string) {
	t.Helper()
	statuses := rt.statuses
	if statuses == nil {
		statuses = conformanceStatuses
	}
	says := upstreamSays[say]
	few := path == "/open/x" || size(says.fields["X-Robots-Tag"]) > 1000 ||
		name != "proxy" && says.name != "none" && says.name != "conflicting"
	var first fields
	for i, status := range statuses {
		for j, method := range conformanceMethods {
			if few && i%len(conformanceMethods) != j {
				continue
			}
			cell := fmt.Sprintf("%s %s → %d, upstream %s, %s", method, path, status, says.name, kind)
			r := s.do(method, path, "Host", siteName(name), "Say", strconv.Itoa(say), "Status", strconv.Itoa(status), "Type", kind)
			if want := status; r.StatusCode != want && !(name == "intercept" && status == 500 && r.StatusCode == 502) {
				t.Fatalf("%s: %s", cell, r.Status)
			}
			got := fieldsOf(r.Header)
			if first == nil {
				first = got
				if wrong := rt.settle(path, rt.expected(says.fields), got); len(wrong) > 0 {
					t.Fatalf("%s:\n%s", cell, strings.Join(wrong, "\n"))
				}
			}
			if !maps.EqualFunc(got, first, slices.Equal) {
				t.Fatalf("%s: %.500v, but %.500v for the first of its kind", cell, got, first)
			}
		}
	}
}
