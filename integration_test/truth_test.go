// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/activity/evidence"
	"github.com/robotspolicy/caddy-robots-policy/activity/store"
	"github.com/robotspolicy/caddy-robots-policy/claim"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
)

var (
	truthRequests = flag.Int("truth", 3000, "how many requests TestKnownTruth sends")
	floodFor      = flag.Duration("flood", 2*time.Second, "for how long TestFloodBesideAVerifiedCrawler floods")
)

// truthPolicies are the three versions of a policy. For each version, closed lists the disallowed paths: for example,
// "/news/" stands for all paths that begin with it. Requests for disallowed paths are blocked, except that requests for
// /quiet/ are only logged.
var truthPolicies = []struct {
	rules  string
	closed map[string][]string // keyed by crawler; "" stands for everyone
}{
	{"", map[string][]string{"": {"/private/", "/quiet/"}}},
	{"  - {name: news, for: GPTBot, disallow: {crawl: /news/}, enforce: block}\n", map[string][]string{"": {"/private/", "/quiet/"}, "GPTBot": {"/news/"}}},
	{
		"  - {name: news, for: GPTBot, disallow: {crawl: /news/}, enforce: block}\n  - {name: all, for: Bytespider, disallow: {crawl: /}, enforce: block}\n",
		map[string][]string{"": {"/private/", "/quiet/"}, "GPTBot": {"/news/"}, "Bytespider": {"/"}},
	},
}

const truthBase = `version: 1
rules:
  - {name: private, for: everyone, disallow: {crawl: /private/}, enforce: block}
  - {name: quiet, for: everyone, disallow: {crawl: /quiet/}, enforce: log}
`

// truthCrawlers are the clients that send the requests. The first one is verified as Googlebot by its address. The last
// one only uses the name Googlebot.
var truthCrawlers = []struct {
	name, agent, address string
	identity             activity.Identity
}{
	{"Googlebot", "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)", "66.249.66.1", activity.Verified},
	{"GPTBot", gptBot, "198.18.0.1", activity.Unverified},
	{"Bytespider", "Mozilla/5.0 (compatible; Bytespider; spider-feedback@bytedance.com)", "198.18.0.2", activity.Unverified},
	{"CCBot", "CCBot/2.0 (https://commoncrawl.org/faq/)", "198.18.0.3", activity.Unverified},
	{"Googlebot", "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)", "198.18.0.4", activity.Unverified},
}

// truth holds the test's own counts of the requests that it has sent. Each output of the server must agree with these
// counts.
type truth struct {
	requests, unread, violations, reads, bytes int64
	by                                         map[string]int64 // host, crawler, identity, decision
	violating                                  map[string]int64 // host, crawler, identity, path
	readers                                    map[string]int64 // crawler, identity, version of robots.txt
	blocked                                    map[string]int64 // crawler, identity: blocked violations
	news                                       int64            // requests of verified Googlebot for /news/
}

// send sends a request and counts it in tr. version is the index of the policy version that the server applies. had
// holds, for each host, crawler and identity, the version of robots.txt that the crawler has read on this host. It has
// no entry if the crawler has not read any.
func (tr *truth) send(s *server, version int, had map[string]int, host string, crawler int, path string) {
	c := truthCrawlers[crawler]
	answer := s.get(path, "Host", host, "User-Agent", c.agent, "X-Forwarded-For", c.address)
	closedBy := func(version int) bool {
		for _, name := range []string{"", c.name} {
			for _, begins := range truthPolicies[version].closed[name] {
				if strings.HasPrefix(path, begins) && path != "/robots.txt" {
					return true
				}
			}
		}
		return false
	}
	decision := activity.Allowed
	switch {
	case closedBy(version) && strings.HasPrefix(path, "/quiet/") && version < 2, closedBy(version) && strings.HasPrefix(path, "/quiet/") && c.name != "Bytespider":
		decision = activity.WouldBlock
	case closedBy(version):
		decision = activity.Blocked
	}
	if refused := answer.StatusCode == http.StatusForbidden; refused != (decision == activity.Blocked) {
		s.t.Fatalf("%s of %s under version %d: %s", path, c.name, version+1, answer.Status)
	}
	key := fmt.Sprint(host, " ", c.name, " ", c.identity)
	read, ok := had[key]
	tr.requests++
	tr.news += map[bool]int64{true: 1}[c.identity == activity.Verified && strings.HasPrefix(path, "/news/")]
	tr.bytes += int64(len(answer.body))
	tr.by[fmt.Sprint(host, " ", c.name, " ", c.identity, " ", decision)]++
	switch {
	case path == "/robots.txt":
		tr.reads++
		tr.readers[fmt.Sprint(c.name, " ", c.identity, " v", version+1)]++
		had[key] = version
	case !ok:
		tr.unread++
	case closedBy(read):
		tr.violations++
		tr.blocked[fmt.Sprint(c.name, " ", c.identity)] += map[bool]int64{true: 1}[decision == activity.Blocked]
		tr.violating[key+" "+path]++
	}
}

// The test sends requests to two hosts under three versions of a policy, and counts them itself. Every number in the
// console, the commands, the admin API, the evidence log, the database and the metrics must equal these counts. All
// these outputs must use the same names for the versions of the policy.
func TestKnownTruth(t *testing.T) {
	s := newServer(t, t.TempDir(), truthBase, nil)
	admin, console := freeAddr(t), strings.Replace(freeAddr(t), "127.0.0.1", "localhost", 1)
	s.load(s.caddyfile("admin "+admin+`
metrics
log {
	output discard
}
servers {
	trusted_proxies static 127.0.0.0/8
}
robots_policy {
	metrics hosts a.example b.example
	activity DIR/activity
	evidence DIR/evidence
	console `+console+`
}`, map[string]string{"": "robots_policy POLICY {\nverify embedded\n}\nrespond hello"}))
	stopped := false
	defer func() {
		if !stopped {
			_ = caddy.Stop()
		}
	}()
	metrics := func() map[string]int64 { return visitCounters(t, admin) }
	before := metrics()
	rnd := rand.New(rand.NewPCG(1, 2))
	tr := &truth{by: map[string]int64{}, violating: map[string]int64{}, readers: map[string]int64{}, blocked: map[string]int64{}}
	had := map[string]int{}
	sections := []string{"/", "/news/", "/private/", "/quiet/"}
	for version := range truthPolicies {
		s.write("policy.yaml", truthBase+truthPolicies[version].rules)
		resp, err := http.Post("http://"+admin+"/robots_policy/reload", "", nil)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatal(err, resp)
		}
		_ = resp.Body.Close()
		for range *truthRequests / len(truthPolicies) {
			crawler := rnd.IntN(len(truthCrawlers))
			path := fmt.Sprint(sections[rnd.IntN(len(sections))], rnd.IntN(20))
			if rnd.IntN(200) == 0 && (crawler != 3) { // CCBot does not read robots.txt
				path = "/robots.txt"
			}
			tr.send(s, version, had, []string{"a.example", "b.example"}[rnd.IntN(2)], crawler, path)
		}
	}

	eventually(t, "the store", func() bool {
		return strings.Contains(adminGet(t, admin, "/robots_policy/violations?since=24h"), fmt.Sprintf(`"requests": %d,%s"undecided": %d`, tr.requests, "\n  ", tr.unread))
	})
	var api struct {
		Violations []struct {
			Crawler, Identity, Host, Path string
			Requests                      int64
		}
		Requests, Undecided int64
		Rows                int
		All                 int64 `json:"violating_requests"`
		Coverage            claim.Coverage
	}
	if err := json.Unmarshal([]byte(adminGet(t, admin, "/robots_policy/violations?since=24h")), &api); err != nil {
		t.Fatal(err)
	}
	violating := map[string]int64{}
	for _, v := range api.Violations {
		violating[strings.Join([]string{v.Host, v.Crawler, v.Identity, v.Path}, " ")] += v.Requests
	}
	if !maps.Equal(violating, tr.violating) || api.Requests != tr.requests || api.Undecided != tr.unread || len(api.Coverage.Gaps) > 0 || api.All != tr.violations || api.Rows != len(api.Violations) {
		t.Errorf("the API: %d requests, %d undecided, %+v, %d rows; want %d, %d, %d", api.Requests, api.Undecided, api.Coverage, len(violating), tr.requests, tr.unread, len(tr.violating))
	}
	// Compare the numbers in the console with the truth.
	overview := adminGet(t, console, "/?days=7")
	for _, want := range []string{
		fmt.Sprintf(`<data value="%d">`, tr.requests), `<strong>In total</strong><strong class="n">` + number(tr.violations) + "<",
		english(tr.unread) + " requests of crawlers cannot be judged",
	} {
		if !strings.Contains(overview, want) {
			t.Errorf("the overview has no %q", want)
		}
	}
	published := adminGet(t, console, "/published")
	readers := map[string]map[string]bool{}
	for key := range tr.readers {
		i := strings.LastIndexByte(key, ' ')
		crawler, label := key[:i], key[i+1:]
		if readers[label] == nil {
			readers[label] = map[string]bool{}
		}
		readers[label][crawler] = true
	}
	for i := range truthPolicies {
		label := fmt.Sprint("v", i+1)
		_, row, _ := strings.Cut(published, "<h3>"+label)
		row, _, _ = strings.Cut(row, "</li>")
		if got := regexp.MustCompile(`Read by (\d+)`).FindStringSubmatch(row); len(got) != 2 || got[1] != fmt.Sprint(len(readers[label])) {
			t.Errorf("Published: %s was read by %v, want %d", label, got, len(readers[label]))
		}
	}
	// Compare the metrics with the truth.
	counted := map[string]int64{}
	for key, n := range metrics() {
		if n -= before[key]; n > 0 {
			counted[key] = n
		}
	}
	if !maps.Equal(counted, tr.by) {
		t.Errorf("the metrics: %v\nwant %v", counted, tr.by)
	}
	said := &saidClaims{t: t, counts: map[string]int{}}
	tr.checkClaims(said, console, admin, had)
	stopped = true
	if err := caddy.Stop(); err != nil {
		t.Fatal(err)
	}
	tr.checkCommands(said, s.dir, s.write)
	tr.checkStore(t, filepath.Join(s.dir, "activity"))
	tr.checkEvidence(t, filepath.Join(s.dir, "evidence"))
	t.Logf("%d requests, %d of them violations, %d that cannot be judged, %d reads", tr.requests, tr.violations, tr.unread, tr.reads)
	if tr.violations == 0 || tr.unread == 0 || tr.reads == 0 {
		t.Error("the requests do not include all kinds of cases")
	}
}

// number returns the HTML that the console shows for a number.
func number(n int64) string {
	if n < 1000 {
		return strconv.FormatInt(n, 10)
	}
	return fmt.Sprintf(`<data value="%d">%s</data>`, n, english(n))
}

// english formats a number with commas.
func english(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

var visitCounter = regexp.MustCompile(`(?m)^caddy_robots_policy_requests_total\{crawler="([^"]*)",decision="([^"]*)",host="([^"]*)",identity="([^"]*)"\} (\S+)$`)

// visitCounters returns the counters of requests, keyed by host, crawler, identity and decision.
func visitCounters(t *testing.T, admin string) map[string]int64 {
	t.Helper()
	all := map[string]int64{}
	for _, m := range visitCounter.FindAllStringSubmatch(adminGet(t, admin, "/metrics"), -1) {
		n, err := strconv.ParseFloat(m[5], 64)
		if err != nil {
			t.Fatal(err)
		}
		all[strings.Join([]string{m[3], m[1], m[4], m[2]}, " ")] = int64(n)
	}
	return all
}

func (tr *truth) checkStore(t *testing.T, dir string) {
	t.Helper()
	r, err := store.OpenReader(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	q := store.Query{From: time.Now().Add(-24 * time.Hour), To: time.Now().Add(time.Hour)}
	all, err := r.Totals(t.Context(), q)
	if err != nil || len(all) != 1 || all[0].Requests != tr.requests || all[0].Violations != tr.violations || all[0].Unread != tr.unread || all[0].Bytes != tr.bytes {
		t.Errorf("the store: %+v, %v; want %+v", all, err, tr)
	}
	q.By = []store.Dimension{store.ByHost, store.ByCrawler, store.ByIdentity, store.ByDecision}
	rows, err := r.Totals(t.Context(), q)
	by := map[string]int64{}
	for _, row := range rows {
		by[strings.Join([]string{row.Values[store.ByHost], row.Values[store.ByCrawler], row.Values[store.ByIdentity], row.Values[store.ByDecision]}, " ")] = row.Requests
	}
	if err != nil || !maps.Equal(by, tr.by) {
		t.Errorf("the store: %v, %v\nwant %v", by, err, tr.by)
	}
	reads, err := r.Reads(t.Context())
	readers := map[string]int64{}
	for i := range reads {
		readers[reads[i].Crawler+" "+reads[i].Identity+" "+reads[i].Label()] += reads[i].Requests
	}
	if err != nil || !maps.Equal(readers, tr.readers) {
		t.Errorf("the store: %v, %v\nwant %v", readers, err, tr.readers)
	}
}

func (tr *truth) checkEvidence(t *testing.T, dir string) {
	t.Helper()
	c, err := evidence.Verify(dir, nil, nil)
	if err != nil || len(c.Problems) > 0 {
		t.Errorf("%v %+v", err, c)
	}
	a, err := evidence.Ask(dir, evidence.Question{})
	if err != nil {
		t.Fatal(err)
	}
	readers := map[string]int64{}
	var reads, violations int64
	for _, r := range a.Reads {
		for _, label := range r.Published {
			readers[r.Crawler+" "+string(r.Identity)+" "+label] += r.Count
		}
		if reads += r.Count; r.Identity == activity.Verified && !strings.Contains(strings.Join(r.Proofs, ""), "on the list https://") {
			t.Errorf("no proof: %+v", r)
		}
	}
	for _, v := range a.Violations {
		violations += v.Count
		if v.Read.IsZero() || len(v.Lines) == 0 {
			t.Errorf("%+v", v.Reader)
		}
	}
	// The evidence log has room for a limited number of events of an unverified crawler each day. It counts the omitted
	// events.
	if reads+violations+a.Omitted != tr.reads+tr.violations || a.Omitted != c.Omitted || reads != tr.reads || len(a.Published) != len(truthPolicies) || !maps.Equal(readers, tr.readers) {
		t.Errorf("the evidence: %d reads, %d violations, %d left out, %d publications, %v; want %d, %d, %v", reads, violations, a.Omitted, len(a.Published), readers, tr.reads, tr.violations, tr.readers)
	}
	for i, p := range a.Published {
		if p.Label() != fmt.Sprint("v", i+1) {
			t.Errorf("publication %d is %s", i+1, p.Label())
		}
	}
}

// When a server begins or stops to serve a version of a policy, the evidence log records this at once, even without
// requests. The log then contains the texts of all rights documents. The log also records the crawlers that have read
// one of these documents.
func TestPublicationsWithoutTraffic(t *testing.T) {
	const registers = "publish: {tdmrep: on, rsl: /license.xml}\n"
	rights := truthBase + "  - {for: everyone, disallow: {train-ai: /}}\n" + registers
	s := newServer(t, t.TempDir(), rights, nil)
	admin := freeAddr(t)
	caddyfile := s.caddyfile("admin "+admin+`
log {
	output discard
}
robots_policy {
	evidence DIR/evidence
}`, map[string]string{"": "robots_policy POLICY\nrespond hello"})
	s.load(caddyfile)
	stopped := false
	defer func() {
		if !stopped {
			_ = caddy.Stop()
		}
	}()
	ask := func() *evidence.Answer {
		a, err := evidence.Ask(filepath.Join(s.dir, "evidence"), evidence.Question{})
		if err != nil {
			return new(evidence.Answer)
		}
		return a
	}
	eventually(t, "the first publication", func() bool { return len(ask().Published) == 1 })
	changed := time.Now()
	s.write("policy.yaml", rights+"# newer\n")
	if resp, err := http.Post("http://"+admin+"/robots_policy/reload", "", nil); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(err, resp)
	}
	eventually(t, "the second publication", func() bool { return len(ask().Published) == 2 })
	a := ask()
	first, second := a.Published[0], a.Published[1]
	if first.Label() != "v1" || second.Label() != "v2" || !first.Until.Equal(second.From) || second.From.Before(changed.Add(-time.Second)) || second.From.After(changed.Add(10*time.Second)) || !second.Until.IsZero() {
		t.Errorf("%s until %s, %s from %s; changed at %s", first.Label(), first.Until, second.Label(), second.From, changed)
	}
	var names []string
	for _, d := range second.Documents {
		names = append(names, d.Name)
		if d.Text == "" {
			t.Errorf("%s has no text", d.Name)
		}
	}
	if got := strings.Join(names, " "); got != "robots.txt tdmrep.json license.xml fields" || !strings.Contains(second.Documents[3].Text, "Content-Usage: ") || second.Program == "" || second.Catalog == "" {
		t.Errorf("%s; %s; %s", got, second.Program, second.Catalog)
	}
	for _, path := range []string{"/robots.txt", "/.well-known/tdmrep.json", "/license.xml"} {
		s.get(path, "User-Agent", gptBot)
	}
	eventually(t, "the reads", func() bool { return len(ask().Reads) == 3 })
	for _, r := range ask().Reads {
		if r.Crawler != "GPTBot" || r.Robots == "" || strings.Join(r.Published, "") != "v2" {
			t.Errorf("%+v", r)
		}
	}
	// After a restart with the same policy, the evidence log does not record a new version, and does not contain the
	// texts of the old version again.
	stopped = true
	if err := caddy.Stop(); err != nil {
		t.Fatal(err)
	}
	s.load(caddyfile)
	stopped = false
	restarted := func() (starts, whole int) {
		_ = evidence.Read(filepath.Join(s.dir, "evidence"), func(_ string, e *evidence.Event, _ string) error {
			if e.Type == evidence.TypeStart {
				starts++
			}
			if e.Type == evidence.TypePublished && e.Published == nil {
				whole++
			}
			return nil
		})
		return starts, whole
	}
	eventually(t, "the restart", func() bool { starts, again := restarted(); return starts == 2 && again == 1 })
	if a := ask(); len(a.Published) != 2 {
		t.Errorf("%d publications after a restart", len(a.Published))
	}
}

// A client floods the server with requests in the name of a crawler. The verified crawler also sends requests, and all
// of them are recorded. Some requests of the flood are not recorded, and the log contains their number.
func TestFloodBesideAVerifiedCrawler(t *testing.T) {
	testkit.Slow(t)
	s := newServer(t, t.TempDir(), truthBase, nil)
	s.load(s.caddyfile(`admin off
log {
	output discard
}
servers {
	trusted_proxies static 127.0.0.0/8
}
robots_policy {
	evidence DIR/evidence
}`, map[string]string{"": "robots_policy POLICY {\nverify embedded\n}\nrespond hello"}))
	stopped := false
	defer func() {
		if !stopped {
			_ = caddy.Stop()
		}
	}()
	send := func(crawler int, path string) {
		c := truthCrawlers[crawler]
		r, _ := http.NewRequest(http.MethodGet, "http://"+s.addr+path, nil)
		r.Header.Set("User-Agent", c.agent)
		r.Header.Set("X-Forwarded-For", c.address)
		resp, err := client.Do(r)
		if err != nil {
			t.Error(err)
			return
		}
		_ = resp.Body.Close()
	}
	send(0, "/robots.txt")
	send(2, "/robots.txt")
	const verified, flooders = 100, 8
	end := time.Now().Add(*floodFor)
	var sent [flooders]int64
	var all sync.WaitGroup
	for i := range flooders {
		all.Go(func() {
			for ; time.Now().Before(end); sent[i]++ {
				send(2, fmt.Sprintf("/private/%d-%d", i, sent[i]))
			}
		})
	}
	for i := range verified {
		send(0, fmt.Sprint("/private/", i))
		time.Sleep(*floodFor / verified)
	}
	all.Wait()
	stopped = true
	if err := caddy.Stop(); err != nil {
		t.Fatal(err)
	}
	flood := int64(0)
	for _, n := range sent {
		flood += n
	}
	a, err := evidence.Ask(filepath.Join(s.dir, "evidence"), evidence.Question{})
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int64{}
	for _, v := range a.Violations {
		count[v.Crawler+" "+string(v.Identity)] += v.Count
	}
	t.Logf("%d requests of the flood, %d in the log and %d counted as left out; in addition, %d of Googlebot", flood, count["Bytespider unverified"], a.Omitted, count["Googlebot verified"])
	if count["Googlebot verified"] != verified || count["Bytespider unverified"]+a.Omitted != flood || count["Bytespider unverified"] > 5000 {
		t.Errorf("%v", count)
	}
	c, err := evidence.Verify(filepath.Join(s.dir, "evidence"), nil, nil)
	if err != nil || c.Omitted != a.Omitted || c.Whole().Outcome() != claim.CannotBeJudged {
		t.Errorf("%v %+v", err, c)
	}
}
