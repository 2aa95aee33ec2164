// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

const testURL = "https://example.com/list.json"

// fakeServer answers the first request with the first step, the second request with the second step, and so on. After
// the last step, it repeats that step.
type fakeServer struct {
	steps []step

	mu       sync.Mutex // protects the fields below while a fetch may be in progress
	requests []*http.Request
	times    []time.Time
}

type step struct {
	status int
	body   string
	header http.Header
	err    error
	wait   time.Duration
}

func (s *fakeServer) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	now := s.steps[min(len(s.requests), len(s.steps)-1)]
	s.requests = append(s.requests, r)
	s.times = append(s.times, time.Now())
	s.mu.Unlock()
	if now.wait > 0 {
		select {
		case <-time.After(now.wait):
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	if now.err != nil {
		return nil, now.err
	}
	header := now.header
	if header == nil {
		header = http.Header{}
	}
	return &http.Response{StatusCode: now.status, Header: header, Body: io.NopCloser(bytes.NewBufferString(now.body)), Request: r}, nil
}

func (s *fakeServer) seen() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.requests)
}

// listOf returns a list of n prefixes that begins with 198.18.0.0/24.
func listOf(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "198.%d.%d.0/24\n", 18+i>>8, i&255)
	}
	return b.String()
}

var (
	onList    = netip.MustParseAddr("198.18.0.9")
	notOnList = netip.MustParseAddr("203.0.113.9")
)

// run starts Lists with one URL in a synctest bubble, calls f, and stops the Lists.
func run(t *testing.T, server *fakeServer, f func(l *Lists)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := NewLists([]string{testURL}, ListOptions{Client: &http.Client{Transport: server}})
		l.Start()
		defer l.Stop()
		f(l)
	})
}

func (l *Lists) answerTo(a netip.Addr) answer {
	got, _ := l.ask([]string{testURL}, a)
	return got
}

func TestListsBeforeAndAfterTheFirstFetch(t *testing.T) {
	server := &fakeServer{steps: []step{{status: 200, body: listOf(10)}}}
	run(t, server, func(l *Lists) {
		if l.answerTo(onList) != silent || l.answerTo(notOnList) != silent {
			t.Error("a missing list gives an answer")
		}
		if s := l.Status()[0]; s.URL != testURL || s.Prefixes != 0 || s.Fresh || !s.Date.IsZero() {
			t.Errorf("%+v", s)
		}
		time.Sleep(firstWait + time.Millisecond)
		synctest.Wait()
		if l.answerTo(onList) != yes || l.answerTo(notOnList) != no {
			t.Error("wrong answers after the first fetch")
		}
		if s := l.Status()[0]; s.Prefixes != 10 || !s.Fresh || s.Snapshot || s.Err != nil || s.Date.IsZero() {
			t.Errorf("%+v", s)
		}
		if got, _ := l.ask([]string{testURL, "https://example.com/other"}, notOnList); got != silent {
			t.Error("one of two lists is missing, but the answer is not silent")
		}
		if got, url := l.ask([]string{"https://example.com/other", testURL}, onList); got != yes || url != testURL {
			t.Error("one of two lists has the address, but the answer is not yes")
		}
	})
	if ua := server.requests[0].Header.Get("User-Agent"); !strings.HasPrefix(ua, "caddy-robots-policy") {
		t.Errorf("User-Agent %q", ua)
	}
}

func TestListsInterval(t *testing.T) {
	for _, tt := range []struct {
		name string
		step step
		want time.Duration
	}{
		{"a day", step{status: 200, body: listOf(1)}, 24 * time.Hour},
		{"short max-age", step{status: 200, body: listOf(1), header: http.Header{"Cache-Control": {"public, max-age=60"}}}, 24 * time.Hour},
		{"longer max-age", step{status: 200, body: listOf(1), header: http.Header{"Cache-Control": {"public, Max-Age=172800"}}}, 48 * time.Hour},
		{"absurd max-age", step{status: 200, body: listOf(1), header: http.Header{"Cache-Control": {"max-age=99999999999999999999"}}}, maxWait},
		{"after a failure", step{status: 503}, time.Hour},
		{"after a failure with max-age", step{status: 503, header: http.Header{"Cache-Control": {"max-age=7200"}}}, 2 * time.Hour},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := &fakeServer{steps: []step{tt.step}}
			run(t, server, func(*Lists) { time.Sleep(2*maxWait + time.Hour) })
			if got := server.times[1].Sub(server.times[0]); got != tt.want {
				t.Errorf("%s between two fetches, want %s", got, tt.want)
			}
		})
	}
	server := &fakeServer{steps: []step{{status: 503}}}
	run(t, server, func(*Lists) { time.Sleep(10 * 24 * time.Hour) })
	for i, want := range []time.Duration{1, 2, 4, 8, 16, 24, 24} {
		if got := server.times[i+1].Sub(server.times[i]); got != want*time.Hour {
			t.Errorf("%s after failure %d, want %d hours", got, i+1, want)
		}
	}
}

func TestListsKeepTheLastGood(t *testing.T) {
	failures := map[string]step{
		"status":       {status: 404, body: listOf(10)},
		"network":      {err: errors.New("no route")},
		"empty":        {status: 200, body: ""},
		"no prefixes":  {status: 200, body: `{"prefixes": []}`},
		"error page":   {status: 200, body: "<html>Sorry</html>"},
		"huge":         {status: 200, body: strings.Repeat("x", maxListBytes+1)},
		"shrunken":     {status: 200, body: listOf(4)},
		"unasked 304":  {status: 304},
		"not complete": {status: 206, body: listOf(10)},
	}
	for name, failure := range failures {
		t.Run(name, func(t *testing.T) {
			first := step{status: 200, body: listOf(10)}
			if name == "unasked 304" {
				first = step{status: 500}
			}
			run(t, &fakeServer{steps: []step{first, failure}}, func(l *Lists) {
				time.Sleep(26 * time.Hour)
				synctest.Wait()
				s := l.Status()[0]
				if s.Err == nil {
					t.Fatalf("no error: %+v", s)
				}
				if name != "unasked 304" && (s.Prefixes != 10 || l.answerTo(onList) != yes || (l.answerTo(notOnList) != no) != (name == "shrunken")) {
					t.Errorf("%+v", s)
				}
				time.Sleep(7 * 24 * time.Hour)
				synctest.Wait()
				if name == "shrunken" || name == "unasked 304" {
					return
				}
				if l.answerTo(onList) != yes || l.answerTo(notOnList) != silent || l.Status()[0].Fresh {
					t.Error("a stale list detects impostors, or no longer verifies clients")
				}
				if name != "status" {
					return // The remaining checks would give the same results, but would read a huge list for months.
				}
				time.Sleep(maxVerifyAge)
				synctest.Wait()
				if l.answerTo(onList) != silent {
					t.Error("a very old list still verifies")
				}
			})
		})
	}
}

// A list that has lost many entries is used only after the server has returned it for a day. Until then, the old list
// verifies clients, but does not detect impostors.
func TestListsShrinkGuard(t *testing.T) {
	short := step{status: 200, body: listOf(4)}
	shorter := step{status: 200, body: listOf(1)}
	full := step{status: 200, body: listOf(10)}
	for _, tt := range []struct {
		name  string
		steps []step
		after time.Duration // time since the second fetch, which is the first one that may return a shrunken list
		want  int
	}{
		{"not confirmed yet", []step{full, short}, 23 * time.Hour, 10},
		{"confirmed", []step{full, short}, 32 * time.Hour, 4},
		{"shrunk again", []step{full, short, short, short, short, shorter}, 32 * time.Hour, 10},
		{"changed slightly", []step{full, short, short, {status: 200, body: listOf(3)}}, 32 * time.Hour, 3},
		{"back to normal", []step{full, short, full}, 32 * time.Hour, 10},
		{"half is not suspicious", []step{full, {status: 200, body: listOf(5)}}, time.Minute, 5},
		{"fewer, wider prefixes", []step{full, {status: 200, body: "198.16.0.0/14\n"}}, time.Minute, 1},
		{"one family gone", []step{{status: 200, body: listOf(10) + "2a00:1::/32\n2a00:2::/32\n"}, full}, time.Hour, 12},
	} {
		t.Run(tt.name, func(t *testing.T) {
			run(t, &fakeServer{steps: tt.steps}, func(l *Lists) {
				time.Sleep(firstWait + 24*time.Hour + tt.after)
				synctest.Wait()
				s := l.Status()[0]
				if s.Prefixes != tt.want {
					t.Fatalf("%+v, want %d prefixes", s, tt.want)
				}
				pending := s.Err != nil
				if l.answerTo(onList) != yes || (l.answerTo(notOnList) == no) == pending || (s.Incomplete != "") != pending {
					t.Errorf("%+v", s)
				}
			})
		})
	}
}

// A list that may be incomplete verifies clients, but does not detect impostors.
func TestIncompleteListsRuleNothingOut(t *testing.T) {
	v6 := netip.MustParseAddr("2a00::1")
	for name, tt := range map[string]struct {
		body  string
		other netip.Addr // the answer for an address that is not on the list
		want  answer
	}{
		"complete":               {listOf(3), notOnList, no},
		"only the other family":  {listOf(3), v6, silent},
		"both families":          {listOf(3) + "2a00:1::/32\n", v6, no},
		"a malformed line":       {listOf(3) + "198.18.300.0/24\n", notOnList, silent},
		"a malformed JSON entry": {`{"prefixes":[{"ipv4Prefix":"198.18.0.0/24"},{"ipv4Prefix":"198.18.1.0/240"}]}`, notOnList, silent},
		"a private prefix":       {listOf(3) + "10.0.0.0/8\n", notOnList, silent},
		"embedded in a web page": {`<html>{"prefixes":[{"ipv4Prefix":"198.18.0.0/24"}]}</html>`, notOnList, silent},
		"a web page":             {"<html><p>Your address is 198.18.0.9</p>", notOnList, silent},
		"words and one address":  {"Forbidden\nContact us\n198.18.0.9\n", notOnList, silent},
		"truncated":              {`{"prefixes":[{"ipv4Prefix":"198.18.0.0/24"},`, notOnList, silent},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, &fakeServer{steps: []step{{status: 200, body: tt.body}}}, func(l *Lists) {
				time.Sleep(firstWait + time.Minute)
				synctest.Wait()
				if got := l.answerTo(tt.other); got != tt.want {
					t.Errorf("%d, want %d: %+v", got, tt.want, l.Status()[0])
				}
			})
		})
	}
}

// A list is fetched only once for all its users, and deleted when the last user releases it.
func TestListsAreSharedByURL(t *testing.T) {
	if testing.Short() {
		t.Skip("5,000 lists take minutes with the race detector")
	}
	synctest.Test(t, func(t *testing.T) {
		server := &fakeServer{steps: []step{{status: 200, body: listOf(3)}}}
		l := NewLists([]string{"https://example.com/common.json"}, ListOptions{Client: &http.Client{Transport: server}})
		l.Start()
		defer l.Stop()
		own := func(i int) []string { return []string{testURL, fmt.Sprintf("https://example.com/%d", i)} }
		for i := range 80 {
			if err := l.Acquire(own(i), 1000); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := server.seen(); got != 82 || len(l.Status()) != 82 {
			t.Errorf("%d fetches, %d lists", got, len(l.Status()))
		}
		if err := l.Acquire([]string{"https://example.com/a", testURL}, 1000); err != nil {
			t.Fatal(err)
		}
		var more []string
		for i := range maxLists - 1 {
			more = append(more, fmt.Sprintf("https://example.com/more%d", i))
		}
		if err := l.Acquire(more, 1000); !errors.Is(err, ErrTooManyLists) {
			t.Errorf("over the limit: %v", err)
		}
		if l.answerTo(onList) != yes || l.answerTo(notOnList) != no {
			t.Error("reaching the limit changes the answers of other lists")
		}
		for i := range 80 {
			l.Release(own(i))
		}
		if got := l.Status(); len(got) != 3 || l.answerTo(onList) != yes {
			t.Errorf("%d lists after a release, want the common one and two in use", len(got))
		}
		l.Release([]string{testURL, "https://example.com/a"})
		if got := l.Status(); len(got) != 1 || l.answerTo(onList) != silent {
			t.Errorf("%+v", got)
		}
		if err := l.Acquire(more, 2); err != nil {
			t.Errorf("after a release: %v", err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		for _, s := range l.Status() {
			if strings.Contains(s.URL, "more") && (s.Prefixes != 0 || s.Err == nil) {
				t.Errorf("a list over its limit of prefixes: %+v", s)
			}
		}
	})
}

func TestListsNotModified(t *testing.T) {
	server := &fakeServer{steps: []step{
		{status: 200, body: listOf(10), header: http.Header{"Etag": {`"a"`}, "Last-Modified": {"Tue, 03 Nov 2026 00:00:00 GMT"}}},
		{status: 304},
	}}
	run(t, server, func(l *Lists) {
		time.Sleep(10 * 24 * time.Hour)
		synctest.Wait()
		if s := l.Status()[0]; s.Prefixes != 10 || !s.Fresh || s.Err != nil || l.answerTo(notOnList) != no {
			t.Errorf("%+v", s)
		}
	})
	if h := server.requests[0].Header; h.Get("If-None-Match") != "" || h.Get("If-Modified-Since") != "" {
		t.Errorf("the first request has conditions: %v", h)
	}
	if h := server.requests[2].Header; h.Get("If-None-Match") != `"a"` || h.Get("If-Modified-Since") == "" {
		t.Errorf("the third request has no conditions: %v", h)
	}
}

func TestListsStartAndStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &fakeServer{steps: []step{{status: 200, body: listOf(2), wait: 20 * time.Second}}}
		var reports []ListStatus
		l := NewLists([]string{testURL, testURL}, ListOptions{
			Client: &http.Client{Transport: server},
			Report: func(s ListStatus) { reports = append(reports, s) },
		})
		l.Stop()
		begin := time.Now()
		l.Start()
		l.Start()
		if server.seen() != 0 || !time.Now().Equal(begin) {
			t.Error("Start fetches immediately, or blocks")
		}
		time.Sleep(firstWait + 10*time.Second)
		l.Stop() // while a fetch is in progress
		l.Stop()
		if took := time.Since(begin) - firstWait; took != 10*time.Second {
			t.Errorf("Stop waited %s", took-10*time.Second)
		}
		if server.seen() != 1 || len(reports) != 0 || len(l.Status()) != 1 || l.Status()[0].Prefixes != 0 {
			t.Errorf("%d requests, %d reports", server.seen(), len(reports))
		}
		l.Start()
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if len(reports) != 1 || reports[0].Prefixes != 2 || !reports[0].Fresh {
			t.Errorf("%+v", reports)
		}
		l.Stop()
	})
	synctest.Test(t, func(t *testing.T) {
		none := NewLists(nil, ListOptions{})
		none.Start()
		none.Stop()
	})
}

func TestSnapshot(t *testing.T) {
	lists := snapshot()
	if len(lists) < 10 {
		t.Errorf("%d lists", len(lists))
	}
	lines := 0
	for line := range strings.Lines(snapshotText) {
		if !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "date ") && !strings.HasPrefix(line, "list ") {
			lines++
		}
	}
	total := 0
	for url, s := range lists {
		total += s.Prefixes
		if !s.Snapshot || s.Date.Year() < 2026 || s.URL != url || s.fetched {
			t.Errorf("%s: %+v", url, s.ListStatus)
		}
	}
	if total != lines {
		t.Errorf("%d of %d prefixes were read", total, lines)
	}
	for _, tt := range []struct{ url, addr string }{
		{"https://developers.google.com/static/crawling/ipranges/common-crawlers.json", "66.249.66.1"},
		{"https://developers.google.com/static/crawling/ipranges/common-crawlers.json", "2001:4860:4801:10::1"},
		{"https://www.bing.com/toolbox/bingbot.json", "157.55.39.1"},
	} {
		s := lists[tt.url]
		if s == nil || !s.prefixes.Contains(netip.MustParseAddr(tt.addr)) || s.prefixes.Contains(netip.MustParseAddr("203.0.113.1")) {
			t.Errorf("%s: %s", tt.url, tt.addr)
		}
	}
}

// The embedded lists verify clients. They detect impostors only while they are fresh.
func TestListsBeginWithTheSnapshot(t *testing.T) {
	url := "https://openai.com/gptbot.json"
	s := snapshot()[url]
	for _, tt := range []struct {
		age            time.Duration
		inside, beside answer
	}{
		{24 * time.Hour, yes, no},
		{8 * 24 * time.Hour, yes, silent},
		{210 * 24 * time.Hour, yes, silent},
		{211 * 24 * time.Hour, silent, silent},
	} {
		l := NewLists([]string{url}, ListOptions{Now: func() time.Time { return s.Date.Add(tt.age) }})
		if got, _ := l.ask([]string{url}, firstOf(s)); got != tt.inside {
			t.Errorf("%s: address on the list: %d", tt.age, got)
		}
		if got, _ := l.ask([]string{url}, notOnList); got != tt.beside {
			t.Errorf("%s: address not on the list: %d", tt.age, got)
		}
	}
}

// Without a client in the options, Lists follows a few redirects, and only to https.
func TestDefaultClientRedirects(t *testing.T) {
	client := NewLists(nil, ListOptions{}).options.Client
	if client.CheckRedirect == nil {
		t.Fatal("redirects to http are followed")
	}
	for _, tt := range []struct {
		url  string
		via  int
		fine bool
	}{{"https://example.com/", 1, true}, {"https://example.com/", 3, true}, {"https://example.com/", 4, false}, {"http://example.com/", 1, false}} {
		r, err := http.NewRequest(http.MethodGet, tt.url, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if err := client.CheckRedirect(r, make([]*http.Request, tt.via)); (err == nil) != tt.fine {
			t.Errorf("%s after %d: %v", tt.url, tt.via, err)
		}
	}
}

// Old says that a fetched list is too old to detect impostors. For any list, it warns a month before the list becomes
// too old to verify clients.
func TestOld(t *testing.T) {
	date := time.Date(2026, 5, 5, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		days    int
		builtIn bool
		want    string
	}{
		{7, false, ""},
		{8, false, "from 2026-05-05, too old to detect impostors; after 2026-12-01, it will also be too old to verify crawlers"},
		{8, true, ""},
		{180, true, ""},
		{181, true, "from 2026-05-05; after 2026-12-01, it will be too old to verify crawlers"},
		{210, true, "from 2026-05-05; after 2026-12-01, it will be too old to verify crawlers"},
		{211, true, "from 2026-05-05, too old to verify crawlers"},
		{211, false, "from 2026-05-05, too old to verify crawlers"},
	} {
		l := ListStatus{Date: date, Snapshot: c.builtIn}
		if got := l.Old(date.AddDate(0, 0, c.days)); got != c.want {
			t.Errorf("%d days, built in %t: %q, want %q", c.days, c.builtIn, got, c.want)
		}
	}
	if got := new(ListStatus).Old(date); got != "" {
		t.Errorf("no list: %q", got)
	}
}

// After a refresh that failed for some lists, the lists have different dates. The oldest date matters, because that
// list expires first.
func TestOldest(t *testing.T) {
	text := ""
	for _, date := range []string{"2026-09-24", "2026-05-05", "2026-07-01"} {
		text += "date " + date + "\nlist https://" + date + ".example/list.json\n192.0.2.0/24\n"
	}
	lists := readSnapshot(text)
	if got := oldest(lists).Format(time.DateOnly); got != "2026-05-05" || len(lists) != 3 {
		t.Errorf("%s of %d lists", got, len(lists))
	}
}

// firstOf returns an address on a list. It prefers an IPv4 address.
func firstOf(l *list) netip.Addr {
	for p := range l.prefixes.AllSorted() {
		return p.Addr()
	}
	return netip.Addr{}
}
