// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/robotspolicy/caddy-robots-policy/activity/store"
	"github.com/robotspolicy/caddy-robots-policy/activity/store/clickhouse"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
)

// ClickHouse is the database in which the servers of a fleet add up what they have stored,
// and that the pages of each of them read. `caddy robots-policy activity-schema` creates its
// tables.
type ClickHouse struct {
	// The address of its HTTP interface with the database as the path, such as
	// `https://clickhouse.example.net:8443/robots`.
	URL string `json:"url,omitempty"`

	// The user who adds rows, and a file with the password. Default: the server's default user.
	User         string `json:"user,omitempty"`
	PasswordFile string `json:"password_file,omitempty"`

	// The user for the pages, who only reads, and a file with the password. Default: who adds rows.
	ConsoleUser         string `json:"console_user,omitempty"`
	ConsolePasswordFile string `json:"console_password_file,omitempty"`

	// How often rows are sent: for many servers, a second for each of them. Default: 30s.
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
		return errors.New("console_password_file of clickhouse needs console_user")
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
		return d.Err("clickhouse takes one argument, the address of its HTTP interface with the database as the path")
	}
	texts := map[string]*string{"user": &c.User, "password_file": &c.PasswordFile, "console_user": &c.ConsoleUser, "console_password_file": &c.ConsolePasswordFile}
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		name, value := d.Val(), ""
		switch {
		case texts[name] == nil && name != "every":
			return d.Errf("unrecognized option '%s' of clickhouse: must be user, password_file, console_user, console_password_file or every", name)
		case !d.AllArgs(&value):
			return d.Errf("%s takes one argument", name)
		case name != "every":
			*texts[name] = value
			continue
		}
		every, err := caddy.ParseDuration(value)
		if err != nil || every < time.Second {
			return d.Errf("invalid every %q: must be a duration of 1s or more, such as 30s", value)
		}
		c.Every = caddy.Duration(every)
	}
	return nil
}

// fleet is the database that this server sends its totals to.
func (a *Activity) fleet(report func(error)) store.Fleet {
	f := store.Fleet{Node: a.Node, Report: report}
	if a.ClickHouse != nil {
		f.Client, f.Every = a.ClickHouse.sends(), time.Duration(a.ClickHouse.Every)
	}
	if f.Node == "" {
		f.Node, _ = os.Hostname() // without a name it is the server without one
	}
	return f
}

// queries answers for the fleet, a server of it, or this server; nil while the store is not open.
func (a *Activity) queries(node string) store.Queries {
	if a.ClickHouse != nil {
		return &store.FleetReader{Client: a.ClickHouse.reads(), Node: node}
	}
	if r := a.Reader(); r != nil {
		return r
	}
	return nil
}

// Behind is for how many seconds the fleet has not got everything from this server.
func (a *Activity) Behind() (seconds float64, ok bool) {
	s, open := a.store.Get()
	if !open {
		return 0, false
	}
	behind, ok, err := s.Behind(context.Background())
	return behind.Seconds(), ok && err == nil
}

// silentAfter is after how many intervals without a word a server is called silent.
const silentAfter = 3

// fleetNode is a server of the fleet on the page of the machinery.
type fleetNode struct {
	store.Node
	Silent bool
}

// HeardAgo is the time since it last sent something.
func (n fleetNode) HeardAgo() string { return lag(max(n.Heard, time.Minute)) + " ago" }

// Sent says up to when it has sent everything.
func (n fleetNode) Sent() string {
	if n.Behind < 2*time.Minute {
		return "yes"
	}
	return "up to " + lag(n.Behind) + " before that"
}

// nodes are the servers that send to the fleet's database, nil where there is none.
func (v *view) nodes() ([]fleetNode, error) {
	fleet, ok := v.store.(*store.FleetReader)
	if !ok {
		return nil, nil
	}
	interval := 30 * time.Second
	if a := runningActivity(); a != nil && a.ClickHouse != nil {
		interval = cmp.Or(time.Duration(a.ClickHouse.Every), interval)
	}
	nodes, err := fleet.Nodes(v.ctx)
	all := make([]fleetNode, len(nodes))
	for i, n := range nodes {
		all[i] = fleetNode{n, n.Heard > silentAfter*max(interval, 20*time.Second)}
	}
	return all, err
}

// unsent says which servers have not sent all that they know.
func (v *view) unsent() string {
	nodes, err := v.nodes()
	if err != nil {
		return " The requests that the servers of the fleet have not sent yet cannot be counted: " + firstLine(err.Error()) + "."
	}
	heard := map[string]bool{} // also by another store than before
	for _, n := range nodes {
		heard[n.Name] = heard[n.Name] || !n.Silent
	}
	var silent, behind []string
	for _, n := range nodes {
		switch {
		case n.Silent && !heard[n.Name] && n.Heard < 30*24*time.Hour:
			silent = append(silent, fmt.Sprintf("%s (for %s)", n.Name, lag(n.Heard)))
		case n.Behind > 5*time.Minute:
			behind = append(behind, fmt.Sprintf("%s (by %s)", n.Name, lag(n.Behind)))
		}
	}
	text := ""
	if len(silent) > 0 {
		text += " Silent: " + english.Some(silent, 5) + ". The numbers do not include their requests since then."
	}
	if len(behind) > 0 {
		text += " Still sending what they saw before: " + english.Some(behind, 5) + "."
	}
	return text
}
