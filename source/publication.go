// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/robotspolicy/caddy-robots-policy/activity"
)

// counted is how far the versions of a source have been counted on this server.
type counted struct {
	Number int    `json:"number"`
	Minor  int    `json:"minor"`
	SHA256 string `json:"sha256"` // of the policy
	ID     string `json:"id"`     // of the publication
	Signed
}

func (c *counted) String() string {
	if c.Minor == 0 {
		return fmt.Sprint(c.Number)
	}
	return fmt.Sprintf("%d.%d", c.Number, c.Minor)
}

// count numbers a version. A policy in a storage has the number that it got when it was published, and the name of who
// did; the versions of others are counted as they come. Another program or catalogue under the same policy counts after a dot.
func (o *Options) count(src *source, s *Snapshot) (c counted) {
	if o.lastGoodFile(src) == "" {
		return c // nothing would remember it
	}
	if saved, err := o.lastGood(src); err == nil {
		c = saved.Counted
	}
	p := s.Publication()
	switch {
	case c.ID == p.ID:
	case c.SHA256 == s.SHA256:
		c.Minor++
	default:
		c.Number, c.Minor, c.Signed = c.Number+1, 0, Signed{}
		if found := src.published(s.SHA256); found.Number > 0 {
			c.Number, c.Signed = found.Number, found.Signed
		}
	}
	c.SHA256, c.ID = s.SHA256, p.ID
	p.Number, p.By, p.Note = c.String(), c.By, c.Note
	return c
}

// published is what the history says of a policy in a storage; its number is 0 if that is nothing.
func (src *source) published(sum string) Published {
	if src.stored == nil {
		return Published{}
	}
	history, _ := within(context.Background(), readTimeout, "the storage", src.stored.history)
	for _, p := range history {
		if p.SHA256 == sum {
			return p
		}
	}
	return Published{}
}

var program = sync.OnceValue(func() string {
	const module = "github.com/robotspolicy/caddy-robots-policy"
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	version := info.Main.Version
	for _, m := range info.Deps {
		if m.Path == module {
			version = m.Version
		}
	}
	return module + " " + version
})

// Publication is what this version publishes. It is worked out once.
func (s *Snapshot) Publication() *activity.Publication {
	return s.publication.get(func() any {
		p := &activity.Publication{Name: s.Site.File.Name, Time: s.Since, SHA256: s.SHA256, Program: program(), Catalogue: s.Site.File.Catalogue.AsOf(), Text: s.Text}
		p.Documents, p.LeftOut = s.Site.Documents()
		p.Identify()
		return p
	}).(*activity.Publication)
}

// Running are the versions of all policies that are loaded, those of hosts with files of their own included.
func (p *Pool) Running() (all []*Snapshot) {
	for _, d := range p.Loaded() {
		all = append(all, d.Current())
	}
	return all
}

// InForce are the publications of the policies for all hosts that configurations which run apply now.
func (p *Pool) InForce() (all []*activity.Publication) {
	for _, d := range p.inUse() {
		if s := d.Current(); s != nil {
			all = append(all, s.Publication())
		}
	}
	return all
}
