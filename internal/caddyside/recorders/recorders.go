// SPDX-License-Identifier: Apache-2.0

// Package recorders has the Caddy modules that record requests, and the list of the recorders in use.
package recorders

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/activity/evidence"
	"github.com/robotspolicy/caddy-robots-policy/claim"
	"github.com/robotspolicy/caddy-robots-policy/crawlers/identity"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

// running holds the recorders of this process. It is a global variable for two reasons. Caddy offers no way to pass the
// recorders to the handlers, the console and the admin API. And recorders remain when Caddy replaces the configuration.
var running activity.Recorders

// Running returns the recorders of the running configuration.
func Running() *activity.Recorders { return &running }

// RunningEvidence returns the evidence log of the running configuration, or nil if it has none.
func RunningEvidence() *Evidence {
	e, _ := running.Get("evidence").(*Evidence)
	return e
}

// RunningStore returns the activity database of the running configuration, or nil if it has none.
func RunningStore() ActivityStore {
	s, _ := running.Get("activity").(ActivityStore)
	return s
}

// ActivityStore is the recorder that stores totals in a database. The console implements it, so that builds without
// the console do not link a database.
type ActivityStore interface {
	// Violations returns the violations since a time. Each row counts the requests of one crawler for one path, and
	// rows with more requests come first. It skips the first skip rows, and returns at most limit rows.
	Violations(ctx context.Context, since time.Time, skip, limit int) (*Violations, error)
	// Claims returns claims about the data in the database, such as whether requests are missing.
	Claims(ctx context.Context) []claim.Claim
	// CheckReload compares the served version of a policy (before) with a new version (after). It returns an error if
	// the new version must not replace the served version. If this cannot be decided now, the error is a
	// source.UndecidedError. name is the name of the policy's source. below returns the site's own robots.txt, if it is
	// merged with the policy. accepted holds the names of search engines whose losses are accepted, so their losses are
	// not an error.
	CheckReload(ctx context.Context, name string, before, after *site.Site, below site.Below, accepted []string) error
}

// Violations holds requests that violate a robots.txt: the crawler had already read the file, and the file disallows the
// path. It also holds the number of requests that may violate it, or may not.
type Violations struct {
	Violations []Violation `json:"violations"`         // one page of violations
	Rows       int         `json:"rows"`               // number of rows on all pages
	All        int64       `json:"violating_requests"` // number of requests in the rows of all pages
	Next       int         `json:"next,omitempty"`     // the parameter "skip" of the next page; 0 if there is none
	Requests   int64       `json:"requests"`           // all requests by crawlers
	// Undecided counts requests by crawlers that have not read a robots.txt, as far as the server knows.
	Undecided int64          `json:"undecided"`
	Coverage  claim.Coverage `json:"coverage"` // the data that these numbers include, and the missing data
}

// Violation holds the totals of requests for one path. The requests are from one crawler, and violate the robots.txt
// that the crawler had read.
type Violation struct {
	Crawler  string `json:"crawler"`
	Identity string `json:"identity"`
	Host     string `json:"host"`
	Path     string `json:"path"`
	Decision string `json:"decision"` // the decision about the request
	Requests int64  `json:"requests"`
}

// CheckReload calls CheckReload of the running activity database. It returns nil if there is none.
func CheckReload(ctx context.Context, name string, before, after *site.Site, below site.Below, accepted []string) error {
	if s := RunningStore(); s != nil {
		return s.CheckReload(ctx, name, before, after, below, accepted)
	}
	return nil
}

// Metric is a Prometheus collector of the number of requests that recorders did not record.
var Metric prometheus.Collector = dropped{}

type dropped struct{}

var droppedDesc = prometheus.NewDesc("caddy_robots_policy_records_lost_total",
	"Requests that a recorder, such as activity or evidence, did not record because it failed or its queue was full. For the evidence log, also events that were left out because the crawler had used its daily quota.", []string{"recorder"}, nil)

// The value of this metric is the time of the last problem. A counter would not work: one of the problems is that the
// server was killed, and the restart after that would reset the counter.
var troubleDesc = prometheus.NewDesc("caddy_robots_policy_evidence_error_timestamp_seconds",
	"When the evidence log last had a problem, in Unix seconds, by reason: write, clock, file, signature, killed, damaged or timestamp. 0 if it has had no such problem since it was opened.", []string{"reason"}, nil)

var behindDesc = prometheus.NewDesc("caddy_robots_policy_fleet_database_behind_seconds",
	"How many seconds ago ClickHouse last had all totals of requests from this server's activity database; 0 if it has all of them now.", nil, nil)

var claimDesc = prometheus.NewDesc("caddy_robots_policy_claims",
	"Claims that the server checks. The series with the present outcome of a claim (holds, fails, or cannot be judged) is 1, and the other two are 0. evidence-whole: the evidence log is complete and signed. evidence-last: the evidence log still has the last line that the server copied to Caddy's storage. lists-current: no list of addresses or keys is out of date. none-unrecorded: this server's totals of requests are complete. sent-all: ClickHouse has all of these totals.", []string{"claim", "outcome"}, nil)

// claimsTimeout limits the time for the claims of the activity database in one scrape.
const claimsTimeout = 2 * time.Second

func collectClaim(ch chan<- prometheus.Metric, c claim.Claim) {
	for _, o := range []claim.Outcome{claim.Holds, claim.Fails, claim.CannotBeJudged} {
		value := 0.0
		if c.Outcome() == o {
			value = 1
		}
		ch <- prometheus.MustNewConstMetric(claimDesc, prometheus.GaugeValue, value, c.ID(), o.String())
	}
}

func (dropped) Describe(ch chan<- *prometheus.Desc) {
	ch <- claimDesc
	ch <- droppedDesc
	ch <- troubleDesc
	ch <- behindDesc
}

func (dropped) Collect(ch chan<- prometheus.Metric) {
	running.Dropped(func(name string, n uint64) {
		ch <- prometheus.MustNewConstMetric(droppedDesc, prometheus.CounterValue, float64(n), name)
	})
	if s, ok := running.Get("activity").(interface{ Behind() (float64, bool) }); ok {
		if seconds, ok := s.Behind(); ok {
			ch <- prometheus.MustNewConstMetric(behindDesc, prometheus.GaugeValue, seconds)
		}
	}
	if s := RunningStore(); s != nil {
		ctx, cancel := context.WithTimeout(context.Background(), claimsTimeout)
		defer cancel()
		for _, c := range s.Claims(ctx) {
			collectClaim(ch, c)
		}
	}
	lists := identity.CurrentStatus()
	collectClaim(ch, lists.ListsCurrent())
	if e := RunningEvidence(); e != nil {
		look := e.LastLook()
		collectClaim(ch, look.Whole())
		if e.Copy != "" {
			collectClaim(ch, look.Ending())
		}
		troubles := e.Troubles()
		for _, reason := range []string{evidence.WriteFailed, evidence.ClockBack, evidence.FileChanged, evidence.NotSigned, evidence.Killed, evidence.Damaged, evidence.NotStamped} {
			at := 0.0
			if t, ok := troubles[reason]; ok {
				at = float64(t.Unix())
			}
			ch <- prometheus.MustNewConstMetric(troubleDesc, prometheus.GaugeValue, at, reason)
		}
	}
}
