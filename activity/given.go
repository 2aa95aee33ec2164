// SPDX-License-Identifier: Apache-2.0

package activity

import (
	"sync"
	"sync/atomic"
	"weak"
)

// Given remembers which texts of one policy version the handlers have passed to recorders, so that each text is passed
// only once. Given holds a GivenTo for each Recorders value; usually, all handlers share one Recorders. The zero value
// is empty. Given is safe for concurrent use.
type Given struct {
	mu  sync.Mutex // serializes changes
	all atomic.Pointer[[]*GivenTo]
}

// GivenTo remembers which texts of a policy version have already been passed to one Recorders value.
type GivenTo struct {
	to         weak.Pointer[Recorders]
	generation atomic.Uint64 // the result of Recorders.Generation when Publish last passed on the publication
	mu         sync.Mutex
	day        int64           // the day of the entries in robots
	robots     map[string]bool // keys are "HOST VERSION"
}

// To returns the GivenTo for the given recorders. The first call for these recorders creates it.
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
		if p.to.Value() != nil { // otherwise the handlers of these recorders no longer exist
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

// Publish passes the publication to the recorders. It does so again only after the set of recorders has changed (see
// [Recorders.Generation]).
func (p *GivenTo) Publish(to *Recorders, publication *Publication) {
	if g := to.Generation(); p.generation.Load() != g && p.generation.Swap(g) != g {
		p.mu.Lock()
		clear(p.robots)
		p.mu.Unlock()
		to.Publish(publication)
	}
}

// maxRobots limits how many robots.txt files of one policy are passed to the recorders in a day. A limit is needed
// because clients can invent hosts.
const maxRobots = 10_000

// Robots reports whether the caller must still pass a robots.txt to the recorders on the given day. If so, it remembers
// the robots.txt as passed. robots consists of the host and the version of the robots.txt, separated by a space.
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

// Forget undoes the effect of Robots. The caller calls Forget if it could not pass the robots.txt to the recorders.
func (p *GivenTo) Forget(robots string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.robots, robots)
}
