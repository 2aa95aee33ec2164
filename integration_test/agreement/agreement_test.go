// SPDX-License-Identifier: Apache-2.0

// Package agreement proves that all channels state the same rules. Random policies and policies written by people are
// served by a running Caddy, and by an HTTP server of the package net/http that runs the handler without Caddy.
// Independent readers read the texts that crawlers get over HTTP, and the test compares the results with the policy's
// decisions. See docs/contributing/agreement.md.
package agreement

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/crawlertest"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/policytest"
)

var (
	decisions  = flag.Int("decisions", testkit.Rounds(250, 600), "number of requests whose answers are compared with the policy")
	length     = flag.Duration("agreement", 0, "run for this time, instead of for a number of decisions")
	seed       = flag.Uint64("seed", 1, "seed of the policies and questions")
	registers  = flag.Bool("registers", false, "random policies publish every rights document and signal")
	onlyPolicy = flag.Int("policy", -1, "examine only the policy with this number, which a report contains")
	reports    = flag.Int64("reports", 1, "stop after this number of policies with disagreements")
)

// run holds the state of one run of the suite: the tested server, the policies and the counts.
type run struct {
	t       *testing.T
	server  *server
	parsers map[string]*crawlertest.Process
	written []*loaded
	tally   *tally
	next    atomic.Int64 // number of the next policy
	asked   atomic.Int64 // number of decisions requested so far
	failing atomic.Int64 // number of policies with disagreements
	stop    atomic.Bool
	end     time.Time
}

func TestAgreement(t *testing.T) {
	if testing.Short() && *length == 0 {
		*decisions = min(*decisions, 150)
	}
	if !usesDoor(caddyDoor) && !usesDoor(netHTTPDoor) {
		t.Fatalf("-door %s: must be caddy, nethttp or both", *through)
	}
	t.Logf("seed %d", *seed)
	written, err := writtenPolicies()
	if err != nil {
		t.Fatal(err)
	}
	r := &run{t: t, tally: newTally(), written: written, parsers: startParsers(t)}
	r.server = startServer(t)
	r.end = time.Now().Add(*length)
	began := time.Now()
	if *onlyPolicy >= 0 {
		r.next.Store(int64(*onlyPolicy))
		r.policy(int(r.next.Load()))
	} else {
		var wg sync.WaitGroup
		for range runtime.GOMAXPROCS(0) {
			wg.Go(r.work)
		}
		wg.Wait()
	}
	t.Logf("%d decisions over HTTP under %d policies in %v, seed %d\n%s", r.tally.visits, r.tally.policies, time.Since(began).Round(time.Second), *seed, r.tally.table())
	if !t.Failed() && *onlyPolicy < 0 {
		r.judge()
	}
}

// startParsers starts the parsers of crawlertest.Parsers that are installed, keyed by name.
func startParsers(t *testing.T) map[string]*crawlertest.Process {
	t.Helper()
	running := map[string]*crawlertest.Process{}
	for i := range crawlertest.Parsers {
		p := &crawlertest.Parsers[i]
		process, err := p.Start()
		if err != nil {
			t.Fatal(err)
		}
		if process == nil {
			t.Logf("%s is not installed, so it is not tested: see CONTRIBUTING.md", p.Name)
			continue
		}
		t.Cleanup(func() {
			if err := process.Close(); err != nil {
				t.Error(err)
			}
		})
		running[p.Name] = process
	}
	return running
}

// work examines policies until enough decisions have been compared.
func (r *run) work() {
	for !r.stop.Load() {
		if r.enough() {
			return
		}
		number := int(r.next.Add(1) - 1)
		r.asked.Add(int64(visitsPerPolicy * len(doorsOf(number))))
		r.policy(number)
	}
}

func (r *run) enough() bool {
	if *length > 0 {
		return time.Now().After(r.end)
	}
	return int(r.asked.Load()) >= *decisions
}

// visitsPerPolicy is the number of questions that randomQuestions and writtenQuestions ask.
const visitsPerPolicy = 3 * 6 * 7

// policy examines one policy. The seed and number determine the policy.
func (r *run) policy(number int) {
	random := rand.New(rand.NewPCG(*seed, uint64(number)))
	t := newTally()
	t.policies++
	var p *loaded
	var qs []question
	var err error
	if number%16 == 15 {
		p = r.written[number/16%len(r.written)].again()
		p.theirs = theirFile(random, policytest.SitePatterns)
		qs = writtenQuestions(random, p)
	} else if p, err = randomPolicy(random, number, t); err == nil {
		qs = randomQuestions(random, p)
	}
	if err != nil {
		r.fail("%v", err)
		return
	}
	for _, d := range doorsOf(number) {
		sites := r.server.sites[d]
		r.through(sites[number%len(sites)], number, t, p, qs)
	}
	r.tally.add(t)
}

// through tests the policy p on one site. It asks the questions qs through this site, and fails the test if an answer
// differs from the policy's decision.
func (r *run) through(at *running, number int, t *tally, p *loaded, qs []question) {
	at.mu.Lock()
	defer at.mu.Unlock()
	before := t.visits
	found, err := r.examine(t, at, p, qs)
	if err != nil {
		r.fail("policy %d through %s on a site with %s: %v\n%s", number, at.door, at.name, err, p.text)
		return
	}
	t.policiesBy[at.door]++
	t.visitsBy[at.door] += t.visits - before
	t.countRegisters(&p.spec.Publish)
	if len(found) == 0 || r.stop.Load() {
		return
	}
	if r.failing.Add(1) >= *reports {
		r.stop.Store(true)
	}
	r.t.Error(r.reproduce(number, at, p, found))
}

func (r *run) fail(format string, args ...any) {
	r.stop.Store(true)
	r.t.Errorf(format, args...)
}

// examine serves a policy and asks all questions.
func (r *run) examine(t *tally, at *running, p *loaded, qs []question) ([]disagreement, error) {
	if err := at.take(p); err != nil {
		return nil, err
	}
	x := &exam{tally: t, at: at, p: p, parsers: r.parsers, files: map[string]*robotsFile{}, theirs: mergedOn(at, p)}
	for _, q := range qs {
		if x.files[q.host] != nil {
			continue
		}
		var of []question
		for _, other := range qs {
			if other.host == q.host {
				of = append(of, other)
			}
		}
		if err := x.robotsTxt(q.host, of); err != nil {
			return nil, err
		}
		if x.files[q.host] == nil {
			return x.disagree, nil
		}
		if err := x.registers(q.host, of); err != nil {
			return nil, err
		}
	}
	for _, q := range qs {
		if err := x.visit(q); err != nil {
			return nil, fmt.Errorf("%+v: %w", q, err)
		}
	}
	if err := x.offline(r.t, qs); err != nil {
		return nil, err
	}
	return x.disagree, nil
}

// judge fails the test if there were too many exceptions, or if the questions have not led to all expected results.
func (r *run) judge() {
	for channel, names := range r.tally.exceptions {
		if r.tally.visits < 1000 {
			break // with so few decisions, one unusual policy would determine the share
		}
		for name, n := range names {
			if n*50 > r.tally.answers[channel] && n > 20 {
				r.t.Errorf("%s: %d of %d answers are exceptions of the kind %q, which is more than 2 %%", channel, n, r.tally.answers[channel], name)
			}
		}
	}
	for i, what := range expected {
		if enough := r.tally.visits >= 10_000 || i < 3 && r.tally.visits >= 1000; enough && r.tally.seen[what] == 0 {
			r.t.Errorf("no question has led to: %s. So the test does not prove anything about it", what)
		}
	}
	for name := range exceptions {
		met := 0
		for _, names := range r.tally.exceptions {
			met += names[name]
		}
		if met == 0 && r.tally.visits >= 50_000 {
			r.t.Errorf("the exception %q never occurred: delete it, or make the questions more varied", name)
		}
	}
}

// expected lists situations that the random questions must lead to, so that the test covers them. The first three must
// occur within a thousand decisions, and the others within ten thousand.
var expected = []string{
	"edge: blocked", "headers: something restricts the reader", "headers: stricter by the upstream",
	"edge: a verified client under rules that ask for it", "edge: would be blocked", "edge: disallowed as a server may read the path",
	"headers: stricter as a server may read the path", "headers: what is said to everyone holds for one exempted",
	"edge: an impostor under a rule for impostors", "HTTP/2", "HEAD of a page", "304 to the entity tag of a page",
	"the upstream's entity tag for a page that is changed",
	"page: elements in gzip", "page: elements in br", "page: elements in zstd", "page: elements in deflate",
	"robots.txt: the upstream disallows where the policy is silent", "robots.txt: lines of the upstream beside Allow and Disallow",
	"304: none for the entity tag of what may have been a page", "page: elements for a crawler that reads none with its name",
	"robots.txt: the upstream disallows a preference beside those of the policy",
	"robots.txt: a purpose's group is read",
	"robots.txt: a crawler that ignores * is not addressed",
	"TDMRep: an unpublished reservation that the upstream contradicts", "the site's own restriction is lifted",
	"robots.txt: a crawler that it leaves out is blocked", "robots.txt: a license", "robots.txt: a Content-Signal that says no",
}
