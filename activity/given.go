// SPDX-License-Identifier: Apache-2.0

package activity

import (
	"sync"
	"sync/atomic"
	"weak"
)

// Given holds the texts published for a version of a policy, for each of the Recorders of its handlers. Usually there
// is one. The zero value is empty. It is safe for concurrent use.
type Given struct {
	mu  sync.Mutex // of changes
	all atomic.Pointer[[]*GivenTo]
}

// GivenTo holds the texts that some Recorders were given for a version of a policy.
type GivenTo struct {
	to         weak.Pointer[Recorders]
	generation atomic.Uint64 // of those that have the publication
	mu         sync.Mutex
	day        int64           // in which they were given what is in robots
	robots     map[string]bool // hosts and versions
}

// To returns the record of the texts that these recorders were given.
func (g *Given) To(to *Recorders) *GivenTo {
	if p := g.find(to); p != nil {
		return p
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if p := g.find(to); p != nil {
		return p
	}
	all := []*GivenTo{{to: weak.Make(to)}}
	for _, p := range g.list() {
		if p.to.Value() != nil { // else its handlers are gone
			all = append(all, p)
		}
	}
	g.all.Store(&all)
	return all[0]
}

func (g *Given) list() []*GivenTo {
	if all := g.all.Load(); all != nil {
		return *all
	}
	return nil
}

func (g *Given) find(to *Recorders) *GivenTo {
	for _, p := range g.list() {
		if p.to.Value() == to {
			return p
		}
	}
	return nil
}

// Publish passes the publication to the recorders, unless they already have it.
func (p *GivenTo) Publish(to *Recorders, publication *Publication) {
	if g := to.Generation(); p.generation.Load() != g && p.generation.Swap(g) != g {
		p.mu.Lock()
		clear(p.robots)
		p.mu.Unlock()
		to.Publish(publication)
	}
}

// maxRobots bounds how many robots.txt of one policy the recorders are given in a day:
// clients can make up hosts.
const maxRobots = 10_000

// Robots reports whether the robots.txt of a host, in this version, must still be passed to the recorders.
func (p *GivenTo) Robots(robots string, day int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.day != day || p.robots == nil {
		p.day, p.robots = day, map[string]bool{}
	}
	if p.robots[robots] || len(p.robots) >= maxRobots {
		return false
	}
	p.robots[robots] = true
	return true
}

// Forget takes back what Robots noted, because the recorders did not get it.
func (p *GivenTo) Forget(robots string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.robots, robots)
}
