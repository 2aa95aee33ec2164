// SPDX-License-Identifier: Apache-2.0

package catalogstore

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/certmagic"
	"go.uber.org/zap"
	"golang.org/x/mod/sumdb/note"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/crawlers/identity"
	"github.com/robotspolicy/caddy-robots-policy/source"
)

// without returns the data of a catalog without some of its rows. For each row, it calls gone with the crawler's token
// and the index of the row. If the result is true, the row is left out.
func without(t *testing.T, data []byte, gone func(token string, i int) bool) []byte {
	t.Helper()
	head, rows, ok := bytes.Cut(data, []byte("\ncrawlers:\n"))
	if !ok {
		t.Fatal("no rows")
	}
	var kept bytes.Buffer
	i, drop := 0, false
	for line := range bytes.Lines(rows) {
		if len(line) > 2 && line[0] == ' ' && line[2] != ' ' {
			token, _, _ := strings.Cut(strings.Trim(string(line), " \n"), ":")
			drop = gone(strings.Trim(token, `"'`), i)
			i++
		}
		if !drop {
			kept.Write(line)
		}
	}
	return bytes.Join([][]byte{head, kept.Bytes()}, []byte("\ncrawlers:\n"))
}

// The released catalog is installed if it is signed, newer than the catalog in use, and plausible. It is not installed
// if a running policy would then allow more, or if search engines would lose something. If a released catalog is not
// installed, the catalog in use remains, and the reason is reported.
func TestReleasedCatalog(t *testing.T) {
	private, public, err := note.GenerateKey(nil, "test")
	if err != nil {
		t.Fatal(err)
	}
	other, _, err := note.GenerateKey(nil, "test")
	if err != nil {
		t.Fatal(err)
	}
	Key = public
	t.Cleanup(func() { Key = ""; crawlers.Install(nil) })
	served, status := []byte(nil), http.StatusOK
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write(served)
	}))
	t.Cleanup(srv.Close)
	ctx := context.Background()
	storage := &certmagic.FileStorage{Path: t.TempDir()}
	w := New(storage, srv.URL, zap.NewNop())
	t.Cleanup(w.Stop)
	running, err := source.Compile("policy.yaml", []byte(`version: 1
enforcement: block
rules:
  - for: category:ai-training
    disallow: {crawl: /}
  - for: everyone
    disallow: {crawl: /members/}
  - for: category:feed
    allow: {crawl: /members/}
  - for: category:seo
    disallow: {crawl: [/seo/]}
    intended: true
`))
	if err != nil {
		t.Fatal(err)
	}
	w.running = func() []*source.Snapshot { return []*source.Snapshot{running} }

	today := time.Now().UTC()
	date := today.Format(time.DateOnly)
	v := identity.New(identity.Methods{Enabled: true}, zap.NewNop)
	t.Cleanup(v.Close)
	listed := func(found func(identity.ListStatus) bool) identity.ListStatus {
		all := identity.CurrentStatus().Lists
		return all[slices.IndexFunc(all, found)]
	}
	url := listed(func(l identity.ListStatus) bool { return l.Entries == 0 }).URL
	released := func(date string) []byte {
		lists := "\naddresses: |\n  date " + date + "\n  list " + url + "\n  20.1.2.0/24\n  20.1.4.0/24\ncrawlers:\n"
		return append(bytes.Replace(catalog(t, date, "ReleasedNewBot"), []byte("\ncrawlers:\n"), []byte(lists), 1), "  FirstNewBot: {operator: Test, category: seo, honors: yes, source: field, examples: [FirstNewBot/1.0]}\n"...)
	}
	good := released(date)
	embedded, err := crawlers.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	before := catalog(t, today.AddDate(0, 0, -1).Format(time.DateOnly), "FirstNewBot")
	if today.AddDate(0, 0, -1).Format(time.DateOnly) <= embedded.AsOf() { // embedded would be in use instead
		before = catalog(t, embedded.AsOf(), "FirstNewBot")
		date = today.AddDate(0, 0, 1).Format(time.DateOnly)
		good = released(date)
	}
	if err := Store(ctx, storage, before); err != nil {
		t.Fatal(err)
	}
	w.check(ctx)

	sign := func(text []byte) []byte {
		t.Helper()
		data, err := Sign(text, private)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	by := func(text []byte, key string) []byte {
		data, err := Sign(text, key)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	signed := sign(good)
	row := func(text string) []byte { return append(bytes.Clone(good), "  "+text+"\n"...) }
	replaced := func(old, now string) []byte {
		t.Helper()
		if !bytes.Contains(good, []byte(old)) {
			t.Fatalf("no %s", old)
		}
		return bytes.Replace(good, []byte(old), []byte(now), 1)
	}
	for name, c := range map[string]struct {
		data []byte
		says string
	}{
		"unsigned":                      {good, "the catalog is not signed"},
		"empty":                         {nil, "the catalog is not signed"},
		"a web page":                    {[]byte("<!DOCTYPE html>\n"), "the catalog is not signed"},
		"cut off in the text":           {signed[:len(signed)/2], "the catalog is not signed"},
		"cut off in the signature":      {signed[:len(signed)-9], "cut off"},
		"changed":                       {bytes.Replace(signed, []byte("GPTBot"), []byte("GPTBut"), 1), "changed"},
		"more after it was signed":      {append(bytes.Clone(signed), "  MoreBot: {}\n"...), "changed"},
		"by another key of that name":   {by(good, other), "not signed with the key of the releases"},
		"a signature of another text":   {append(row("# another"), signed[bytes.Index(signed, []byte("\n— ")):]...), "not signed with the key of the releases"},
		"older":                         {sign(released("2026-01-01")), "is older"},
		"of the future":                 {sign(released("2999-01-01")), "is after today"},
		"too large":                     {sign(append(bytes.Clone(good), bytes.Repeat([]byte("# x\n"), crawlers.MaxFile/4)...)), "the catalog is not signed"},
		"of another format":             {sign(replaced("version: 1", `version: "2"`)), `version "2" of the catalog format is not supported`},
		"no catalog":                    {sign([]byte("version: 1\n")), "crawlers is missing"},
		"without Googlebot":             {sign(without(t, good, func(token string, _ int) bool { return strings.HasPrefix(token, "Googlebot") })), "Googlebot"},
		"with a browser's name":         {sign(row("Chrome: {operator: Test, category: seo, honors: yes, source: field, examples: [Chrome/1.0]}")), "in the User-Agent of browsers"},
		"without a tenth of the rows":   {sign(without(t, good, func(token string, i int) bool { return i%10 == 9 && !strings.Contains(string(good), "follows: "+token) })), ""},
		"what is disallowed would open": {sign(without(t, good, func(token string, _ int) bool { return token == "Bytespider" })), "something that is disallowed would become allowed for Bytespider"},
		"something may be read":         {sign(row("NewFeedBot: {operator: Test, category: feed, honors: yes, source: field, examples: [NewFeedBot/1.0]}")), "something that is disallowed would become allowed for NewFeedBot"},
		"the server fails":              {signed, "answers 500"},
	} {
		served, status = c.data, http.StatusOK
		if name == "the server fails" {
			status = http.StatusInternalServerError
		}
		w.update(ctx)
		if s := CurrentStatus(); s.Rejected == "" || !strings.Contains(s.Rejected, c.says) || !knows(t, "FirstNewBot") || knows(t, "ReleasedNewBot") {
			t.Errorf("%s: rejected with %.300q, want %q", name, s.Rejected, c.says)
		}
	}
	served, status = signed, http.StatusOK
	began := time.Now()
	w.update(ctx)
	if s := CurrentStatus(); s.Rejected != "" || s.AsOf != date || s.Source != SourceStorage || !knows(t, "ReleasedNewBot") {
		t.Errorf("good: %+v", s)
	}
	if l := listed(func(l identity.ListStatus) bool { return l.URL == url }); l.Entries != 2 || !l.Fresh {
		t.Errorf("the list in use is not the list of the catalog: %+v", l)
	}
	t.Logf("in use after %s", time.Since(began).Round(time.Millisecond))

	c, err := crawlers.Parse("good", good)
	if err != nil {
		t.Fatal(err)
	}
	pinned, err := source.Compile("pinned.yaml", []byte("version: 1\ncatalog: "+embedded.AsOf()+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Effects(embedded, c, []*source.Snapshot{pinned}); err == nil || !strings.Contains(err.Error(), "pinned.yaml requires the catalog of "+embedded.AsOf()) {
		t.Errorf("with a policy that fails under the new catalog: %v", err)
	}
	effects, err := Effects(embedded, c, []*source.Snapshot{running})
	if err != nil || len(effects) != 1 || !strings.Contains(effects[0], "ReleasedNewBot") {
		t.Errorf("effects: %q, %v", effects, err)
	}
	t.Logf("effects of the catalog: %s", strings.Join(effects, "\n"))
	if _, err := Effects(embedded, c, make([]*source.Snapshot, maxJudged+1)); err == nil {
		t.Error("more policies than can be judged")
	}
}

// A catalog is rejected if a search engine would lose something because of it.
func TestSearchLosesByCatalog(t *testing.T) {
	running, err := source.Compile("policy.yaml", []byte("version: 1\nenforcement: block\nrules:\n  - for: everyone\n    disallow: {crawl: /a/}\n  - for: category:seo\n    disallow: {crawl: /b/}\n"))
	if err != nil {
		t.Fatal(err)
	}
	before, err := crawlers.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	data := bytes.Replace(catalog(t, "2030-01-01", "X-Bot"), []byte("  Bingbot:\n    operator: Microsoft\n    category: search\n"), []byte("  Bingbot:\n    operator: Microsoft\n    category: seo\n"), 1)
	data = bytes.Replace(data, []byte("    results: web\n    honors: yes\n    docs: https://www.bing.com"), []byte("    honors: yes\n    docs: https://www.bing.com"), 1)
	after, err := crawlers.Parse("new", data)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Effects(before, after, []*source.Snapshot{running}); err == nil || !strings.Contains(err.Error(), "Bingbot would lose something") {
		t.Error(err)
	}
}

func TestAged(t *testing.T) {
	c, err := crawlers.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	date, err := time.Parse(time.DateOnly, c.AsOf())
	if err != nil {
		t.Fatal(err)
	}
	if got := Aged(c, date.Add(maxAge)); got != "" {
		t.Error(got)
	}
	if got := Aged(c, date.Add(maxAge+time.Hour)); !strings.Contains(got, "more than 90 days ago") {
		t.Error(got)
	}
}
