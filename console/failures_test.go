// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"errors"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/activity/store"
	"github.com/robotspolicy/caddy-robots-policy/claim"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

var errFails = errors.New("the disk is gone")

// broken is a store whose queries all fail.
type broken struct{ wait bool }

func (b broken) fail(ctx context.Context) error {
	if !b.wait {
		return errFails
	}
	<-ctx.Done()
	return ctx.Err()
}

func (b broken) Totals(ctx context.Context, _ store.Query) ([]store.Row, error) {
	return nil, b.fail(ctx)
}

func (b broken) EachRow(ctx context.Context, _, _ time.Time, _ func(activity.Totals) error) (claim.Coverage, error) {
	return claim.Coverage{}, b.fail(ctx)
}

func (b broken) Coverage(ctx context.Context, _, _ time.Time) (claim.Coverage, error) {
	return claim.Coverage{}, b.fail(ctx)
}

func (b broken) Bounds(ctx context.Context) (store.Bounds, error)      { return store.Bounds{}, b.fail(ctx) }
func (b broken) Crawlers(ctx context.Context) ([]store.Crawler, error) { return nil, b.fail(ctx) }

func (b broken) Reads(ctx context.Context) ([]store.Read, error) {
	return nil, b.fail(ctx)
}

func (b broken) Publications(ctx context.Context, _ string) ([]store.Publication, error) {
	return nil, b.fail(ctx)
}

func (b broken) PolicyVersions(ctx context.Context, _ string) ([]string, error) {
	return nil, b.fail(ctx)
}

func (b broken) Documents(ctx context.Context) ([]store.Document, error) { return nil, b.fail(ctx) }

// withoutPublications and withoutDocuments are stores that fail to read one part of their data.
type (
	withoutPublications struct{ store.Queries }
	withoutDocuments    struct{ store.Queries }
)

func (withoutPublications) Publications(context.Context, string) ([]store.Publication, error) {
	return nil, errFails
}

func (withoutDocuments) Documents(context.Context) ([]store.Document, error) { return nil, errFails }

// pageWith returns a page with the data of another store. If form is not nil, pageWith sends the form.
func pageWith(t *testing.T, s *server, answers store.Queries, path string, form url.Values) (string, error) {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, "/"+path, nil)
	if form != nil {
		r = httptest.NewRequest(http.MethodPost, "/"+path, strings.NewReader(form.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	v, err := s.view(r)
	if err != nil {
		t.Fatal(err)
	}
	v.store = answers
	v.screen, _, _ = strings.Cut(path, "?")
	w := httptest.NewRecorder()
	p, err := screens[v.screen](v)
	if err == nil {
		err = p.write(w, v)
	}
	return html.UnescapeString(w.Body.String()), err
}

// The database cannot be read. A page that would show only data from the database fails. The other pages say which data
// is missing. No page shows 0 in place of a number that could not be read.
func TestPagesOfAStoreThatFails(t *testing.T) {
	s := startCaddy(t, testPolicy)
	draft := url.Values{"text": {testPolicy + "# a draft\n"}, "do": {"check"}}
	for _, c := range []struct {
		path    string
		form    url.Values
		want    string // empty if the page fails
		without string
	}{
		{"", nil, "", ""},
		{"?days=365", nil, "", ""},
		{"who-came", nil, "", ""},
		{"who-came?path=/news/", nil, "", ""},
		{"crawler?name=GPTBot", nil, "", ""},
		{"published", nil, "", ""},
		{"change?from=000000000000", nil, "", ""},
		{"ask?agent=GPTBot&url=/news/", nil, "The stored requests could not be read", "did not request"},
		{"who-may?crawler=GPTBot&section=www.example.com/", nil, "GPTBot", "in this section"},
		{"change", draft, "The stored traffic cannot be read: the disk is gone", "would be newly blocked or allowed"},
		{"change", draft, "The stored traffic cannot be read (the disk is gone), so the draft was only compared with the version in force", "replayed"},
		{"health", nil, "Health", "None is stored"},
	} {
		body, err := pageWith(t, s, broken{}, c.path, c.form)
		switch {
		case c.want == "" && !errors.Is(err, errFails):
			t.Errorf("%s: %v, %.300s", c.path, err, body)
		case c.want != "" && (err != nil || !strings.Contains(body, c.want) || c.without != "" && strings.Contains(body, c.without)):
			t.Errorf("%s: %v: not %q, or %q, in %.4000s", c.path, err, c.want, c.without, body)
		}
	}
	v, err := s.view(httptest.NewRequest(http.MethodGet, "/", nil))
	if err != nil {
		t.Fatal(err)
	}
	v.store = broken{}
	for _, part := range []store.Queries{withoutPublications{runningStore("")}, withoutDocuments{runningStore("")}} {
		for _, path := range []string{"", "published", "crawler?name=GPTBot", "change?from=000000000000"} {
			if body, err := pageWith(t, s, part, path, nil); !errors.Is(err, errFails) {
				t.Errorf("%s of %T: %v, %.300s", path, part, err, body)
			}
		}
	}
	if got := v.Unseen(); got != "It is not known which requests are missing here: the disk is gone." {
		t.Errorf("unseen: %q", got)
	}
	if all := v.searchNotices(); len(all) != 1 || all[0].Heading != "Whether search engines are blocked is not known" || !strings.Contains(all[0].Text, "disk is gone") {
		t.Errorf("notices: %+v", all)
	}
}

// panics is a store that panics on each query.
type panics struct{ store.Queries }

func (panics) Totals(context.Context, store.Query) ([]store.Row, error) { panic("a question") }

// If a query panics while it runs in the background, the page that needs the result of the query panics in the same
// way. The server continues to run.
func TestPanicBesideThePage(t *testing.T) {
	s := startCaddy(t, testPolicy)
	v, err := s.view(httptest.NewRequest(http.MethodGet, "/", nil))
	if err != nil {
		t.Fatal(err)
	}
	v.store = panics{v.store}
	q := v.busiest()
	q.Limit = 17 // no other query has this limit
	v.askEarly(q)
	for range 2 {
		func() {
			defer func() {
				if p := recover(); p != "a question" {
					t.Errorf("the page ends with %v", p)
				}
			}()
			rows, err := v.totals(q)
			t.Errorf("%v, %v", rows, err)
		}()
	}
}

// If a page takes too long, the response suggests choosing a shorter period. A replay that takes too long is not
// reported as an error of the database.
func TestWhatTakesTooLong(t *testing.T) {
	s := startCaddy(t, testPolicy)
	w := httptest.NewRecorder()
	s.fail(w, httptest.NewRequest(http.MethodGet, "/", nil), fmt.Errorf("ClickHouse: %w", context.DeadlineExceeded))
	if w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "choose a shorter period") {
		t.Errorf("status %d: %s", w.Code, w.Body)
	}
	v, err := s.view(httptest.NewRequest(http.MethodGet, "/", nil))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r := (&traffic{shown: v.shown, store: broken{wait: true}, days: 7}).replay(ctx, v.Running.Site, v.Running.Site, v.Now); !r.TooLong || r.Error != "" || r.Days != 7 {
		t.Errorf("%+v", r)
	}
	if r := (&traffic{shown: v.shown, store: broken{}, days: 7}).replay(t.Context(), v.Running.Site, v.Running.Site, v.Now); r.TooLong || r.Error != "the disk is gone" || r.Requests != 0 {
		t.Errorf("%+v", r)
	}
}

// A draft is tested by replaying stored requests. On the pages of a site, only the requests to the hosts of the site
// are replayed, and only the requests of the chosen number of days.
func TestReplayOfHostsAndDays(t *testing.T) {
	s := startCaddy(t, testPolicy)
	v, err := s.view(httptest.NewRequest(http.MethodGet, "/?days=30", nil))
	if err != nil {
		t.Fatal(err)
	}
	closed, ds := site.Load("site.yaml", []byte("version: 1\nrules:\n  - for: everyone\n    disallow: {crawl: /}\n    enforce: block\n    intended: true\n"))
	if closed == nil {
		t.Fatal(ds)
	}
	of := map[string]int64{}
	for _, days := range []int{1, 7} {
		for name, only := range map[string][]string{"all": nil, "www": {"www.example.com"}, "news": {"news.example.com"}, "none": {"other.example.com"}} {
			r := (&traffic{shown: v.shown, store: v.store, policy: v.Running.Name, hosts: only, days: days}).replay(t.Context(), v.Running.Site, closed, v.Now)
			if r.Error != "" || r.TooLong || r.Days != days {
				t.Fatalf("%s: %+v", name, r)
			}
			of[fmt.Sprint(name, days)] = r.Requests
			if (requestsOf(r.NewlyRefused) > 0) != (name != "none") {
				t.Errorf("%s, %d days: %d of %d newly blocked", name, days, requestsOf(r.NewlyRefused), r.Requests)
			}
		}
	}
	if of["none7"] != 0 || of["www7"] == 0 || of["all7"] != of["www7"]+of["news7"] || of["all1"] == 0 || of["all1"] >= of["all7"] {
		t.Errorf("requests: %v", of)
	}
	for form, want := range map[string]int{"": 7, "1": 1, "365": 365, "8": 7, "x": 7} {
		r := httptest.NewRequest(http.MethodPost, "/change?days=30", strings.NewReader("replay="+form))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if v, err := s.view(r); err != nil || v.ReplayDays() != want {
			t.Errorf("replay=%s: %d days, %v", form, v.ReplayDays(), err)
		}
	}
}

// A history that cannot be read is not treated as an empty history.
func TestHistoryThatFails(t *testing.T) {
	dir := t.TempDir()
	s := startCaddyWith(t, testPolicy, dir)
	if body := get(t, s, "published").Body.String(); strings.Contains(body, "cannot be read now") {
		t.Errorf("without a history: %s", body)
	}
	if w := get(t, s, "change?from=000000000000"); w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), "is not stored") {
		t.Errorf("a version that is not there: status %d, %s", w.Code, w.Body)
	}
	name := filepath.Join(dir, "storage", "robots", "site.yaml.history")
	if err := os.Mkdir(name, 0o700); err != nil { // a directory in place of the history file makes reading fail
		t.Fatal(err)
	}
	if body := get(t, s, "published").Body.String(); !strings.Contains(body, "The history of published versions cannot be read now: ") {
		t.Errorf("published: %s", body)
	}
	for _, path := range []string{"change?from=000000000000", "version?kind=policy&id=000000000000"} {
		if w := get(t, s, path); w.Code != http.StatusInternalServerError || strings.Contains(w.Body.String(), "is not stored") {
			t.Errorf("%s: status %d, %s", path, w.Code, w.Body)
		}
	}
}
