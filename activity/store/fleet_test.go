// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/activity/store/clickhouse"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/clickhousetest"
)

// newFleet returns a reader of an empty fleet database, or nil if ClickHouse is not available.
func newFleet(t *testing.T) *FleetReader {
	t.Helper()
	if _, err := exec.LookPath("clickhouse-server"); err != nil || testing.Short() {
		t.Log("ClickHouse is not available, so only SQLite is tested")
		return nil
	}
	return fleetIn(t, clickhousetest.Start(t))
}

func fleetIn(t *testing.T, server *clickhousetest.Server) *FleetReader {
	t.Helper()
	c := clickhouse.Client{URL: server.URL("default")}
	if err := c.Exec(t.Context(), "CREATE DATABASE robots"); err != nil {
		t.Fatal(err)
	}
	c.URL = server.URL("robots")
	for range 2 { // creating the tables again has no effect
		for _, statement := range FleetSchema() {
			if err := c.Exec(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
	}
	return &FleetReader{Client: c}
}

// send sends all rows of a server's database to the fleet database. It has no effect if fleet is nil.
func send(t *testing.T, s *Store, fleet *FleetReader, node string) {
	t.Helper()
	if fleet == nil {
		return
	}
	f := &Fleet{Client: fleet.Client, Node: node, Every: time.Hour, Report: func(error) {}}
	for more := true; more; {
		var err error
		if more, err = s.sender.round(t.Context(), f); err != nil {
			t.Fatal(err)
		}
	}
}

// For a fleet with one server, the fleet database gives the same answers as the server's own database.
func TestFleetAnswersAsTheStore(t *testing.T) {
	t.Parallel()
	fleet := fleetIn(t, clickhousetest.Start(t))
	dir := t.TempDir()
	s := open(t, dir, Options{writeInterval: time.Hour, Now: func() time.Time { return start }})
	rnd := rand.New(rand.NewPCG(8, 9))
	for i := range 500 {
		v := randomVisit(rnd, start.Add(time.Duration(i-400)*time.Minute))
		v.RobotsTxt, v.Publication, v.Number = i%7 == 0, "111111111111", fmt.Sprint(i%2)
		s.waiting.addVisit(&v)
	}
	s.Missed(7)
	s.waiting.lost[start.Unix()/3600+2] += 0 // the database was not closed properly
	tick(t, s)
	for i, number := range []string{"1", "2"} {
		p := published("1", number)
		p.Time, p.Text = start.Add(time.Duration(i)*time.Hour), "rules: '\\n'\n\t- "+number
		d := documentOf(number)
		if err := s.Publish(t.Context(), p, p.Time); err != nil {
			t.Fatal(err)
		}
		if err := s.Serve(t.Context(), p, d, p.Time); err != nil {
			t.Fatal(err)
		}
	}
	write(t, s)
	send(t, s, fleet, "n")
	r := openReader(t, dir)
	q := Query{From: start.Add(-24 * time.Hour), To: start.Add(24 * time.Hour), By: []Dimension{ByCrawler, ByPath}, Limit: 5}
	for name, ask := range map[string]func(r Queries) (any, error){
		"totals": func(r Queries) (any, error) { return r.Totals(t.Context(), q) },
		"not_recorded": func(r Queries) (any, error) {
			c, err := r.Coverage(t.Context(), q.From, q.To)
			return c.Gaps, err
		},
		"crawlers":          func(r Queries) (any, error) { return r.Crawlers(t.Context()) },
		"reads":             func(r Queries) (any, error) { return r.Reads(t.Context()) },
		"versions in force": func(r Queries) (any, error) { return r.Publications(t.Context(), "site.yaml") },
		"versions":          func(r Queries) (any, error) { return r.PolicyVersions(t.Context(), "") },
		"documents":         func(r Queries) (any, error) { return r.Documents(t.Context()) },
		"bounds": func(r Queries) (any, error) {
			b, err := r.Bounds(t.Context())
			b.Bytes = min(b.Bytes, 1) // the engines need different numbers of bytes
			return b, err
		},
	} {
		want, err := ask(r)
		if err != nil || reflect.ValueOf(want).IsZero() {
			t.Fatalf("%s: %v, %v: nothing to compare", name, want, err)
		}
		if got, err := ask(fleet); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v\ngot  %+v\nwant %+v", name, err, got, want)
		}
	}
	if nodes, err := fleet.Nodes(t.Context()); err != nil || len(nodes) != 1 || nodes[0].Name != "n" || nodes[0].Behind != 0 || nodes[0].Heard > time.Minute {
		t.Errorf("%+v, %v", nodes, err)
	}
	closeStore(t, s)
}

// Rows can be folded (added up under OtherPath) before or after they are sent. This happens in the current hour if it
// has too many rows, and in older days if the database is too large. In all cases, the fleet database counts every
// request once.
func TestFoldedRowsAreCountedOnce(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	fleet := fleetIn(t, clickhousetest.Start(t))
	rnd := rand.New(rand.NewPCG(10, 11))
	now := start
	s := open(t, t.TempDir(), Options{RowsPerHour: 40, writeInterval: time.Hour, Now: func() time.Time { return now }})
	zipf := rand.NewZipf(rnd, 1.1, 1, 2000)
	var truth int64
	check := func(when string) {
		t.Helper()
		for _, by := range [][]Dimension{{ByCrawler}, {ByPath}, {ByHour, ByPath}} {
			rows, err := fleet.Totals(t.Context(), Query{From: start.Add(-240 * time.Hour), To: now.Add(time.Hour), By: by})
			sum := int64(0)
			for _, r := range rows {
				sum += r.Requests
			}
			if err != nil || sum != truth {
				t.Fatalf("%s, by %s: %d requests, want %d: %v", when, by, sum, truth, err)
			}
		}
	}
	paths := func(day int) int {
		t.Helper()
		at := start.Add(time.Duration(day) * 24 * time.Hour)
		rows, err := fleet.Totals(t.Context(), Query{From: at, To: at.Add(2 * time.Hour), By: []Dimension{ByHour, ByPath}})
		if err != nil {
			t.Fatal(err)
		}
		return len(rows)
	}
	for day := range 4 {
		for i := range 3000 {
			s.waiting.addVisit(&activity.Request{Time: now.Add(time.Duration(i) * time.Second), Host: "h", Crawler: fmt.Sprint("c", i%2), Path: fmt.Sprintf("/p/%d", zipf.Uint64())})
			truth++
			if i%250 == 0 {
				write(t, s)
				if rnd.IntN(3) > 0 {
					send(t, s, fleet, "n")
					check(fmt.Sprintf("day %d, request %d", day, i))
				}
			}
		}
		write(t, s)
		if day%2 == 0 { // the other days are folded before all of their rows were sent
			send(t, s, fleet, "n")
			check(fmt.Sprintf("day %d", day))
		}
		before := paths(day)
		if _, err := s.foldOlder(t.Context(), pathHourTable, 0); err != nil {
			t.Fatal(err)
		}
		now = now.Add(24 * time.Hour)
		if err := s.retain(t.Context(), now, false); err != nil {
			t.Fatal(err)
		}
		if _, err := s.foldOlder(t.Context(), pathDayTable, 0); err != nil {
			t.Fatal(err)
		}
		send(t, s, fleet, "n")
		check(fmt.Sprintf("day %d was made coarser", day))
		if after := paths(day); day%2 == 0 && after != before {
			t.Errorf("day %d: %d paths by the hour, %d before: the fleet database must keep the paths that its servers fold", day, after, before)
		}
	}
	closeStore(t, s)
}

// The rows of a server's new database are added to the rows that its previous database has sent. If the fleet database
// was unavailable, the server sends all missing rows later.
func TestNodesThatBeginAnewAndComeBack(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	server := clickhousetest.Start(t)
	fleet := fleetIn(t, server)
	record := func(s *Store, at time.Time, n int) {
		for i := range n {
			s.waiting.addVisit(&activity.Request{Time: at, Host: "h", Crawler: "c", Path: fmt.Sprint("/", i%10)})
		}
		write(t, s)
	}
	expect := func(when string, want int64) {
		t.Helper()
		rows, err := fleet.Totals(t.Context(), Query{From: start.AddDate(0, 0, -1), To: start.AddDate(0, 0, 9), By: []Dimension{ByHost}})
		if err != nil || len(rows) != 1 || rows[0].Requests != want {
			t.Errorf("%s: %+v, %v, want %d requests", when, rows, err, want)
		}
	}
	dir := t.TempDir()
	s := open(t, dir, Options{writeInterval: time.Hour})
	record(s, start, 100)
	send(t, s, fleet, "n")
	closeStore(t, s)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir, Options{writeInterval: time.Hour})
	record(s, start, 11)
	send(t, s, fleet, "n")
	expect("a new database", 111)

	server.Kill()
	if _, err := s.sender.round(t.Context(), &Fleet{Client: fleet.Client, Node: "n"}); err == nil {
		t.Error("sending to a stopped ClickHouse does not fail")
	}
	for hour := range 48 {
		record(s, start.Add(time.Duration(hour)*time.Hour), 10)
	}
	if behind, err := s.sender.behind(t.Context()); err != nil || behind <= 0 {
		t.Errorf("%s behind, %v", behind, err)
	}
	closeStore(t, s)
	server.Run()
	s = open(t, dir, Options{writeInterval: time.Hour})
	reports := make(chan error, 10)
	s.SendTo(Fleet{Client: fleet.Client, Node: "n", Every: 50 * time.Millisecond, Report: func(err error) { reports <- err }})
	if err := <-reports; err != nil {
		t.Fatal(err)
	}
	expect("after two days", 591)
	if behind, ok, err := s.Behind(t.Context()); err != nil || behind != 0 || !ok {
		t.Errorf("%s behind, %v, %v", behind, ok, err)
	}
	closeStore(t, s)
}

// FleetForget and FleetPrune delete only the selected rows.
func TestForgetAndPrune(t *testing.T) {
	t.Parallel()
	fleet := fleetIn(t, clickhousetest.Start(t))
	s := open(t, t.TempDir(), Options{writeInterval: time.Hour})
	for month := range 3 {
		for _, crawler := range []string{"it's", "GPTBot"} {
			v := activity.Request{Time: start.AddDate(0, -month, 0), Host: "h", Crawler: crawler, Path: "/", Robots: "r1", RobotsTxt: true}
			s.waiting.addVisit(&v)
		}
	}
	write(t, s)
	send(t, s, fleet, "n")
	closeStore(t, s)
	statements, err := FleetPrune(t.Context(), &fleet.Client, start.AddDate(0, -1, 0), start.AddDate(0, -1, 0))
	if err != nil || !strings.Contains(strings.Join(statements, "\n"), "ALTER TABLE days DROP PARTITION 202609") {
		t.Fatalf("%q, %v", statements, err)
	}
	for _, statement := range append(statements, FleetForget("it's", "")...) {
		if err := fleet.Client.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		rows, err := fleet.Totals(t.Context(), Query{From: start.AddDate(-1, 0, 0), To: start.AddDate(1, 0, 0), By: []Dimension{ByCrawler}})
		reads, err2 := fleet.Reads(t.Context())
		crawlers, err3 := fleet.Crawlers(t.Context())
		if err == nil && err2 == nil && err3 == nil && len(rows) == 1 && rows[0].Values[ByCrawler] == "GPTBot" && rows[0].Requests == 2 &&
			len(reads) == 1 && reads[0].Crawler == "GPTBot" && len(crawlers) == 1 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%+v, %+v, %+v, %v, %v, %v", rows, reads, crawlers, err, err2, err3)
		}
	}
}

// A server that stops normally sends its rows and announces that it stops. A killed server is reported as silent.
func TestTheEndOfAServerOfAFleet(t *testing.T) {
	t.Parallel()
	fleet := fleetIn(t, clickhousetest.Start(t))
	s := open(t, t.TempDir(), Options{writeInterval: time.Hour, maintainInterval: time.Hour})
	reports := make(chan error, 9)
	s.SendTo(Fleet{Client: fleet.Client, Node: "a", Every: time.Second, Report: func(err error) { reports <- err }})
	if err := <-reports; err != nil {
		t.Fatal(err)
	}
	for range 40 {
		s.Record(activity.Request{Time: time.Now(), Host: "h", Crawler: "Googlebot", Category: "search", Path: "/"})
	}
	closeStore(t, s)
	from, to := time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	rows, err := fleet.Totals(t.Context(), Query{From: from, To: to})
	if err != nil || len(rows) != 1 || rows[0].Requests != 40 {
		t.Errorf("%+v, %v", rows, err)
	}
	c, err := fleet.Coverage(t.Context(), from, to)
	if err != nil || len(c.Gaps) > 0 || len(c.Servers) != 1 {
		t.Errorf("stopped normally: %+v, %v", c, err)
	}
	if err := fleet.Client.Insert(t.Context(), "servers", []string{"server_name", "store", "revision", "at", "every"}, []byte("b\t7\t1\t2026-01-01 00:00:00\t30\n")); err != nil {
		t.Fatal(err)
	}
	if nodes, err := fleet.Nodes(t.Context()); err != nil || len(nodes) != 2 || !nodes[0].Ended || !nodes[1].Silent() {
		t.Errorf("%+v, %v", nodes, err)
	}
}
