// SPDX-License-Identifier: Apache-2.0

// Package recorders has the modules that record requests, and what is recorded to now.
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

// running are the recorders of the process. Caddy gives the handlers, the console and the
// admin API no way to each other, and a recorder outlives the configuration it began in.
var running activity.Recorders

// Running returns the recorders of the running configuration.
func Running() *activity.Recorders { return &running }

// RunningEvidence returns the evidence of the running configuration, nil if it has none.
func RunningEvidence() *Evidence {
	e, _ := running.Get("evidence").(*Evidence)
	return e
}

// RunningStore returns the activity database of the running configuration, nil if it has none.
func RunningStore() ActivityStore {
	s, _ := running.Get("activity").(ActivityStore)
	return s
}

// ActivityStore is the recorder that stores totals. It belongs to the console, so that
// only builds with the console link a database.
type ActivityStore interface {
	// Violations returns the violations since a time, the most frequent first: at most limit rows after the first skip.
	Violations(ctx context.Context, since time.Time, skip, limit int) (*Violations, error)
	// Claims judges what the store says about itself.
	Claims(ctx context.Context) []claim.Claim
	// CheckReload returns an error if the served version of a policy must not be replaced. It is a
	// source.UndecidedError if this is not known now, and may be later. name is the name of the policy's source.
	// Losses of the search engines in accepted do not count.
	CheckReload(ctx context.Context, name string, before, after *site.Site, below site.Below, accepted []string) error
}

// Violations are the requests of crawlers that violate a robots.txt they had read, and the requests that
// cannot be judged.
type Violations struct {
	Violations []Violation    `json:"violations"`         // a page of them
	Rows       int            `json:"rows"`               // of all pages
	All        int64          `json:"violating_requests"` // in the rows of all pages
	Next       int            `json:"next,omitempty"`     // the parameter skip of the next page; 0 if there is none
	Requests   int64          `json:"requests"`           // of crawlers in all
	Undecided  int64          `json:"undecided"`          // by crawlers that are not known to have read a robots.txt
	Coverage   claim.Coverage `json:"coverage"`           // what these numbers include, and what they lack
}

// Violation is a request that the robots.txt which the crawler had read disallows.
type Violation struct {
	Crawler  string `json:"crawler"`
	Identity string `json:"identity"`
	Host     string `json:"host"`
	Path     string `json:"path"`
	Decision string `json:"decision"` // what was done about it
	Requests int64  `json:"requests"`
}

// CheckReload asks the store of the running configuration, if it has one.
func CheckReload(ctx context.Context, name string, before, after *site.Site, below site.Below, accepted []string) error {
	if s := RunningStore(); s != nil {
		return s.CheckReload(ctx, name, before, after, below, accepted)
	}
	return nil
}

// Metric is a Prometheus collector of what the recorders have lost.
var Metric prometheus.Collector = dropped{}

type dropped struct{}

var droppedDesc = prometheus.NewDesc("caddy_robots_policy_records_lost_total",
	"Requests that a recorder did not record because its queue was full or it failed, and events over a crawler's quota that evidence left out.", []string{"recorder"}, nil)

// A restart is part of what goes wrong, so that a counter would begin with what it counts.
var troubleDesc = prometheus.NewDesc("caddy_robots_policy_evidence_error_timestamp_seconds",
	"Time of the last problem with the evidence log, by reason: write, clock, file, signature, killed, damaged or timestamp. 0 if there was none since the log was opened.", []string{"reason"}, nil)

var behindDesc = prometheus.NewDesc("caddy_robots_policy_fleet_database_behind_seconds",
	"For how long the fleet's ClickHouse has not had everything that this server stored; 0 if it has.", nil, nil)

var claimDesc = prometheus.NewDesc("caddy_robots_policy_claims",
	"1 for the outcome of a claim: holds, fails, or cannot be judged. evidence-whole: the evidence log is whole and signed. evidence-last: it reaches its copy in the storage. lists-current: no list of addresses or keys is out of date. none-unrecorded: no request is missing in the totals of this server. sent-all: ClickHouse has all of them.", []string{"claim", "outcome"}, nil)

// claimsTimeout bounds how long the store may take for the claims of one answer.
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
