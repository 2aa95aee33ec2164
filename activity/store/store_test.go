// SPDX-License-Identifier: Apache-2.0

package store

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/claim"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

var start = time.Date(2026, 11, 20, 22, 30, 0, 0, time.UTC)

func open(t *testing.T, dir string, o Options) *Store {
	t.Helper()
	s, err := Open(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func closeStore(t *testing.T, s *Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func totals(t *testing.T, dir string, q Query) []Row {
	t.Helper()
	r, err := OpenReader(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if q.To.IsZero() {
		q.From, q.To = start.Add(-1000*24*time.Hour), start.Add(1000*24*time.Hour)
	}
	rows, err := r.Totals(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// model holds the totals of requests. Its keys are the values of a query's dimensions.
type model map[string]Counts

func (m model) add(q Query, v activity.Request) {
	if v.Time.Before(q.From) || !v.Time.Before(q.To) {
		return
	}
	k, _ := rowOf(&v)
	for d, values := range q.Only {
		if !slices.Contains(values, valuesOf(&k)[d]) {
			return
		}
	}
	if q.Violating && !v.Violation || !strings.HasPrefix(k.Path, q.PathPrefix) {
		return
	}
	id := ""
	for _, d := range q.By {
		switch d {
		case ByHour:
			id += v.Time.UTC().Truncate(time.Hour).Format(time.RFC3339) + "|"
		case ByDay:
			day := v.Time.UTC().Truncate(24 * time.Hour)
			if first := q.From.UTC().Truncate(24 * time.Hour); q.Days > 1 {
				day = day.AddDate(0, 0, -int(day.Sub(first).Hours()/24)%q.Days)
			}
			id += day.Format(time.RFC3339) + "|"
		default:
			id += valuesOf(&k)[d] + "|"
		}
	}
	c := m[id]
	d := Counts{Requests: 1, Bytes: v.Bytes}
	if v.Violation {
		d.Violations = 1
	}
	if v.Category != activity.CategoryUnlisted && v.Identity != activity.Impostor && v.Robots == "" {
		d.Unread = 1
	}
	c.add(d)
	m[id] = c
}

func modelOf(q Query, rows []Row) model {
	m := model{}
	for _, r := range rows {
		id := ""
		for _, d := range q.By {
			if d.hours() > 0 {
				id += r.Start.Format(time.RFC3339) + "|"
			} else {
				id += r.Values[d] + "|"
			}
		}
		m[id] = Counts{Requests: r.Requests, Bytes: r.Bytes, Violations: r.Violations, Unread: r.Unread}
	}
	return m
}

func randomVisit(rnd *rand.Rand, at time.Time) activity.Request {
	pick := func(s ...string) string { return s[rnd.IntN(len(s))] }
	crawler := pick("GPTBot", "Googlebot", "curl")
	v := activity.Request{
		Time: at, Host: pick("a.example", "b.example"), Path: pick("/", "/news/", "/members/x", "/\xff"), Crawler: crawler,
		Category: map[string]string{"GPTBot": "ai-training", "Googlebot": "search", "curl": activity.CategoryUnlisted}[crawler],
		Identity: activity.Identity(pick("verified", "unverified", "impostor")), Decision: activity.Decision(pick("allowed", "blocked")),
		Rule: pick("", "AI out"), Policy: pick("p1", "p2"), Bytes: int64(rnd.IntN(1000)), Violation: rnd.IntN(5) == 0,
		QueryOmitted: rnd.IntN(3) == 0, Robots: pick("", "", "r1"),
	}
	if rnd.IntN(10) == 0 {
		v.Rule, v.Violation = "robots", true
	}
	return v
}

// TestTotalsAgainstModel records random requests of two servers over four days. In between, rows are merged, days end,
// and databases are reopened. It compares the answers to random queries with sums computed request by request, for each
// server and for the fleet.
func TestTotalsAgainstModel(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	rnd := rand.New(rand.NewPCG(1, 2))
	fleet := newFleet(t)
	var all []activity.Request
	for _, node := range []string{"name 'a'", "b\t\\"} {
		dir := t.TempDir()
		visits := recordRandomly(t, rnd, dir, fleet, node)
		r := openReader(t, dir)
		checkTotals(t, rnd, r, visits)
		checkEachRow(t, r, visits)
		if fleet != nil {
			one := *fleet
			one.Node = node
			checkTotals(t, rnd, &one, visits)
		}
		all = append(all, visits...)
	}
	if fleet != nil {
		checkTotals(t, rnd, fleet, all)
		checkEachRow(t, fleet, all)
	}
}

// recordRandomly records random requests in a directory. If there is a fleet database, it sends the rows from time to
// time.
func recordRandomly(t *testing.T, rnd *rand.Rand, dir string, fleet *FleetReader, node string) (visits []activity.Request) {
	t.Helper()
	var now time.Time
	o := Options{Now: func() time.Time { return now }, writeInterval: time.Hour}
	s := open(t, dir, o)
	recorded := testkit.Rounds(300, 1500)
	if testing.Short() {
		recorded = 300 // SQLite in Go is slow with the race detector
	}
	for i := range recorded {
		now = start.Add(time.Duration(i) * 96 * time.Hour / time.Duration(recorded))
		v := randomVisit(rnd, now)
		s.waiting.addVisit(&v)
		v.Path = activity.Text(v.Path)
		visits = append(visits, v)
		switch {
		case i%17 == 0:
			write(t, s)
		case i == recorded/2+1:
			closeStore(t, s)
			s = open(t, dir, o)
		case i%(recorded/13) == 0:
			name := node
			if i%2 == 0 {
				name = "what it was called before"
			}
			send(t, s, fleet, name)
		}
	}
	write(t, s)
	if fleet != nil {
		send(t, s, fleet, node)
	}
	t.Cleanup(func() { closeStore(t, s) })
	return visits
}

func write(t *testing.T, s *Store) {
	t.Helper()
	s.startWrite(true)
	if err := s.finish(<-s.writing); err != nil {
		t.Fatal(err)
	}
}

// tick runs the store's work of one second, and waits until its write has ended.
func tick(t *testing.T, s *Store) {
	t.Helper()
	s.tick()
	if s.writing != nil {
		if err := s.finish(<-s.writing); err != nil {
			t.Fatal(err)
		}
	}
}

// valuesOf returns the values that identify a request's row.
func valuesOf(k *sumKey) Values {
	return Values{ByHost: k.Host, ByCrawler: k.Crawler, ByKind: k.Kind, ByIdentity: k.Identity, ByDecision: k.Decision, ByRule: k.Rule, ByPolicy: k.Policy, ByPath: k.Path}
}

func openReader(t *testing.T, dir string) *Reader {
	t.Helper()
	r, err := OpenReader(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// checkTotals compares the answers to random queries with sums. It computes these sums request by request.
func checkTotals(t *testing.T, rnd *rand.Rand, r Queries, visits []activity.Request) {
	t.Helper()
	asked := 300
	if testing.Short() {
		asked = 30
	}
	dimensions := []Dimension{ByHost, ByCrawler, ByKind, ByIdentity, ByDecision, ByRule, ByPolicy, ByPath, ByHour, ByDay}
	for range asked {
		q := Query{From: start.Truncate(time.Hour).Add(time.Duration(rnd.IntN(120)-10) * time.Hour), Only: map[Dimension][]string{}}
		q.To = q.From.Add(time.Duration(rnd.IntN(100)) * time.Hour)
		for _, i := range rnd.Perm(len(dimensions))[:rnd.IntN(4)] {
			if d := dimensions[i]; d.hours() == 0 || !q.timed() {
				q.By = append(q.By, d)
			}
		}
		q.Days = rnd.IntN(4)
		if rnd.IntN(2) == 0 {
			q.Only[ByCrawler] = []string{"GPTBot", "NoSuchBot"}
		}
		if rnd.IntN(4) == 0 {
			q.Only[ByKind] = []string{"search", "ai-training"}
		}
		if rnd.IntN(4) == 0 {
			q.Only[ByPath] = []string{"/news/"}
		}
		if rnd.IntN(4) == 0 {
			q.PathPrefix = []string{"/", "/n", "/news/", "x", "/\xff"}[rnd.IntN(5)]
		}
		q.Violating = violating(rnd, &q)
		want := model{}
		for _, v := range visits {
			want.add(q, v)
		}
		rows, err := r.Totals(t.Context(), q)
		if got := modelOf(q, rows); err != nil || !maps.Equal(got, want) {
			t.Fatalf("%T, %+v: %v\ngot  %v\nwant %v", r, q, err, got, want)
		}
	}
}

// checkEachRow compares all rows with sums of the requests.
func checkEachRow(t *testing.T, r Queries, visits []activity.Request) {
	t.Helper()
	want := map[string]Counts{}
	for _, v := range visits {
		id := strings.Join([]string{v.Time.UTC().Format(time.DateOnly), v.Host, v.Crawler, v.Category, string(v.Identity), string(v.Decision), v.Rule, v.Policy, v.Path}, "|")
		s := newSums(1)
		s.addVisit(&v)
		for _, c := range s.rows {
			c.Unread = 0 // EachRow does not report this number
			sum := want[id]
			sum.add(*c)
			want[id] = sum
		}
	}
	got := map[string]Counts{}
	covered, err := r.EachRow(t.Context(), start.AddDate(-1, 0, 0), start.AddDate(1, 0, 0), func(v activity.Totals) error {
		id := strings.Join([]string{v.Start.Format(time.DateOnly), v.Host, v.Crawler, v.Category, string(v.Identity), string(v.Decision), v.Rule, v.Policy, v.Path}, "|")
		sum := got[id]
		sum.add(Counts{Requests: v.Requests, Bytes: v.Bytes, Violations: v.Violations, Queries: v.Queries})
		got[id] = sum
		return nil
	})
	if err != nil || len(covered.Gaps) > 0 || !maps.Equal(got, want) {
		t.Errorf("%T: %d rows by day, want %d; gaps %v, %v", r, len(got), len(want), covered.Gaps, err)
	}
}

// violating makes a quarter of the queries select rows with violations. It also limits these queries to the rule
// "robots", because all requests under this rule are violations. Rows of other rules may include requests without a
// violation, so the test could not compute their number of requests.
func violating(rnd *rand.Rand, q *Query) bool {
	if rnd.IntN(4) > 0 {
		return false
	}
	q.Only[ByRule] = []string{"robots"}
	return true
}

func TestWhatAKilledProcessLeavesIsWhole(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(3, 4))
	dir, copied := t.TempDir(), t.TempDir()
	s := open(t, dir, Options{writeInterval: time.Hour})
	record := func(n int) {
		for range n {
			v := randomVisit(rnd, start)
			s.waiting.addVisit(&v)
		}
		write(t, s)
	}
	record(100)
	record(50)
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	last := filepath.Join(copied, databaseName+"-wal")
	for _, torn := range []string{"", "\x00", "\x10\x00\x00\x00\x00\x00\x00\x00half of a batch"} {
		f, err := os.OpenFile(last, os.O_APPEND|os.O_WRONLY, 0)
		if err == nil {
			_, _ = f.WriteString(torn)
			_ = f.Close()
		}
		again := open(t, copied, Options{})
		closeStore(t, again)
		if rows := totals(t, copied, Query{}); len(rows) != 1 || rows[0].Requests != 150 {
			t.Fatalf("after %q: %+v, want 150 requests", torn, rows)
		}
	}
	closeStore(t, s)
}

func TestRowsAreBoundedAndTheBusiestStay(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("thousands of rows: SQLite in Go is slow with the race detector")
	}
	rnd := rand.New(rand.NewPCG(5, 6))
	dir := t.TempDir()
	now := start
	s := open(t, dir, Options{RowsPerHour: 100, writeInterval: time.Hour, Now: func() time.Time { return now }})
	zipf := rand.NewZipf(rnd, 1.2, 1, 50_000)
	truth := map[string]int64{}
	const visits = 50_000
	for i := range visits {
		path := fmt.Sprintf("/p/%d", zipf.Uint64())
		truth[path]++
		s.waiting.addVisit(&activity.Request{Time: start, Host: "h", Crawler: "c", Path: path, Bytes: 1})
		if i%1000 == 0 {
			write(t, s)
		}
		if i%10_000 == 0 {
			write(t, s)
		}
	}
	now = start.Add(48 * time.Hour)
	closeStore(t, s)
	s = open(t, dir, Options{RowsPerHour: 100, Now: func() time.Time { return now }})
	if err := s.retain(t.Context(), now, false); err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)
	rows := totals(t, dir, Query{By: []Dimension{ByPath}})
	if len(rows) > 201 {
		t.Errorf("%d rows", len(rows))
	}
	sum, got := int64(0), map[string]int64{}
	for _, r := range rows {
		sum += r.Requests
		got[r.Values[ByPath]] = r.Requests
	}
	if sum != visits {
		t.Errorf("%d requests in all, want %d: the limit must not lose any request", sum, visits)
	}
	for i := range 10 {
		path := fmt.Sprintf("/p/%d", i)
		if n := got[path]; n < truth[path]*95/100 || n > truth[path] {
			t.Errorf("%s: %d requests, want %d or up to 5 %% less", path, n, truth[path])
		}
	}
}

func TestSizeIsBounded(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	if testing.Short() {
		t.Skip("thousands of rows: SQLite in Go is slow with the race detector")
	}
	dir := t.TempDir()
	now := start
	days := 24
	if testkit.Long() {
		days = 90
	}
	const (
		limit = 2 << 20
		paths = 30 // an hour
	)
	s := open(t, dir, Options{MaxBytes: limit, writeInterval: time.Hour, Now: func() time.Time { return now }})
	for hour := range 24 * days {
		now = start.Add(time.Duration(hour) * time.Hour)
		for i := range paths {
			s.waiting.addVisit(&activity.Request{Time: now, Host: "h", Crawler: "c", Path: fmt.Sprintf("/%d/%s%d", hour, strings.Repeat("x", 40), i)})
		}
		if hour%24 != 23 {
			continue
		}
		write(t, s)
		if size, err := sizeOf(t.Context(), s.db); err != nil || size > limit {
			t.Fatalf("hour %d: %d bytes, %v", hour, size, err)
		}
	}
	closeStore(t, s)
	if info, err := os.Stat(filepath.Join(dir, databaseName)); err != nil || info.Size() > 2*limit {
		t.Errorf("the file has %d bytes, %v", info.Size(), err)
	}
	if rows := totals(t, dir, Query{}); len(rows) != 1 || rows[0].Requests != int64(24*days*paths) {
		t.Errorf("%+v: totals by day must remain when hours with paths are deleted", rows)
	}
	lastWeek := Query{From: now.Add(-6 * 24 * time.Hour), To: now.Add(time.Hour), By: []Dimension{ByPath}}
	if rows := totals(t, dir, lastWeek); len(rows) < 6*24*paths {
		t.Errorf("%d paths of the last six days, want all", len(rows))
	}
	if rows := totals(t, dir, Query{By: []Dimension{ByPath}}); len(rows) >= 24*days*paths {
		t.Error("no row with a path was deleted: the test does not reach the limit")
	}
}

func TestExpire(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("thousands of rows: SQLite in Go is slow with the race detector")
	}
	dir := t.TempDir()
	now := start
	s := open(t, dir, Options{Hours: 48 * time.Hour, Days: 10 * 24 * time.Hour, writeInterval: time.Hour, Now: func() time.Time { return now }})
	for day := range 30 {
		now = start.Add(time.Duration(day) * 24 * time.Hour)
		s.waiting.addVisit(&activity.Request{Time: now, Host: "h", Crawler: fmt.Sprint("c", day), Path: fmt.Sprint("/", day)})
		write(t, s)
		if err := s.retain(t.Context(), now, true); err != nil {
			t.Fatal(err)
		}
	}
	if rows := totals(t, dir, Query{By: []Dimension{ByDay}}); len(rows) != 11 {
		t.Errorf("%d days are stored, want 11", len(rows))
	}
	var texts int
	if err := s.db.QueryRow("SELECT count(*) FROM strings WHERE text LIKE 'c%' OR text LIKE '/%'").Scan(&texts); err != nil || texts != 22 {
		t.Errorf("%d texts, want only the texts of 11 days: %v", texts, err)
	}
	closeStore(t, s)
}

// Texts in the table "strings" are deleted once a day if only deleted rows used them.
func TestTextsAreSweptOnceADay(t *testing.T) {
	t.Parallel()
	midnight := start.Truncate(24 * time.Hour)
	s := open(t, t.TempDir(), Options{Hours: 2 * time.Hour, writeInterval: time.Hour})
	for hour := range 7 {
		sums := newSums(10)
		sums.addVisit(&activity.Request{Time: midnight.Add(time.Duration(hour) * time.Hour), Host: "h", Crawler: "c", Path: fmt.Sprint("/", hour)})
		if err := s.merge(t.Context(), sums); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct{ hour, texts int }{{2, 7}, {4, 7}, {23, 7}, {24, 0}} {
		// The hours were not added up to days yet, so only the texts of the remaining hours are left.
		if err := s.expire(t.Context(), midnight.Add(time.Duration(tt.hour)*time.Hour)); err != nil {
			t.Fatal(err)
		}
		var texts int
		if err := s.db.QueryRow("SELECT count(*) FROM strings WHERE text LIKE '/%'").Scan(&texts); err != nil || texts != tt.texts {
			t.Errorf("at %d: %d texts, want %d: %v", tt.hour, texts, tt.texts, err)
		}
	}
	closeStore(t, s)
}

func TestOneWriter(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir, Options{})
	if again, err := Open(t.Context(), dir, Options{}); err == nil {
		_ = again.Close()
		t.Error("two stores write to one directory")
	} else if !strings.Contains(err.Error(), "another process uses the activity database "+dir) {
		t.Error(err)
	}
	closeStore(t, s)
	closeStore(t, open(t, dir, Options{}))
}

// published returns a publication with the given version number. Its ID is the letter id, repeated 64 times.
func published(id, number string) *activity.Publication {
	return &activity.Publication{ID: strings.Repeat(id, 64), Number: number, Name: "site.yaml", SHA256: strings.Repeat("p", 64), Time: start, Text: "text"}
}

func TestReadsAndPublications(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ctx := context.Background()
	s := open(t, dir, Options{writeInterval: time.Hour})
	for i, version := range []string{"v1", "v1", "v2"} {
		s.waiting.addVisit(&activity.Request{Time: start.Add(time.Duration(i) * time.Hour), Host: "h", Crawler: "GPTBot", Category: "ai-training", Robots: version, RobotsTxt: true, Publication: "111111111111", Number: version[1:]})
	}
	s.waiting.addVisit(&activity.Request{Time: start, Host: "h", Crawler: "GPTBot", Robots: "v0", RobotsTxt: true, Identity: activity.Impostor})
	write(t, s)
	// The same text is published three times. A new number makes another publication with the same ID, but publishing
	// the number 1 again does not.
	for i, number := range []string{"1", "2", "1"} {
		p := published("1", number)
		p.Time = start.Add(time.Duration(i) * time.Hour)
		if err := errors.Join(s.Publish(ctx, p, p.Time), s.Serve(ctx, p, site.Document{Host: "h", Version: "v" + number, Text: "User-agent: *\n"}, p.Time)); err != nil {
			t.Fatal(err)
		}
	}
	r, err := OpenReader(ctx, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for _, when := range []string{"before", "after"} { // before and after an empty write, which must not change the results
		reads, err := r.Reads(ctx)
		if err != nil || len(reads) != 2 || reads[0].Version != "v2" || reads[0].Label() != "v2" || reads[1].Label() != "v1" || reads[1].Requests != 2 || !reads[1].First.Equal(start) {
			t.Errorf("%s: %+v, %v", when, reads, err)
		}
		crawlers, err := r.Crawlers(ctx)
		if err != nil || len(crawlers) != 1 || crawlers[0].Name != "GPTBot" {
			t.Errorf("%s: %+v, %v", when, crawlers, err)
		}
		write(t, s)
	}
	all, err := r.Publications(ctx, "site.yaml")
	if err != nil || len(all) != 2 || all[0].Label() != "v2" || !all[1].First.Equal(start) {
		t.Errorf("%+v, %v", all, err)
	}
	documents, err := r.Documents(ctx)
	if err != nil || len(documents) != 2 || documents[0].Version != "v2" || !documents[1].First.Equal(start) {
		t.Errorf("%+v, %v", documents, err)
	}
	if err := s.Delete(ctx, "GPTBot", ""); err != nil {
		t.Fatal(err)
	}
	if reads, err := r.Reads(ctx); err != nil || len(reads) != 0 {
		t.Errorf("after Delete: %+v, %v", reads, err)
	}
	if rows := totals(t, dir, Query{}); len(rows) != 0 {
		t.Errorf("after Delete: %+v", rows)
	}
	closeStore(t, s)
}

func TestDeleteLeavesNoTrace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir, Options{})
	const host = "forget.me.example"
	for i := range 3000 {
		s.Record(activity.Request{Time: start, Host: host, Crawler: "GPTBot", Path: fmt.Sprintf("/of/%s/%d", host, i)})
	}
	s.Record(activity.Request{Time: start, Host: "www.example.com", Crawler: "GPTBot", Path: "/"})
	closeStore(t, s)
	name := filepath.Join(dir, databaseName)
	before, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	s = open(t, dir, Options{})
	if err := s.Delete(t.Context(), "", host); err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)
	after, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	if after.Size() > before.Size()/4 {
		t.Errorf("%d bytes before, %d after", before.Size(), after.Size())
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		data, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(data, []byte(host)) {
			t.Errorf("%s still names the host", f.Name())
		}
	}
	if rows := totals(t, dir, Query{From: start.Add(-time.Hour), To: start.Add(time.Hour)}); len(rows) != 1 || rows[0].Requests != 1 {
		t.Errorf("%+v", rows)
	}
}

func TestViolationsWithoutAPathComeLast(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir, Options{})
	for i, path := range []string{"/a", OtherPath, OtherPath, OtherPath, "/b", "/b"} {
		s.Record(activity.Request{Time: start.Add(time.Duration(i) * time.Second), Host: "h", Crawler: "GPTBot", Path: path, Violation: true})
	}
	closeStore(t, s)
	var got []string
	for _, r := range totals(t, dir, Query{From: start.Add(-time.Hour), To: start.Add(time.Hour), By: []Dimension{ByPath}, Violating: true}) {
		got = append(got, r.Values[ByPath])
	}
	if want := []string{"/b", "/a", OtherPath}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// If the rows with paths were deleted, EachRow reports a gap with the number of requests whose paths are no longer
// stored.
func TestUnstoredPathsAreAGap(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir, Options{Now: func() time.Time { return start }})
	for range 3 {
		s.Record(activity.Request{Time: start, Host: "h", Path: "/a", Crawler: "GPTBot", Category: "ai-training"})
	}
	closeStore(t, s)
	r, err := OpenReader(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for _, deleted := range []bool{false, true} {
		c, err := r.EachRow(t.Context(), start.Add(-time.Hour), start.Add(time.Hour), func(activity.Totals) error { return nil })
		if err != nil || deleted != (len(c.Gaps) == 1) || deleted && (c.Gaps[0].Name != GapUnstoredPaths || c.Gaps[0].Count != 3) {
			t.Errorf("deleted %v: %+v, %v", deleted, c, err)
		}
		db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "activity.db"))
		if err != nil {
			t.Fatal(err)
		}
		for _, table := range []string{"path_hours", "path_days"} {
			if _, err := db.ExecContext(t.Context(), "DELETE FROM "+table); err != nil {
				t.Fatal(err)
			}
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// Counts.Unread is the number of requests by crawlers that have not read any robots.txt, as far as the server knows.
// Requests that could not be recorded are a gap.
func TestUnreadAndLost(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir, Options{writeInterval: time.Hour, Now: func() time.Time { return start }})
	for _, v := range []activity.Request{
		{Crawler: "GPTBot", Category: "ai-training"},
		{Crawler: "GPTBot", Category: "ai-training", RobotsTxt: true, Robots: "r1"},
		{Crawler: "GPTBot", Category: "ai-training", Robots: "r1", Violation: true},
		{Crawler: "curl", Category: activity.CategoryUnlisted},
		{Crawler: "GPTBot", Category: "ai-training", Identity: activity.Impostor},
	} {
		v.Time, v.Host = start, "h"
		s.waiting.addVisit(&v)
	}
	s.Missed(7)
	tick(t, s)
	r, err := OpenReader(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for _, when := range []string{"before", "after"} { // before and after an empty write, which must not change the results
		rows := totals(t, dir, Query{})
		if len(rows) != 1 || rows[0].Requests != 5 || rows[0].Unread != 1 || rows[0].Violations != 1 {
			t.Errorf("%s: %+v", when, rows)
		}
		covered, err := r.Coverage(t.Context(), start.Add(-time.Hour), start.Add(time.Hour))
		if united := claim.Unite(covered); err != nil || len(united.Gaps) != 1 || united.Gaps[0].Name != GapNotRecorded || united.Gaps[0].Count != 7 {
			t.Errorf("%s: %+v, %v", when, covered, err)
		}
		if other, err := r.Coverage(t.Context(), start.Add(2*time.Hour), start.Add(3*time.Hour)); err != nil || len(other.Gaps) > 0 {
			t.Errorf("%s: %+v later, %v", when, other, err)
		}
		write(t, s)
	}
	closeStore(t, s)
}

// When a database is too large, most rows of older days are first added up under OtherPath, and only later deleted. So
// the database covers a longer period than if they were deleted at once.
func TestOlderDaysBecomeCoarser(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	if testing.Short() {
		t.Skip("thousands of rows: SQLite in Go is slow with the race detector")
	}
	const days, paths, perHour = 20, 400, 200
	ctx, now := t.Context(), start.Truncate(24*time.Hour)
	s := open(t, t.TempDir(), Options{RowsPerHour: perHour, MaxBytes: 300 << 10, writeInterval: time.Hour, Now: func() time.Time { return now }})
	for day := range days {
		for hour := range 4 {
			sums := newSums(paths)
			for i := range paths {
				v := activity.Request{Time: now.Add(time.Duration(hour) * time.Hour), Host: "www.example.com", Crawler: "GPTBot", Path: fmt.Sprintf("/articles/%d/%d", day, i)}
				if i < 3 {
					v.Path = fmt.Sprintf("/busy/%d", i)
				}
				for range 1 + 10*(3-min(i, 3)) {
					sums.addVisit(&v)
				}
			}
			if err := s.merge(ctx, sums); err != nil {
				t.Fatal(err)
			}
		}
		now = now.Add(24 * time.Hour)
		if err := s.retain(ctx, now, false); err != nil {
			t.Fatal(err)
		}
	}
	var first, most int64 // the oldest day, and the most rows of a day, among the days that existed when the database was last too large
	if err := s.db.QueryRowContext(ctx, "SELECT min(day), max(n) FROM (SELECT day, count(*) AS n FROM path_days WHERE day < (SELECT max(day) - 5 FROM path_days) GROUP BY day)").Scan(&first, &most); err != nil {
		t.Fatal(err)
	}
	if reach := now.Unix()/86400 - first; reach < days || most > 2*perHour/coarser+1 {
		t.Errorf("days with paths reach back %d days of %d, with up to %d rows", reach, days, most)
	}
	if size, err := sizeOf(ctx, s.db); err != nil || size > 300<<10 {
		t.Errorf("%d bytes, %v", size, err)
	}
	closeStore(t, s)
}

func documentOf(version string) site.Document {
	return site.Document{Host: "h", Version: "v" + version, Text: "User-agent: *\n"}
}
