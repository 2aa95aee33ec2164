// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"slices"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/activity/store/clickhouse"
	"github.com/robotspolicy/caddy-robots-policy/claim"
)

// Queries is the interface through which pages, commands and the API read totals. A [Reader] reads the totals of one
// server, and a [FleetReader] the totals that all servers of a fleet have sent.
type Queries interface {
	Totals(ctx context.Context, q Query) ([]Row, error)
	EachRow(ctx context.Context, from, to time.Time, visit func(activity.Totals) error) (claim.Coverage, error)
	Coverage(ctx context.Context, from, to time.Time) (claim.Coverage, error)
	Bounds(ctx context.Context) (Bounds, error)
	Crawlers(ctx context.Context) ([]Crawler, error)
	Reads(ctx context.Context) ([]Read, error)
	Publications(ctx context.Context, name string) ([]Publication, error)
	PolicyVersions(ctx context.Context, name string) ([]string, error)
	Documents(ctx context.Context) ([]Document, error)
}

// FleetReader reads the rows that the servers of a fleet have sent to ClickHouse. It uses FINAL to get the last
// revision of each row, so that the result does not depend on when ClickHouse merges its tables.
type FleetReader struct {
	answers
	*clickhouseEngine
}

// NewFleetReader returns a reader of a fleet's database. If node is not empty, it reads only the rows of the server with
// this name.
func NewFleetReader(client clickhouse.Client, node string) *FleetReader {
	e := &clickhouseEngine{client, node}
	return &FleetReader{answers{e}, e}
}

// Node is the activity database of a server in a fleet.
type Node struct {
	Name   string
	Heard  time.Duration // time since the server's last message, by the clock of ClickHouse
	Behind time.Duration // how long before its last message the server had sent all of its rows; 0 if nothing was left to send
	Every  time.Duration // interval between the server's messages
	Skew   time.Duration // difference between the server's clock and the clock of ClickHouse
	Ended  bool          // the server announced that it stops
	store  string
	// rolled is the last day in path_days. last is the last hour with totals.
	rolled, last int64
}

// Nodes returns all databases that have sent rows, sorted by the names of their servers. A server has several databases
// if its directory was deleted.
func (r *FleetReader) Nodes(ctx context.Context) (all []Node, err error) {
	err = r.query(ctx, "SELECT server_name, store, toUInt32(now()) - toUInt32(at), behind, rolled, last, every, ended, toInt64(revision) - toInt64(toUInt32(at)) * 1000 FROM servers FINAL"+r.where()+" ORDER BY server_name, store", 9, func(f []string, n []int64) {
		all = append(all, Node{
			Name: f[0], Heard: time.Duration(n[2]) * time.Second, Behind: time.Duration(n[3]) * time.Second, Every: time.Duration(n[6]) * time.Second,
			Skew: time.Duration(n[8]) * time.Millisecond, Ended: n[7] > 0, store: f[1], rolled: n[4], last: n[5],
		})
	})
	return all, err
}

// Totals returns the rows that answer a query.
func (r *FleetReader) Totals(ctx context.Context, q Query) ([]Row, error) {
	if !q.paths() {
		return r.totals(ctx, &q, q.spans(0))
	}
	nodes, err := r.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	rolled := int64(0)
	for _, n := range nodes {
		rolled = max(rolled, n.rolled)
	}
	spans := q.spans(rolled)
	for _, s := range slices.Clone(spans) {
		for _, n := range nodes { // for the days after n.rolled, the paths of this server exist only in the hourly totals
			if from := max(s.from, n.rolled+1); s.hours == 24 && n.rolled < rolled {
				spans = append(spans, span{pathHourTable, from * 24, min(s.to*24, n.last+1), "store = " + n.store})
			}
		}
	}
	return r.totals(ctx, &q, spans)
}

// EachRow is like [Reader.EachRow], for all servers of the fleet.
func (r *FleetReader) EachRow(ctx context.Context, from, to time.Time, visit func(activity.Totals) error) (claim.Coverage, error) {
	pathless, err := r.eachRow(ctx, from, to, visit)
	if err != nil {
		return claim.Coverage{}, err
	}
	c, err := r.Coverage(ctx, from, to)
	return claim.Unite(c, coverageOf(from, to, pathless, nil)), err
}

// Bounds returns the period that the fleet's database covers, and its size.
func (r *FleetReader) Bounds(ctx context.Context) (Bounds, error) {
	b, err := r.bounds(ctx)
	if err == nil {
		err = r.query(ctx, "SELECT sum(bytes) FROM system.parts WHERE active AND database = "+clickhouse.Quote(r.client.Database()), 1, func(_ []string, n []int64) { b.Bytes = n[0] })
	}
	return b, err
}
