// SPDX-License-Identifier: Apache-2.0

// Package source loads policies. It compiles the text of a policy into snapshots, watches it for changes, and keeps
// the last good version.
//
//	Store         what one handler uses: the policy of a host
//	  Document    a policy with its source: read, check, compile, publish
//	  Hosts       a Document for each host that has a file
//	    source    a file, a key in a storage, a web server
//	    Snapshot  one version, compiled
//
// The stores of a Pool share Documents and Hosts. Every version goes through the same steps: update reads the
// source, and apply checks and compiles the text. Then adopt saves it as the last good version and gives it to the
// stores, and report logs it and emits events.
package source

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/robotspolicy/caddy-robots-policy/site"
)

// ReloadOff as Options.Reload means that the source is not watched.
const ReloadOff time.Duration = -1

// Options configures a Store. Only Policy is required.
type Options struct {
	Policy string // a file, an https:// address, storage:KEY, or a file name with {host} in it
	// Default is the policy of hosts without a file. Only with {host}.
	Default string
	// Reload is the time between checks of the source for changes. 0 means the default for the kind of source.
	// ReloadOff, or any negative duration, means never.
	Reload  time.Duration
	Storage Storage // the storage of a policy storage:KEY
	// LastGood is a directory in which the last good version of a policy is saved. After a restart it is served
	// while the source has an error. If LastGood is empty, no version is saved. Storages that do not implement
	// fmt.Stringer must not share a directory.
	LastGood string
	// Strict makes Open return an error if the source has an error, even if a last good version is saved. Only a
	// policy from the network may start from its last good version.
	Strict   bool
	ReadOnly bool // do not write to LastGood or the storage
	// Guard, if not nil, is asked before a new version replaces a served one. It returns the reason against it,
	// which is an [UndecidedError] if that is not known now. Losses of the search engines in accepted do not count.
	// An undo is served whatever Guard returns, which is an alert then. below is nil if no site's robots.txt is merged.
	Guard func(ctx context.Context, name string, before, after *site.Site, below site.Below, accepted []string) error
	// Upstream returns the robots.txt of a host's upstream as it was fetched last, or nil,
	// if the handler merges it: the admin API shows what is served. Else it is nil.
	Upstream site.Below
	// OnLoad, if not nil, is called with each policy that is loaded for all hosts. It must
	// not call methods of the pool or of its documents, which wait for it.
	OnLoad func(*Snapshot)
	// Emit, if not nil, is called with the events robots_policy.reloaded and robots_policy.reload_failed.
	Emit func(event string, data map[string]any)
	// Running, if not nil, reports whether the store is in use: until then its source is not watched.
	Running func() bool
	Logger  *zap.Logger // nil: nothing is logged

	pool *Pool
}

// UndecidedError is why a guard could not decide. It says nothing about the policy.
type UndecidedError struct{ Err error }

func (e UndecidedError) Error() string { return e.Err.Error() }

func (e UndecidedError) Unwrap() error { return e.Err }

// Store gives one handler the policies of its hosts.
type Store struct {
	snapshot atomic.Pointer[Snapshot] // for hosts without a policy of their own
	document *Document                // whose versions snapshot has; nil if there is none
	hosts    *Hosts                   // nil: all hosts have the same policy
	closers  []func()
}

// Open loads the policy, or the directory of per-host policies, and watches it until Close. Stores of one pool share
// what they load. An error means that the policy has an error, or cannot be read and there is no last good one. At a
// start, neither of them is an error for a policy in a storage or on the web: see [Store.Get].
func (p *Pool) Open(ctx context.Context, o Options) (*Store, error) {
	o.pool = p
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	s := new(Store)
	if err := s.open(ctx, &o); err != nil {
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

func (s *Store) open(ctx context.Context, o *Options) error {
	if !IsHostTemplate(o.Policy) {
		if o.Default != "" {
			return errors.New("default needs a policy with {host} in its name")
		}
		return s.openDocument(ctx, o.Policy, o)
	}
	if o.Default != "" {
		if err := s.openDocument(ctx, o.Default, o); err != nil {
			return err
		}
	}
	return s.openHosts(ctx, o)
}

func (s *Store) openDocument(ctx context.Context, name string, o *Options) error {
	src, err := newSource(name, o.Storage)
	if err != nil {
		return err
	}
	u, err := newUser(o, src)
	if err != nil {
		return err
	}
	u.onChange = func(l *Snapshot) {
		s.snapshot.Store(l)
		if o.OnLoad != nil {
			o.OnLoad(l)
		}
	}
	d := o.pool.documents.Acquire(src.shareKey(), func() *Document { return newDocument(src.name) })
	s.closers = append(s.closers, func() { o.pool.documents.Release(src.shareKey()) })
	if err := d.open(ctx, u); err != nil {
		return err
	}
	d.join(u)
	s.document = d
	s.closers = append(s.closers, func() { d.leave(u) })
	return nil
}

func (s *Store) openHosts(ctx context.Context, o *Options) error {
	template, err := parseHostTemplate(o.Policy)
	if err != nil {
		return err
	}
	if err := checkDir(ctx, template.dir); err != nil {
		return err
	}
	u, err := newUser(o, newFileSource(template.name))
	if err != nil {
		return err
	}
	h := o.pool.hosts.Acquire(template.name, func() *Hosts { return newHosts(template) })
	h.join(u)
	s.hosts = h
	s.closers = append(s.closers, func() {
		h.leave(u)
		o.pool.hosts.Release(template.name)
	})
	return nil
}

// Get returns the policy of a host, nil if it has none. An error means that the policy is not known now; an
// [UnavailableError], that none was ever loaded.
func (s *Store) Get(ctx context.Context, host string) (*Snapshot, error) {
	if s.hosts != nil {
		if l, err := s.hosts.Get(ctx, host); l != nil || err != nil {
			return l, err
		}
	}
	if l := s.snapshot.Load(); l != nil || s.document == nil {
		return l, nil
	}
	return nil, s.document.unavailable()
}

// Close ends the watching. Requests that are still running keep their policy.
func (s *Store) Close() error {
	if s == nil {
		return nil
	}
	for len(s.closers) > 0 {
		last := len(s.closers) - 1
		s.closers[last]()
		s.closers = s.closers[:last]
	}
	return nil
}

func newSource(name string, storage Storage) (*source, error) {
	switch {
	case name == "":
		return nil, errors.New("no policy file is given")
	case IsWebAddress(name):
		return newWebSource(name)
	case strings.HasPrefix(name, StoragePrefix):
		key, err := StorageKey(name)
		if err == nil && storage == nil {
			err = fmt.Errorf("there is no storage for the policy %s", name)
		}
		if err != nil {
			return nil, err
		}
		return newStorageSource(storage, key), nil
	}
	path, err := filepath.Abs(name)
	if err != nil {
		return nil, fmt.Errorf("finding the policy file: %w", err)
	}
	return newFileSource(path), nil
}

const (
	// StoragePrefix begins the name of a policy in Caddy's storage.
	StoragePrefix = "storage:"

	// LastGood is the place of the last known good policies in a storage. No policy can be published there.
	LastGood = "robots_policy/last_good"

	// Catalog is the place of the catalog of crawlers. No policy can be published there.
	Catalog = "robots_policy/crawlers.yaml"
)

// caddysOwn are the top-level entries of Caddy and CertMagic in a storage.
var caddysOwn = []string{"acme", "certificates", "ech", "instance.uuid", "keys", "last_clean.json", "locks", "ocsp", "pki", "rate_limit"}

// StorageKey returns the key that a policy's name gives. Keys that lead out of the storage, and those that Caddy
// keeps other things under, are errors; upper and lower case are the same there, as they are for some file systems.
func StorageKey(name string) (string, error) {
	key := strings.TrimPrefix(name, StoragePrefix)
	if !fs.ValidPath(key) || key == "." || strings.ContainsAny(key, "\\\x00") {
		return "", fmt.Errorf("invalid key %q: must be a path such as robots_policy/site.yaml, without . or .. between its slashes", key)
	}
	folded := strings.ToLower(key)
	first, _, _ := strings.Cut(folded, "/")
	if slices.Contains(caddysOwn, first) || strings.HasPrefix(folded+"/", LastGood+"/") || folded == Catalog {
		return "", fmt.Errorf("invalid key %q: Caddy stores other data there; use a key such as robots_policy/site.yaml", key)
	}
	return key, nil
}

// IsWebAddress reports whether a policy's name is an address on the web.
func IsWebAddress(name string) bool {
	return strings.HasPrefix(name, "https://") || strings.HasPrefix(name, "http://")
}

// WebAddress reads the address of a policy on the web. Plain HTTP is for this machine only: anyone on the network
// path could change the policy. An address with a password is an error.
func WebAddress(name string) (*url.URL, error) {
	u, err := url.Parse(name)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the policy's address: %w", err)
	case u.Host == "":
		return nil, fmt.Errorf("%q names no server", name)
	case u.User != nil:
		return nil, errors.New("the address holds a password, which logs and the admin API would show")
	case u.Scheme == "http" && !loopback(u.Hostname()):
		return nil, fmt.Errorf("%q is not https, so anyone on the network path could change the policy", name)
	}
	return u, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
