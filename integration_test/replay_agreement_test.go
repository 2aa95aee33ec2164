// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/activity/accesslog"
	"github.com/robotspolicy/caddy-robots-policy/activity/replay"
	"github.com/robotspolicy/caddy-robots-policy/activity/store"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/policytest"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

var (
	replayVisits = flag.Int("replay.visits", testkit.Rounds(100, 200), "how many random requests replay and Caddy are compared on")
	replaySeed   = flag.Uint64("replay.seed", 1, "the seed of the requests")
)

const visitsPerPolicy = 50

// visitor is the sender of a request.
type visitor struct{ agent, address string }

func randomVisitor(r *rand.Rand) visitor {
	pick := func(from ...string) string { return from[r.IntN(len(from))] }
	token := func() string {
		if r.IntN(2) == 0 {
			return pick(policytest.RealTokens...)
		}
		return pick(policytest.Tokens[:len(policytest.Tokens)-1]...)
	}
	agent := fmt.Sprintf(pick("%s", "%s/1.0", "Mozilla/5.0 (compatible; %s/2.1; +http://www.bots.invalid/bot.html)"), token())
	switch r.IntN(8) {
	case 0:
		agent = pick("", "curl/8.5.0", "Mozilla/5.0 (X11; Linux x86_64; rv:143.0) Gecko/20100101 Firefox/143.0", "SomeNewBot/0.1 (+https://new.invalid/)")
	case 1:
		agent += " " + token() + "/3.0" // the User-Agent names two crawlers
	case 2:
		agent += " (" + pick(policytest.Purposes...) + ")"
	}
	return visitor{agent, pick("66.249.66.1", "157.55.39.1", "203.0.113.9", "2001:db8::1", "10.1.2.3")}
}

// loggedVisit is a crawler's request as Caddy's access log describes it.
type loggedVisit struct {
	Status  int
	Request struct{ Host, URI string }
	Policy  *struct{ Crawler, Identity, Decision, Action, Rule string } `json:"robots_policy"`
}

// decision returns Caddy's decision about the request, derived from the fields of the log.
func (l *loggedVisit) decision() activity.Decision {
	switch l.Policy.Action {
	case "block":
		return activity.Blocked
	case "log":
		return activity.WouldBlock
	case "off":
		return activity.Disallowed
	}
	return activity.Allowed
}

func (l *loggedVisit) String() string {
	return fmt.Sprintf("%s %s %s %s", l.Policy.Crawler, l.Policy.Identity, l.decision(), l.Policy.Rule)
}

// TestReplayAgreesWithCaddy sends random requests to a Caddy with random policies. It then replays each line of the
// access log, with and without the fields that robots_policy adds to the log. The results must equal Caddy's decisions.
// It also replays the activity database. Use -replay.visits 10000 to send 10,000 requests.
func TestReplayAgreesWithCaddy(t *testing.T) {
	testkit.Slow(t)
	rnd := rand.New(rand.NewPCG(*replaySeed, 1))
	compared, refused, verified := 0, 0, 0
	for number := 0; number*visitsPerPolicy < *replayVisits; number++ {
		kind, text := randomPolicy(t, rnd)
		dir := t.TempDir()
		lines := caddyUnder(t, rnd, dir, kind, text)
		s, ds := site.Load(filepath.Join(dir, "policy.yaml"), text)
		if s == nil {
			t.Fatal(ds.Text())
		}
		var logged []loggedVisit
		for line := range bytes.Lines(lines) {
			var l loggedVisit
			if err := json.Unmarshal(line, &l); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			if l.Policy == nil {
				continue
			}
			if (l.Status != http.StatusOK) != (l.decision() == activity.Blocked) {
				t.Fatalf("the log contradicts itself: %s", line)
			}
			logged = append(logged, l)
			compared++
			if l.decision() == activity.Blocked {
				refused++
			}
			if l.Policy.Identity == "verified" {
				verified++
			}
		}
		compareReplay(t, "the log", s, dir, lines, logged, text)
		compareReplay(t, "the log without our fields", s, dir, withoutFields(t, lines), logged, text)
		compareStore(t, s, dir, logged, text)
	}
	t.Logf("%d requests of crawlers, %d blocked, %d verified", compared, refused, verified)
	if compared < *replayVisits/2 || refused < compared/20 || verified == 0 {
		t.Error("the requests lead to too few different decisions")
	}
}

func randomPolicy(t *testing.T, rnd *rand.Rand) (policytest.PatternKind, []byte) {
	t.Helper()
	for range 50 {
		spec, kind := policytest.Full(rnd)
		text := policyfile.Print(spec)
		if s, _ := site.Load("policy.yaml", text); s != nil {
			return kind, text
		}
	}
	t.Fatal("the generator made no policy that can be loaded")
	return "", nil
}

// caddyUnder sends random visits to a Caddy under a policy and returns its access log.
func caddyUnder(t *testing.T, rnd *rand.Rand, dir string, kind policytest.PatternKind, text []byte) []byte {
	t.Helper()
	s := newServer(t, dir, string(text), nil)
	s.load(s.caddyfile(`admin off
servers {
	trusted_proxies static 127.0.0.0/8
}
log {
	output discard
}
robots_policy {
	activity DIR/activity
}`, map[string]string{"": "log {\noutput file DIR/access.log\n}\nrobots_policy POLICY\nrespond hello"}))
	for range visitsPerPolicy {
		v := randomVisitor(rnd)
		path := policytest.PathFor(rnd, kind)
		if rnd.IntN(4) == 0 {
			path += "?q=" + fmt.Sprint(rnd.IntN(3))
		}
		if rnd.IntN(20) == 0 {
			path = "/robots.txt"
		}
		request := fmt.Sprintf("GET %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: %s\r\nX-Forwarded-For: %s\r\nConnection: close\r\n\r\n",
			path, policytest.Hosts[rnd.IntN(len(policytest.Hosts)-1)], v.agent, v.address)
		if err := sendAndForget(s.addr, request); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
	}
	if err := caddy.Stop(); err != nil {
		t.Fatal(err)
	}
	lines, err := os.ReadFile(filepath.Join(dir, "access.log"))
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

// sendAndForget sends a request, and reads and discards the response. Caddy's log contains the decision.
func sendAndForget(addr, request string) error {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.WriteString(conn, request); err != nil {
		return err
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return nil // a block can close the connection
	}
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

// withoutFields removes the fields that robots_policy adds to log lines. The log then looks as if it came from a Caddy
// without this module.
func withoutFields(t *testing.T, lines []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	for line := range bytes.Lines(lines) {
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(line, &fields); err != nil {
			t.Fatal(err)
		}
		delete(fields, "robots_policy")
		if err := e.Encode(fields); err != nil {
			t.Fatal(err)
		}
	}
	return out.Bytes()
}

func compareReplay(t *testing.T, what string, s *site.Site, dir string, lines []byte, want []loggedVisit, policy []byte) {
	t.Helper()
	name := filepath.Join(dir, "replayed.log")
	if err := os.WriteFile(name, lines, 0o600); err != nil {
		t.Fatal(err)
	}
	n := 0
	_, err := replay.Run(t.Context(), replay.Options{New: s, Files: []string{name}, Workers: 1, Decided: func(r *accesslog.Record, v replay.Verdict) {
		if n >= len(want) {
			t.Fatalf("%s: replay counts additional requests as requests of crawlers: %s %s of %s", what, r.Host, r.Target, v.Crawler)
		}
		w := want[n]
		n++
		got := fmt.Sprintf("%s %s %s %s", v.Crawler, v.Identity, v.Decision, v.Rule)
		if got != w.String() || string(r.Target) != w.Request.URI {
			t.Fatalf("%s: %s%s of %q\nreplay: %s\nCaddy:  %s\n%s", what, r.Host, r.Target, r.UserAgent, got, &w, policy)
		}
	}})
	if err != nil || n != len(want) {
		t.Fatalf("%s: replay decided %d requests, Caddy %d: %v", what, n, len(want), err)
	}
}

// compareStore replays the activity database, and compares the totals with the totals from replaying the access log. It
// skips policies with rules for purposes, because the database does not store the purposes that a User-Agent names.
func compareStore(t *testing.T, s *site.Site, dir string, logged []loggedVisit, policy []byte) {
	t.Helper()
	r, err := store.OpenReader(t.Context(), filepath.Join(dir, "activity"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	report, err := replay.Run(t.Context(), replay.Options{New: s, Stored: r.EachRow})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range report.NotReplayed {
		if strings.Contains(n.What, "purposes") {
			return
		}
	}
	want, got := map[string]int64{}, map[string]int64{}
	for _, l := range logged {
		want[string(l.decision())]++
		want[l.Policy.Crawler]++
	}
	for _, v := range report.Verdicts {
		if v.Requests > 0 {
			got[string(v.Decision)] = v.Requests
		}
	}
	for _, c := range report.ByCrawler {
		got[c.Crawler] += c.Requests
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("the database: replay counts %v, the log has %v\n%s", got, want, policy)
	}
}
