// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"context"
	"errors"
	"os"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/robotspolicy/caddy-robots-policy/activity/store"
	"github.com/robotspolicy/caddy-robots-policy/activity/store/clickhouse"
	"github.com/robotspolicy/caddy-robots-policy/claim"
	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/block"
)

// ClickHouse is the database of a fleet. The servers send their totals to this database, and the console of each server
// reads the totals of all servers. `caddy robots-policy activity-schema` creates the tables.
type ClickHouse struct {
	// The address of the HTTP interface, with the name of the database as the path, such as
	// `https://clickhouse.example.net:8443/robots`.
	URL string `json:"url,omitempty"`

	// The user who adds rows, and a file with the user's password. Default: the default user of ClickHouse.
	User         string `json:"user,omitempty"`
	PasswordFile string `json:"password_file,omitempty"`

	// The user who reads the totals for the console, and a file with this user's password. This user needs only read
	// access. Default: the user who adds rows.
	ConsoleUser         string `json:"console_user,omitempty"`
	ConsolePasswordFile string `json:"console_password_file,omitempty"`

	// The time between two transfers of rows. With more than 30 servers, use as many seconds as there are servers.
	// Default: 30s.
	Every caddy.Duration `json:"every,omitempty"`
}

func (c *ClickHouse) sends() clickhouse.Client {
	return clickhouse.Client{URL: c.URL, User: c.User, PasswordFile: c.PasswordFile}
}

func (c *ClickHouse) reads() clickhouse.Client {
	if c.ConsoleUser != "" {
		return clickhouse.Client{URL: c.URL, User: c.ConsoleUser, PasswordFile: c.ConsolePasswordFile}
	}
	return c.sends()
}

func (c *ClickHouse) check() error {
	if c == nil {
		return nil
	}
	sends, reads := c.sends(), c.reads()
	if c.ConsolePasswordFile != "" && c.ConsoleUser == "" {
		return errors.New("console_password_file of fleet_database needs console_user")
	}
	return errors.Join(sends.Check(), reads.Check())
}

// unmarshal reads the options of the block:
//
//	fleet_database <url> {
//	    user                  <name>
//	    password_file         <file>
//	    console_user          <name>
//	    console_password_file <file>
//	    every                 <duration>
//	}
func (c *ClickHouse) unmarshal(d *caddyfile.Dispenser) error {
	if !d.AllArgs(&c.URL) {
		return d.Err("fleet_database takes one argument: the address of ClickHouse's HTTP interface with the database as the path, such as https://clickhouse.example.net:8443/robots")
	}
	return block.Read(d, block.Text("user", "a name", &c.User), block.Text("password_file", "a file", &c.PasswordFile),
		block.Text("console_user", "a name", &c.ConsoleUser), block.Text("console_password_file", "a file", &c.ConsolePasswordFile),
		block.Duration("every", &c.Every, time.Second, "a duration of 1s or more, such as 30s"))
}

// fleet returns the database that receives this server's totals.
func (a *Activity) fleet(report func(error)) store.Fleet {
	f := store.Fleet{Node: a.Node, Report: report}
	if a.ClickHouse != nil {
		f.Client, f.Every = a.ClickHouse.sends(), time.Duration(a.ClickHouse.Every)
	}
	if f.Node == "" {
		f.Node, _ = os.Hostname() // if the host name is not known, the name is empty
	}
	return f
}

// queries returns an interface to query totals. With a fleet database, these are the totals of the server named node
// or, if node is empty, of all servers. Without a fleet database, these are the totals of this server. In this case,
// queries returns nil while the store is not open.
func (a *Activity) queries(node string) store.Queries {
	if a.ClickHouse != nil {
		return &store.FleetReader{Client: a.ClickHouse.reads(), Node: node}
	}
	if r := a.Reader(); r != nil {
		return r
	}
	return nil
}

// Behind returns how many seconds ago the fleet's database last had all rows of this server.
func (a *Activity) Behind() (seconds float64, ok bool) {
	s, open := a.store.Get()
	if !open {
		return 0, false
	}
	behind, ok, err := s.Behind(context.Background())
	return behind.Seconds(), ok && err == nil
}

// Claims implements recorders.ActivityStore.
func (a *Activity) Claims(ctx context.Context) []claim.Claim {
	now, all := time.Now(), make([]claim.Claim, 1, 2)
	if r := a.Reader(); r != nil {
		day := now.Add(-24 * time.Hour)
		c, err := r.Coverage(ctx, day, now)
		bounds, err2 := r.Bounds(ctx)
		all[0] = judgeRecorded(c, totalsSince(bounds, day), cmp.Or(err, err2))
	} else {
		all[0] = judgeRecorded(claim.Coverage{}, "", a.errNotOpen())
	}
	if seconds, ok := a.Behind(); ok {
		behind := time.Duration(seconds * float64(time.Second))
		all = append(all, claim.Judge(sentAll, sentSubject{Behind: claim.Read(behind, claim.Coverage{}), Ago: behind}))
	}
	return all
}

// fleetNode is a server of the fleet, as shown on the Health page.
type fleetNode struct{ store.Node }

// HeardAgo returns a text with the time since the server last sent rows, such as "5 minutes ago".
func (n fleetNode) HeardAgo() string { return lag(max(n.Heard, time.Minute)) + " ago" }

// sentSubject holds the data that [sentAll] judges.
type sentSubject struct {
	Behind claim.Known[time.Duration] `gap:"silent-server" what:"the server has stopped sending totals" close:"if the server is stopped, start it again with its previous activity database. If it runs, find out why it does not reach the fleet database"`
	Ago    time.Duration              // how long ago the fleet's database last had all requests of the server
}

// sentAll is the claim that a server of the fleet sends its totals to the fleet database with a delay of less than two
// minutes.
var sentAll = claim.Register("sent-all", func(s sentSubject) claim.Finding {
	behind, _ := s.Behind.Get()
	f := claim.Finding{Text: "yes", Unjudged: "not known, because the server has stopped sending totals", Fails: behind >= 2*time.Minute}
	if f.Fails {
		f.Text = "up to " + lag(s.Ago) + " ago"
	}
	return f
})

// Sent returns the claim [sentAll] about the server n.
func (n fleetNode) Sent() claim.Claim {
	ago, known := n.SentUntil()
	s := sentSubject{Ago: ago}
	if known {
		s.Behind = claim.Read(n.Behind, claim.Coverage{})
	}
	return claim.Judge(sentAll, s)
}

// nodes returns the servers that send rows to the fleet's database. If there is no such database, it returns nil.
func (v *view) nodes() ([]fleetNode, error) {
	fleet, ok := v.store.(*store.FleetReader)
	if !ok {
		return nil, nil
	}
	nodes, err := fleet.Nodes(v.ctx)
	all := make([]fleetNode, len(nodes))
	for i, n := range nodes {
		all[i] = fleetNode{n}
	}
	return all, err
}
