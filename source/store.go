// SPDX-License-Identifier: Apache-2.0

// Package policystore loads policies, watches them for changes and keeps the last good
// version of each.
//
//	Store            what one handler uses: the policy of a host
//	  Document       a policy with its source: open, watch, apply
//	  Hosts          a file for each host: load, sweep
//	    source       a file, a key in Caddy's storage, a web server
//	      Snapshot   one version, compiled
//
// Documents and Hosts are shared by all handlers and outlive a configuration. Each
// change takes one way: the watcher reads the source, the text is compiled to
// a Snapshot, saved as the last good one, given to the handlers, and then reported to
// the log and to events.
package source

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
)

// ReloadOff as Options.Reload means that the source is not watched.
const ReloadOff time.Duration = -1

// Options is what the configuration of a handler says about its policy.
type Options struct {
	// Policy is a file, an https:// address, storage:KEY, or a file name with
	// {host} in it. Global placeholders are replaced.
	Policy string
	// Default is the policy of hosts without a file. Only with {host}.
	Default string
	// Reload is how often the source is checked for changes: 0 means the default
	// of the source, negative (ReloadOff) never.
	Reload time.Duration
	// Upstream returns the robots.txt of a host's upstream as it was fetched last, or nil,
	// if the handler merges it: the admin API shows what is served. Else it is nil.
	Upstream func(host string) *robotstxt.File
	// OnLoad, if not nil, is called with each policy that is loaded for all hosts.
	OnLoad func(*Snapshot)
	Logger *zap.Logger
}

// Store gives one handler the policies of its hosts. Stores of the same source
// share what was loaded, across handlers and configurations.
type Store struct {
	snapshot     atomic.Pointer[Snapshot] // for hosts without a policy of their own
	subscription *subscription            // nil: there is no such policy
	hosts        *Hosts                   // nil: all hosts have the same policy
	subscriber   *hostSubscriber          // nil once closed
}

// subscription is the use of a document by one store.
type subscription struct {
	document   *Document
	subscriber *subscriber
}

// Open loads the policy, or the directory of per-host policies, and watches it
// until Close. An error means that the new configuration must not run: the policy
// has an error, or cannot be read and there is no last good one.
func Open(ctx caddy.Context, o Options) (*Store, error) {
	n, err := newNotifier(ctx, o.Logger)
	if err != nil {
		return nil, err
	}
	if err := registerMetrics(ctx.GetMetricsRegistry()); err != nil {
		return nil, fmt.Errorf("registering metrics: %w", err)
	}
	s := new(Store)
	if err := s.open(ctx, o, n); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Static returns a store that serves one policy and watches nothing.
func Static(policy *Snapshot) *Store {
	s := new(Store)
	s.snapshot.Store(policy)
	return s
}

func (s *Store) open(ctx caddy.Context, o Options, n *notifier) error {
	// A placeholder that is unknown now can only be one of a request.
	name := caddy.NewReplacer().ReplaceKnown(o.Policy, "")
	if !IsHostTemplate(name) {
		if o.Default != "" {
			return errors.New("default needs a policy with {host} in its name")
		}
		return s.openOne(ctx, name, o, n)
	}
	if o.Default != "" {
		def, err := caddy.NewReplacer().ReplaceOrErr(o.Default, true, true)
		if err != nil {
			return fmt.Errorf("the name of the default policy, %q: %w", o.Default, err)
		}
		if err := s.openOne(ctx, def, o, n); err != nil {
			return err
		}
	}
	return s.openHosts(name, o, n)
}

// openOne opens a policy for all hosts.
func (s *Store) openOne(ctx caddy.Context, name string, o Options, n *notifier) error {
	src, err := newSource(ctx, name)
	if err != nil {
		return err
	}
	watched, interval, err := pollInterval(o.Reload, src)
	if err != nil {
		return err
	}
	r := newSubscriber(src, n)
	r.watch, r.interval, r.upstream = watched, interval, o.Upstream
	r.onChange = func(l *Snapshot) {
		s.snapshot.Store(l)
		if o.OnLoad != nil {
			o.OnLoad(l)
		}
	}
	s.subscription, err = subscribe(ctx, r)
	return err
}

// openHosts opens the policies of a template.
func (s *Store) openHosts(name string, o Options, n *notifier) error {
	template, err := ParseHostTemplate(name)
	if err != nil {
		return err
	}
	if err := checkDir(template.Dir()); err != nil {
		return err
	}
	watched, interval, err := pollInterval(o.Reload, &fileSource{path: template.String()})
	if err != nil {
		return err
	}
	v, _, err := pool.LoadOrNew("hosts "+template.String(), func() (caddy.Destructor, error) { return newHosts(template) })
	if err != nil {
		return err
	}
	s.hosts = v.(*Hosts)
	s.subscriber = &hostSubscriber{watch: watched, interval: interval, notifier: n, upstream: o.Upstream}
	s.hosts.join(s.subscriber)
	return nil
}

// checkDir returns an error unless name is a directory.
func checkDir(name string) error {
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
	defer cancel()
	return within(ctx, "the directory of the policy files", func() error {
		info, err := os.Stat(name)
		if err != nil {
			return fmt.Errorf("the directory of the policy files: %w", err)
		}
		if !info.IsDir() {
			return fmt.Errorf("%s is not a directory", name)
		}
		return nil
	})
}

// Get returns the policy of a host, nil if it has none. An error means that the
// policy is not known now.
func (s *Store) Get(ctx context.Context, host string) (*Snapshot, error) {
	if s.hosts != nil {
		if l, err := s.hosts.Get(ctx, host); l != nil || err != nil {
			return l, err
		}
	}
	return s.snapshot.Load(), nil
}

// Close ends the watching. Requests that are still running keep their policy.
func (s *Store) Close() error {
	if s == nil {
		return nil
	}
	var errs []error
	if s.subscriber != nil {
		s.hosts.leave(s.subscriber)
		_, err := pool.Delete("hosts " + s.hosts.template.String())
		errs = append(errs, err)
		s.subscriber = nil
	}
	if s.subscription != nil {
		errs = append(errs, s.subscription.release())
		s.subscription = nil
	}
	return errors.Join(errs...)
}

// subscribe joins the document of the subscriber's source.
func subscribe(ctx caddy.Context, r *subscriber) (*subscription, error) {
	key := r.src.key()
	v, _, err := pool.LoadOrNew(key, func() (caddy.Destructor, error) { return newDocument(key, r.src.name()), nil })
	if err != nil {
		return nil, err
	}
	d := v.(*Document)
	if err := d.open(ctx, r); err != nil {
		_, _ = pool.Delete(key)
		return nil, err
	}
	d.join(r)
	return &subscription{document: d, subscriber: r}, nil
}

// release leaves the document.
func (u *subscription) release() error {
	u.document.leave(u.subscriber)
	_, err := pool.Delete(u.document.key)
	return err
}

// newSource returns the source that the name of a policy stands for.
func newSource(ctx caddy.Context, name string) (source, error) {
	switch {
	case name == "":
		return nil, errors.New("no policy file is given")
	case IsWebAddress(name):
		return newWebSource(name)
	case strings.HasPrefix(name, StoragePrefix):
		key, err := StorageKey(name)
		if err != nil {
			return nil, err
		}
		return &storageSource{storage: ctx.Storage(), at: key}, nil
	}
	// caddy.FastAbs remembers the directory in which Caddy started.
	path, err := filepath.Abs(name)
	if err != nil {
		return nil, fmt.Errorf("finding the policy file: %w", err)
	}
	return &fileSource{path: path}, nil
}

// pollInterval returns whether and how often to check a source for changes.
func pollInterval(reload time.Duration, src source) (watched bool, interval time.Duration, err error) {
	usual, least := src.pace()
	switch {
	case reload < 0:
		return false, 0, nil
	case reload == 0:
		return true, usual, nil
	case reload < least:
		return false, 0, fmt.Errorf("reload %s is too short: %s is checked at most every %s; to switch this off, write: reload off", reload, src.name(), least)
	}
	return true, reload, nil
}
