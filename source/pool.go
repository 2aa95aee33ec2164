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

// Pool shares policies between stores, so that each policy is read and compiled only once. It is a Prometheus
// collector for the state of the policies. The zero value is ready to use.
type Pool struct {
	documents refcount.Pool[*Document] // keys are from source.shareKey
	hosts     refcount.Pool[*Hosts]    // keys are names of templates
	dates     dates
}

// Documents returns the loaded documents, sorted by name. While Caddy replaces a configuration with one that has
// another storage, two documents may have the same name. Documents then returns only the document of the running
// configuration.
func (p *Pool) Documents() []*Document {
	loaded := slices.DeleteFunc(p.documents.All(), func(d *Document) bool { return d.Current() == nil })
	slices.SortFunc(loaded, func(a, b *Document) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.idle(), b.idle()))
	})
	return slices.CompactFunc(loaded, func(a, b *Document) bool { return a.Name == b.Name })
}

// Waiting returns the documents whose policy does not exist yet. Their handlers do nothing.
func (p *Pool) Waiting() []*Document {
	return p.without(func(d *Document) bool { return d.unavailable() == nil })
}

// Unavailable returns the documents whose source could not be read since the server started. Their handlers answer
// requests for robots.txt with status 503, and pass all other requests on.
func (p *Pool) Unavailable() []*Document {
	return p.without(func(d *Document) bool { return d.unavailable() != nil })
}

// without returns the documents in use that do not have a version yet, if the function among returns true for them.
func (p *Pool) without(among func(*Document) bool) []*Document {
	all := slices.DeleteFunc(p.inUse(), func(d *Document) bool { return d.Current() != nil || !among(d) })
	slices.SortFunc(all, func(a, b *Document) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// inUse returns the documents of running configurations.
func (p *Pool) inUse() []*Document {
	return slices.DeleteFunc(p.documents.All(), func(d *Document) bool { return d.idle() == 1 })
}

// idle returns 0 if a running configuration uses the document, and 1 otherwise.
func (d *Document) idle() int {
	if u, _ := d.active(); u == nil {
		return 1
	}
	return 0
}

// Problem returns why the present state of the source is not served, or "" if it is.
func (d *Document) Problem() string {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.err == nil {
		return ""
	}
	return d.err.Error()
}

// broken reports whether Problem would return a problem. It is faster, because it does not format the error.
func (d *Document) broken() bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.err != nil
}

// AllHosts returns the per-host policies in use, sorted by name.
func (p *Pool) AllHosts() []*Hosts {
	all := p.hosts.All()
	slices.SortFunc(all, func(a, b *Hosts) int { return cmp.Compare(a.Name(), b.Name()) })
	return all
}

// Loaded lists the loaded policies, including those of hosts with their own files.
func (p *Pool) Loaded() []*Document {
	loaded := p.Documents()
	for _, h := range p.AllHosts() {
		loaded = slices.AppendSeq(loaded, maps.Values(h.loaded()))
	}
	return loaded
}

// recompileTimeout limits a call of Recompile, because an unreadable file or an event handler may block a policy
// forever.
const recompileTimeout = 30 * time.Second

// Recompile compiles the texts of policies again if their effects may have changed, for example because of a new
// crawler catalog, or because a date in the policy has passed. If a policy now has an error, its old version stays in
// force. Recompile stops when ctx ends or after half a minute; the next call recompiles the remaining policies.
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

// recompile replaces the current version by a new one with the same text.
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
		before.catalog.Store(used) // so that the error is logged only once
		before.asked.Store(time.Now().UnixNano())
		o.Logger.Error("a policy has had an error since the crawler catalog was updated or a date in the policy passed; the previously compiled version stays in force",
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

// nextDate returns the next date in the version when the policy must be compiled again, or zero if there is none. If
// compiling failed after a date, nextDate does not return this date again, but the first date after the failed attempt.
func (s *Snapshot) nextDate() time.Time {
	if asked := s.asked.Load(); asked != 0 {
		return s.Site.NextDate(time.Unix(0, asked))
	}
	return s.until
}

// outdated reports whether the version must be compiled again, because another catalog is in use now or a date in the
// version has passed. The policy of closedText is never outdated, because it does not name crawlers.
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
