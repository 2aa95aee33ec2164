// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"sync"

	"go.uber.org/zap"

	"github.com/robotspolicy/caddy-robots-policy/activity"
)

// counted holds the number of the last version that a server loaded from a source.
type counted struct {
	Number int    `json:"number"`
	Minor  int    `json:"minor"`
	SHA256 string `json:"sha256"` // hash of the policy
	ID     string `json:"id"`     // Publication.ID of the version
	Signed
}

func (c *counted) String() string {
	if c.Minor == 0 {
		return fmt.Sprint(c.Number)
	}
	return fmt.Sprintf("%d.%d", c.Number, c.Minor)
}

// count sets the number and the author of the version s. By default, a new text gets the next number, and its author is
// unknown. If the policy is in a storage, and the newest version in its history has the same text, count takes the
// number and the author from there. It reads the history only if ask is set. If the text is not new, but the program or
// the catalog has changed since it was counted, count keeps the number, and increases a second number after a dot.
func (o *Options) count(src *source, s *Snapshot, ask bool) (c counted) {
	if o.lastGoodFile(src) == "" {
		return c // numbers are not saved
	}
	if saved, err := o.lastGood(src); err == nil {
		c = saved.Counted
	}
	p, fresh := s.Publication(), false
	switch {
	case c.ID == p.ID:
	case c.SHA256 == s.SHA256:
		c.Minor++
	default:
		c.Number, c.Minor, c.Signed = c.Number+1, 0, Signed{}
		fresh = true
	}
	if ask && c.By == "" && src.stored != nil {
		history, err := within(context.Background(), readTimeout, "the storage", src.stored.history)
		switch {
		case err != nil:
			o.Logger.Warn("the history of the policy cannot be read, so it is not known who published this version", zap.String("policy", src.name), zap.Error(err))
		case history.top(s.SHA256):
			c.Signed = history[0].Signed
			if fresh {
				c.Number = history[0].Number
			}
		case fresh && len(history) > 0: // the text was written to the storage without publishing it
			c.Number = max(c.Number, history[0].Number+1)
		}
	}
	c.SHA256, c.ID = s.SHA256, p.ID
	p.Number, p.By, p.Note = c.String(), c.By, c.Note
	return c
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

// Publication returns this version together with all documents made from it. It computes the documents only once.
func (s *Snapshot) Publication() *activity.Publication { return s.publication() }

func (s *Snapshot) publish() *activity.Publication {
	p := &activity.Publication{Name: s.Site.File.Name, Time: s.Since, SHA256: s.SHA256, Program: program(), Catalog: s.Site.File.Catalog.AsOf(), Text: s.Text}
	p.Documents, p.LeftOut = s.Site.Documents()
	p.Identify()
	return p
}

// Running returns the policies that running configurations apply, including the loaded policies of hosts.
func (p *Pool) Running() (all []*Snapshot) {
	documents := p.inUse()
	for _, h := range p.AllHosts() {
		documents = slices.AppendSeq(documents, maps.Values(h.loaded()))
	}
	for _, d := range documents {
		if s := d.Current(); s != nil {
			all = append(all, s)
		}
	}
	return all
}

// InForce returns a Publication for each policy that a running configuration applies to all hosts. Unlike Running, it
// omits the policies of hosts that have their own files.
func (p *Pool) InForce() (all []*activity.Publication) {
	for _, d := range p.inUse() {
		if s := d.Current(); s != nil {
			all = append(all, s.Publication())
		}
	}
	return all
}
