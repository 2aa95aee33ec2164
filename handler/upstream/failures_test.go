// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/robotspolicy/caddy-robots-policy/claim"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
	"github.com/robotspolicy/caddy-robots-policy/site"
	"github.com/robotspolicy/caddy-robots-policy/site/compare"
	"github.com/robotspolicy/caddy-robots-policy/source"
)

// responds answers with a status, a body and fields.
func responds(status int, body string, fields ...string) nextFunc {
	return func(w http.ResponseWriter, _ *http.Request) error {
		for i := 0; i < len(fields); i += 2 {
			w.Header().Set(fields[i], fields[i+1])
		}
		w.WriteHeader(status)
		_, err := io.WriteString(w, body)
		return err
	}
}

const maintenance = "<!doctype html><title>Back soon</title>"

func packed(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = io.WriteString(w, text)
	_ = w.Close()
	return b.String()
}

// explained returns what the command `explain` says about a path of the site's file: allowed, disallowed or not known.
// The command uses the upstream's file that the server last fetched.
func (s server) explained(t *testing.T, host string) string {
	t.Helper()
	u, err := url.Parse("https://" + host + "/theirs/page")
	if err != nil {
		t.Fatal(err)
	}
	e := s.site.Explain(site.Question{Agent: "Googlebot", URL: u, Now: time.Now(), Below: s.Last})
	switch {
	case e.May().Outcome() == claim.CannotBeJudged:
		return "not known"
	case e.MayCrawl:
		return "allowed"
	case e.Reason.Place == "the site's own robots.txt:2":
		return "disallowed"
	}
	return fmt.Sprint(e.Reason)
}

// loses loads a new policy that no longer has the allow entry for /theirs/, so that the site's own robots.txt decides
// about these paths. It returns what the search-loss limit then finds: disallowed, allowed or not known. The command
// `diff` must come to the same result.
func (s server) loses(t *testing.T) string {
	t.Helper()
	before, ds := site.Load("policy.yaml", []byte("version: 1\nrules:\n  - for: everyone\n    disallow: {crawl: /admin/}\n    allow: {crawl: /theirs/}\n"))
	if before == nil {
		t.Fatal(ds)
	}
	limit := source.NotAccepted(before, s.site, s.Last, nil)
	changes := compare.Sites(before, s.site, compare.Options{Below: s.Last})
	var diff bytes.Buffer
	if err := changes.WriteText(&diff); err != nil {
		t.Fatal(err)
	}
	says := func(word string) bool {
		in := limit != nil && strings.Contains(limit.Error(), word)
		if in != strings.Contains(diff.String(), word) {
			t.Errorf("of %q, the limit says %v, and diff\n%s", word, limit, diff.String())
		}
		return in
	}
	switch {
	case says("/theirs/"):
		return "disallowed"
	case says("not known"):
		return "not known"
	case limit != nil:
		return limit.Error()
	}
	return "allowed"
}

// The upstream answers in many ways instead of sending its file. The paths that the file disallowed stay disallowed,
// unless the upstream answers that it has no file. The command `explain` must agree with the robots.txt that crawlers
// get.
func TestEveryFailureOfTheUpstream(t *testing.T) {
	aborts := func(http.ResponseWriter, *http.Request) error { panic(http.ErrAbortHandler) }
	cut := func(w http.ResponseWriter, _ *http.Request) error {
		_, _ = io.WriteString(w, "User-agent: *\nAll")
		panic(http.ErrAbortHandler)
	}
	hangs := func(_ http.ResponseWriter, r *http.Request) error { <-r.Context().Done(); return r.Context().Err() }
	bomb := packed("User-agent: *\nAllow: /\n" + strings.Repeat("a", 50<<20))
	long := "User-agent: *\nDisallow: /theirs/" + strings.Repeat("ü", 3000) + "\nDisallow: /theirs/\nAllow: /theirs/" + strings.Repeat("ü", 3000) + "\n"
	const stays, none = "disallowed", "allowed"
	turn := 0
	alternates := func(w http.ResponseWriter, r *http.Request) error { // a page, then the file
		if turn++; turn%2 == 1 {
			return responds(200, maintenance, "Content-Type", "text/html")(w, r)
		}
		return says("Disallow: /theirs/")(w, r)
	}
	for name, c := range map[string]struct {
		next         nextFunc
		after, first string // the output of `explain` with an earlier file, and without one
	}{
		"timeout":              {hangs, stays, "not known"},
		"500":                  {responds(500, "User-agent: *\nAllow: /\n"), stays, "not known"},
		"503 by an error":      {fails(503), stays, "not known"},
		"429":                  {responds(429, ""), stays, "not known"},
		"401":                  {responds(401, ""), stays, none},
		"403":                  {responds(403, ""), stays, none},
		"451":                  {responds(451, ""), stays, none},
		"404":                  {responds(404, "User-agent: *\nDisallow: /\n"), none, none},
		"410":                  {responds(410, ""), none, none},
		"HTML":                 {responds(200, maintenance, "Content-Type", "text/html"), stays, none},
		"HTML as text":         {responds(200, maintenance, "Content-Type", "text/plain"), stays, none},
		"JSON":                 {responds(200, `{"error": "x"}`, "Content-Type", "application/json"), stays, none},
		"redirect elsewhere":   {responds(302, "", "Location", "https://other.example/robots.txt"), stays, "not known"},
		"redirect to a port":   {responds(302, "", "Location", "https://www.example.com:8443/robots.txt"), stays, "not known"},
		"redirect for ever":    {responds(301, "", "Location", "/robots.txt"), stays, "not known"},
		"redirect to nowhere":  {responds(301, "", "Location", "mailto:x@example.com"), stays, "not known"},
		"300 without location": {responds(300, ""), stays, "not known"},
		"203":                  {responds(203, "User-agent: *\nDisallow: /theirs/\n", "Content-Type", "text/plain"), stays, stays},
		"204":                  {responds(204, ""), none, none},
		"304":                  {responds(304, ""), stays, "not known"},
		"alternating":          {alternates, stays, stays},
		"206":                  {responds(206, "User-agent: *\nAllow: /\n", "Content-Type", "text/plain"), stays, "not known"},
		"cut off":              {cut, stays, "not known"},
		"aborted":              {aborts, stays, "not known"},
		"a bomb":               {responds(200, bomb, "Content-Encoding", "gzip", "Content-Type", "text/plain"), none, none},
		"half a gzip":          {responds(200, packed("User-agent: *\nAllow: /\n")[:20], "Content-Encoding", "gzip", "Content-Type", "text/plain"), stays, "not known"},
		"long lines":           {responds(200, long, "Content-Type", "text/plain"), "the site's own robots.txt:3, group \"User-agent: *\", disallows crawl of /theirs/", "the site's own robots.txt:3, group \"User-agent: *\", disallows crawl of /theirs/"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t)
				s.get(t, "www.example.com", says("Disallow: /theirs/"))
				time.Sleep(2 * freshFor)
				served := s.get(t, "www.example.com", c.next)
				if got := s.explained(t, "www.example.com"); got != c.after {
					t.Errorf("after a good file: explain says %q, want %q", got, c.after)
				}
				limited := func(s server, when, explained string) {
					if testkit.OnlyRaces() {
						return // skipped, because it takes long, and has no races with its one goroutine
					}
					want := explained
					if strings.Contains(explained, "disallows") {
						want = stays
					}
					if got := s.loses(t); got != want {
						t.Errorf("%s: the search-loss limit says %q, want %q", when, got, want)
					}
				}
				limited(s, "after a good file", c.after)
				if disallows := strings.Contains(served.text, "Disallow: /theirs/"); disallows != (c.after != none) || !served.known {
					t.Errorf("after a good file: served %+v", served)
				}
				first := newServer(t)
				served = first.get(t, "www.example.com", c.next)
				if got := first.explained(t, "www.example.com"); got != c.first {
					t.Errorf("at first: explain says %q, want %q", got, c.first)
				}
				limited(first, "at first", c.first)
				if disallows := strings.Contains(served.text, "Disallow: /theirs/"); disallows != (c.first != none && c.first != "not known") || served.known != (c.first != "not known") {
					t.Errorf("at first: served %+v", served)
				}
			})
		})
	}
}

// If the upstream sends a maintenance page instead of its robots.txt, the paths that the file disallowed stay
// disallowed for a day. After that day, the site is treated as a site without a file. If the upstream sends the file
// again, the file is in force again, and the day starts again at the next maintenance page. So an upstream that
// alternates between the file and a maintenance page never allows what the file disallows.
func TestPagesInPlaceOfTheFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		file, page := says("Disallow: /theirs/"), responds(200, maintenance, "Content-Type", "text/html")
		check := func(what string, next nextFunc, want string) {
			t.Helper()
			if got := s.get(t, "www.example.com", next).text; got != want {
				t.Errorf("%s: %q, want %q", what, got, want)
			}
		}
		check("the file", file, "Disallow: /theirs/")
		time.Sleep(23 * time.Hour)
		check("a page", page, "Disallow: /theirs/")
		time.Sleep(2 * time.Hour)
		check("a page for 25 hours", page, "")
		for range 5 {
			time.Sleep(2 * freshFor)
			check("the file again", file, "Disallow: /theirs/")
			time.Sleep(2 * freshFor)
			check("a page again", page, "Disallow: /theirs/")
		}
	})
}

// If the upstream sends a web page instead of robots.txt, the log describes the page in the same words as the commands.
func TestPagesInTheLog(t *testing.T) {
	for name, page := range map[string]string{"UTF-8": maintenance, "UTF-16": "\xff\xfe<\x00p\x00>\x00"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t)
				core, logged := observer.New(zap.WarnLevel)
				s.logger = zap.New(core)
				s.get(t, "www.example.com", says("Disallow: /theirs/"))
				time.Sleep(2 * freshFor)
				for range 2 { // the first host sends a page instead of its earlier file, and the other host has only sent pages; each host is logged once
					s.get(t, "www.example.com", responds(200, page, "Content-Type", "text/plain"))
					s.get(t, "other.example.com", responds(200, page, "Content-Type", "text/plain"))
					time.Sleep(2 * freshFor)
				}
				all := logged.All()
				if len(all) != 2 {
					t.Errorf("%d lines, want 2: %v", len(all), all)
				}
				const want = `this is a web page, not a robots.txt (Content-Type: "text/plain")`
				for _, line := range all {
					if fmt.Sprint(line.ContextMap()["error"]) != want {
						t.Errorf("%v", line)
					}
				}
			})
		})
	}
}

// Crawlers cannot read a file in UTF-16, so they may fetch the paths that such a file disallows. The merged file is in
// UTF-8, so it really disallows these paths. The log warns about this change. It also warns about lines that have no
// effect.
func TestWarningsAboutTheMergedFile(t *testing.T) {
	for name, c := range map[string]struct{ file, message, problem string }{
		"UTF-16":               {"\xff\xfe" + strings.Join(strings.Split("User-agent: *\nDisallow: /theirs/\n", ""), "\x00") + "\x00", "the robots.txt that crawlers receive differs", "now disallows"},
		"UTF-16, nothing new":  {"\xff\xfe" + strings.Join(strings.Split("User-agent: *\nAllow: /theirs/\n", ""), "\x00") + "\x00", "", ""},
		"UTF-8":                {"User-agent: *\nDisallow: /theirs/\n", "", ""},
		"a path without slash": {"User-agent: *\nDisallow: theirs\n", "has no effect", "theirs"},
		"Noindex":              {"User-agent: *\nNoindex: /theirs/\nDisallow: /a\n", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			core, logged := observer.New(zap.WarnLevel)
			s.logger = zap.New(core)
			s.get(t, "www.example.com", responds(200, c.file, "Content-Type", "text/plain"))
			all := logged.All()
			if c.message == "" && len(all) == 0 {
				return
			}
			if len(all) != 1 || c.message == "" || all[0].Level != zap.WarnLevel || !strings.Contains(all[0].Message, c.message) || !strings.Contains(fmt.Sprint(all[0].ContextMap()["problem"]), c.problem) {
				t.Errorf("%+v", all)
			}
		})
	}
}

// If several lines have the same problem, the log counts them as one note, like the notes that the commands print.
func TestNotesInTheLogAreGrouped(t *testing.T) {
	s := newServer(t)
	core, logged := observer.New(zap.InfoLevel)
	s.logger = zap.New(core)
	s.get(t, "www.example.com", says("Noindex: /a\nNoindex: /b\nNoindex: /c\nDisallow: /theirs/"))
	all := logged.FilterField(zap.Int("notes", 1)).All()
	if len(all) != 1 || !strings.Contains(fmt.Sprint(all[0].ContextMap()["first_notes"]), "and 2 more like this") {
		t.Errorf("%+v", logged.All())
	}
}

// Like crawlers, the server follows a redirect to the same host. The new request goes through the same handlers.
func TestRedirectsOfTheUpstream(t *testing.T) {
	steps := func(n int, host string) nextFunc {
		return func(w http.ResponseWriter, r *http.Request) error {
			if r.Header.Get("Cookie") != "" || r.Host != "www.example.com" {
				t.Errorf("asked %s with %v", r.Host, r.Header)
			}
			if at := strings.Count(r.URL.Path, "y"); at < n {
				return responds(http.StatusFound, "", "Location", host+"/"+strings.Repeat("y", at+1)+"?q=1")(w, r)
			}
			if n > 0 && (r.RequestURI != "/"+strings.Repeat("y", n)+"?q=1" || r.URL.RawQuery != "q=1") {
				t.Errorf("redirected to %q, %v", r.RequestURI, r.URL)
			}
			return says("Disallow: /theirs/")(w, r)
		}
	}
	for _, c := range []struct {
		n     int
		host  string
		found bool
	}{{1, "", true}, {5, "", true}, {6, "", false}, {1, "https://www.example.com", true}, {2, "http://WWW.example.com:443", true}, {1, "//www.example.com", true}, {1, "//www.example.com.evil.example", false}} {
		s := newServer(t)
		if got := s.get(t, "www.example.com", steps(c.n, c.host), "Cookie", "a=b"); got.known != c.found || (got.text != "") != c.found {
			t.Errorf("%d redirects to %q: %+v", c.n, c.host, got)
		}
	}
}

// If a host fails repeatedly in the same way, only the first failure is logged. After a success, the next failure is
// logged again. Hosts that clients invent do not fill the log.
func TestFailuresAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		core, logged := observer.New(zap.WarnLevel)
		s.logger = zap.New(core)
		for i, c := range []struct {
			host string
			next nextFunc
			logs bool
		}{
			{"a.example", fails(500), true},
			{"a.example", fails(500), false},
			{"b.example", fails(500), true},
			{"a.example", fails(502), true},
			{"a.example", says("Disallow: /x"), false},
			{"a.example", fails(502), true},
			{"a.example", fails(502), false},
			{"b.example", fails(404), false},
			{"c.example", fails(403), true},
			{"b.example", fails(500), true},
		} {
			s.get(t, c.host, c.next)
			if all := logged.TakeAll(); len(all) == 1 != c.logs || len(all) > 1 {
				t.Errorf("%d: %d log lines, want one: %v", i, len(all), c.logs)
			} else if c.logs && strings.Contains(fmt.Sprint(all[0].ContextMap()["error"]), "no such file") {
				t.Errorf("%d: the log says that there is no file: %v", i, all[0].ContextMap())
			}
			time.Sleep(2 * time.Minute)
		}
		for i := range 500 {
			s.get(t, fmt.Sprintf("%d.example", i), fails(500))
		}
		if n := logged.Len(); n == 0 || n > 20 {
			t.Errorf("500 hosts fill the log with %d lines", n)
		}
	})
}
