// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"errors"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
)

// answers maps URLs to the responses of web servers. Other URLs fail.
type answers map[string]string

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) {
	text, ok := a[r.URL.String()]
	if !ok {
		return nil, errors.New("no route")
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(text)), Request: r}, nil
}

// A refreshed snapshot has the lists that are published now. If fetching a list fails, or the list has shrunk, the
// snapshot has the embedded list with its date.
func TestFetchSnapshot(t *testing.T) {
	var embedded []string
	for url, l := range snapshot() {
		if l.prefixes.Size() >= 4 {
			embedded = append(embedded, url)
		}
	}
	if len(embedded) < 3 {
		t.Fatal("too few lists are embedded")
	}
	fresh, shrunk, down, added := embedded[0], embedded[1], embedded[2], "https://new.example/ips.txt"
	text, err := FetchSnapshot(t.Context(), []string{fresh, shrunk, down, added, "https://gone.example/ips.txt"}, ListOptions{
		Client: &http.Client{Transport: answers{fresh: "9.9.9.0/24\n" + embeddedLines(fresh), shrunk: "9.9.8.0/24\n", added: "9.9.7.0/24\n2606:4700::/32\n"}},
		Now:    func() time.Time { return time.Date(2026, 11, 24, 0, 0, 0, 0, time.UTC) },
	})
	if err == nil || strings.Count(err.Error(), "\n") != 2 || !strings.Contains(err.Error(), "shrunk") {
		t.Errorf("error %v", err)
	}
	got := readSnapshot(text)
	if len(got) != 4 {
		t.Errorf("%d lists", len(got))
	}
	for url, want := range map[string]struct {
		date time.Time
		n    int
	}{
		fresh: {time.Date(2026, 11, 24, 0, 0, 0, 0, time.UTC), snapshot()[fresh].Prefixes + 1}, added: {time.Date(2026, 11, 24, 0, 0, 0, 0, time.UTC), 2},
		shrunk: {snapshot()[shrunk].Date, snapshot()[shrunk].Prefixes}, down: {snapshot()[down].Date, snapshot()[down].Prefixes},
	} {
		if l := got[url]; l == nil || !l.Date.Equal(want.date) || l.Prefixes != want.n || l.Prefixes == 0 {
			t.Errorf("%s: %+v, want %+v", url, l.ListStatus, want)
		}
	}
	if !strings.HasPrefix(text, "# SPDX-License-Identifier: Apache-2.0\n") || strings.Count(text, "#") != strings.Count(snapshotText, "#") {
		t.Errorf("the text begins with %.200q", text)
	}
}

// Newer lists of a newer catalog replace the lists in use. Older lists and shrunken lists do not.
func TestRenew(t *testing.T) {
	var url string
	for u, l := range snapshot() {
		if l.prefixes.Size() >= 4 && l.prefixes.Size4() > 0 {
			url = u
			break
		}
	}
	old := snapshot()[url]
	now := old.Date.AddDate(0, 1, 0)
	first := firstOf(old)
	lists := NewLists([]string{url}, ListOptions{Now: func() time.Time { return now }})
	t.Cleanup(func() { crawlers.Install(nil) })
	install := func(text string) {
		t.Helper()
		c, err := crawlers.Parse("newer", []byte("version: 1\nas-of: 2026-12-01\ncrawlers:\n  ABot: {operator: A, category: seo, honors: yes, source: field, examples: [ABot/1]}\naddresses: |\n"+
			"  "+strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  ")+"\n"))
		if err != nil {
			t.Fatal(err)
		}
		crawlers.Install(c)
		lists.Renew()
	}
	ask := func(a string) answer { got, _ := lists.ask([]string{url}, netip.MustParseAddr(a)); return got }
	entry := func(date time.Time, lines string) string {
		return "date " + date.Format(time.DateOnly) + "\nlist " + url + "\n" + lines
	}
	before := embeddedLines(url)
	install(entry(old.Date.AddDate(0, 0, -1), before+"203.0.112.0/24\n"))
	if ask("203.0.112.1") == yes {
		t.Error("an older list is used")
	}
	if got, _ := NewLists([]string{url}, ListOptions{}).ask([]string{url}, netip.MustParseAddr("203.0.112.1")); got == yes {
		t.Error("an older list is used from the start")
	}
	install(entry(now, "203.0.112.0/24\n"))
	if ask("203.0.112.1") == yes || ask(first.String()) != yes {
		t.Error("a list that has lost nearly all entries is used")
	}
	install(entry(now, before+"203.0.112.0/24\n"))
	if ask("203.0.112.1") != yes || ask(first.String()) != yes {
		t.Errorf("a newer list is not used: %+v", lists.Status())
	}
	if s := lists.Status()[0]; !s.Fresh || !s.Snapshot {
		t.Errorf("%+v", s)
	}
	crawlers.Install(nil)
	if lists.Renew(); ask("203.0.112.1") != yes {
		t.Error("an older list of the catalog replaced a newer list")
	}
}
