// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/claim"
)

// The names of the gaps of a fleet's database.
const (
	GapSilentServer = "silent-server" // a server is down or cut off, so its last requests are missing
	GapUnsentRows   = "unsent-rows"   // a server has not sent all of its rows yet
	GapClocksApart  = "clocks-apart"  // the clock of a server is wrong, so the times of its requests are wrong, too
)

// maxClockSkew is the maximum difference between the clocks of a server and of the fleet's database. A greater
// difference is a gap. The measured difference includes the time that sending takes.
const maxClockSkew = 2 * time.Minute

// forgottenAfter limits how long a silent server is reported.
const forgottenAfter = 30 * 24 * time.Hour

// Silent reports whether the server has sent nothing for too long, although it did not announce that it stops.
func (n *Node) Silent() bool { return !n.Ended && n.Heard > n.Every+max(n.Every/2, 15*time.Second) }

// SentUntil returns how long ago the fleet's database last had all rows of the server. known is false for a silent
// server.
func (n *Node) SentUntil() (ago time.Duration, known bool) { return n.Heard + n.Behind, !n.Silent() }

// gaps returns the gaps for servers that have not sent all of their rows, and for servers whose clocks are wrong. from
// is the start of the period that the gaps are computed for, and now is its end.
func gaps(nodes []Node, now, from time.Time) (all []claim.Gap) {
	heard := map[string]bool{} // by server: whether at least one of its databases is not silent
	for i := range nodes {
		heard[nodes[i].Name] = heard[nodes[i].Name] || !nodes[i].Silent()
	}
	for i := range nodes {
		n := &nodes[i]
		ago, _ := n.SentUntil()
		g := claim.Gap{From: now.Add(-ago), To: now}
		switch skew := n.Skew.Abs(); {
		case n.Heard > forgottenAfter, n.Ended && n.Behind == 0:
			continue
		case n.Silent() && (!heard[n.Name] || n.Behind > 0):
			g.Name, g.What = GapSilentServer, fmt.Sprintf("the server %s of the fleet has been silent for %s, so its requests since then are missing", n.Name, n.Heard.Round(time.Second))
			g.Close = "if the server is stopped, start it again with its previous activity database. If it runs, find out why it does not reach the fleet database"
		case n.Silent():
			continue // the server sends from a new database instead
		case n.Behind > n.Every+max(n.Every, time.Minute):
			g.Name, g.What = GapUnsentRows, fmt.Sprintf("the fleet database does not yet have all requests that the server %s recorded in the last %s", n.Name, n.Behind.Round(time.Second))
			g.Close = "wait until the server has sent these requests to the fleet database. If it cannot send them, Caddy's log on that server contains the reason"
		case skew > maxClockSkew:
			g = claim.Gap{Name: GapClocksApart, From: from, To: now, What: fmt.Sprintf("the clock of the server %s of the fleet is wrong by %s", n.Name, skew.Round(time.Second)), Close: "synchronize its clock with NTP"}
		default:
			continue
		}
		all = append(all, g)
	}
	return all
}
