// SPDX-License-Identifier: Apache-2.0

package source

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/refcount"
)

// Pool shares what stores load: however many of them use a policy, it is read and compiled once. It is a Prometheus
// collector of the state of the policies. The zero value is ready to use.
type Pool struct {
	documents refcount.Pool[*Document] // by key of the source
	hosts     refcount.Pool[*Hosts]    // by template
	dates     dates
}

// Documents returns the loaded documents, in the order of their names. If there are two of one name, while a
// configuration with another storage takes over, it returns the one of the running configuration.
func (p *Pool) Documents() []*Document {
	loaded := slices.DeleteFunc(p.documents.All(), func(d *Document) bool { return d.Current() == nil })
	slices.SortFunc(loaded, func(a, b *Document) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.idle(), b.idle()))
	})
	return slices.CompactFunc(loaded, func(a, b *Document) bool { return a.Name == b.Name })
}

// Waiting returns the documents for which there is no policy yet: their handlers do nothing.
func (p *Pool) Waiting() []*Document {
	return p.without(func(d *Document) bool { return d.unavailable() == nil })
}

// Unavailable returns the documents whose policies could not be read since the start: their handlers answer requests
// for robots.txt with 503, and pass pages.
func (p *Pool) Unavailable() []*Document {
	return p.without(func(d *Document) bool { return d.unavailable() != nil })
}

// without returns the documents that have no version and are among others.
func (p *Pool) without(among func(*Document) bool) []*Document {
	all := slices.DeleteFunc(p.inUse(), func(d *Document) bool { return d.Current() != nil || !among(d) })
	slices.SortFunc(all, func(a, b *Document) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// inUse are the documents of configurations that run.
func (p *Pool) inUse() []*Document {
	return slices.DeleteFunc(p.documents.All(), func(d *Document) bool { return d.idle() == 1 })
}

// idle is 1 for a document of no configuration that runs, else 0.
func (d *Document) idle() int {
	if u, _ := d.active(); u == nil {
		return 1
	}
	return 0
}

// Problem says why the current state of the source is not served, "" if it is.
func (d *Document) Problem() string {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.err == nil {
		return ""
	}
	return d.err.Error()
}

// broken reports whether there is a Problem, without formatting it, which can take long.
func (d *Document) broken() bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.err != nil
}

// AllHosts returns the per-host policies in use, in the order of their names.
func (p *Pool) AllHosts() []*Hosts {
	all := p.hosts.All()
	slices.SortFunc(all, func(a, b *Hosts) int { return cmp.Compare(a.Name(), b.Name()) })
	return all
}

// Loaded lists the policies that are loaded, those of hosts with files of their own included.
func (p *Pool) Loaded() []*Document {
	loaded := p.Documents()
	for _, h := range p.AllHosts() {
		loaded = slices.AppendSeq(loaded, maps.Values(h.loaded()))
	}
	return loaded
}

// recompileTimeout bounds a call of Recompile: a file that cannot be read, or an event
// handler, may hold up a policy for ever.
const recompileTimeout = 30 * time.Second

// Recompile compiles once more the policies that were compiled with another catalog of crawlers than the one in use, or
// before a date in them passed. A policy that has an error now stays as it is. The work that is left when ctx ends, or
// after half a minute, is left to the next call.
func (p *Pool) Recompile(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, recompileTimeout)
	defer cancel()
	for _, d := range p.documents.All() {
		if u, _ := d.active(); u != nil {
			d.recompile(ctx, u.Options)
		}
	}
	for _, h := range p.AllHosts() {
		o := h.options()
		for _, d := range h.loaded() {
			d.recompile(ctx, o)
		}
	}
}

// recompile replaces the current version by one of the same text.
func (d *Document) recompile(ctx context.Context, o *Options) {
	defer o.recoverPanic()
	if !d.Current().outdated() || d.loading.Acquire(ctx, 1) != nil {
		return
	}
	defer d.loading.Release(1)
	before := d.Current()
	if !before.outdated() {
		return
	}
	used, _ := crawlers.Default()
	s, err := compileAccepted(d.Name, []byte(before.Text))
	if err != nil {
		before.catalog.Store(used) // so that it is said once
		before.asked.Store(time.Now().UnixNano())
		o.Logger.Error("a policy has an error with the new catalog of crawlers, or after a date; it is served as it was compiled before",
			zap.String("policy", d.Name), zap.Error(err))
		return
	}
	s.Since = before.Since
	for _, w := range s.Warnings {
		if w.IsFailedTest() && !slices.Contains(before.Warnings, w) {
			o.Logger.Warn("policy file: "+w.Message, zap.String("policy", d.Name), zap.String("code", w.Code))
		}
	}
	s.Publication().Time = time.Now()
	if u, _ := d.active(); u != nil {
		o.saveLastGood(u.src, s)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.setCurrent(s)
	o.pool.watchDates(s)
	for _, u := range d.all {
		if u.snapshot == before {
			u.set(s)
		}
	}
}

// nextDate is the first date in the version that has not been dealt with, or zero if there is none. A version that could not be
// compiled after a date stays in use until the next date.
func (s *Snapshot) nextDate() time.Time {
	if asked := s.asked.Load(); asked != 0 {
		return s.Site.NextDate(time.Unix(0, asked))
	}
	return s.until
}

// outdated reports whether another catalog than the version's is in use, or a date in it has passed. The
// closed policy of a host without a usable file does not name crawlers, and never is.
func (s *Snapshot) outdated() bool {
	if s == nil {
		return false
	}
	used, err := crawlers.Default()
	with := s.catalog.Load()
	until := s.nextDate()
	passed := !until.IsZero() && !time.Now().Before(until)
	return err == nil && with != nil && (used != with || passed)
}
