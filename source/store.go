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

// ReloadOff is a value of Options.Reload. It means that the source is not watched.
const ReloadOff time.Duration = -1

// Options configures a Store. Only Policy is required.
type Options struct {
	Policy string // file name, https:// address, storage:KEY, or file name with {host}
	// Default is the policy of hosts without a file. It is only used if Policy contains {host}.
	Default string
	// Reload is the time between checks of the source for changes. 0 means the default for the kind of source.
	// ReloadOff, or any negative duration, means never.
	Reload  time.Duration
	Storage Storage // the storage that storage:KEY refers to
	// LastGood is a directory for saved versions. The last good version of each policy is saved there. After a restart,
	// it is served while the source has an error. If LastGood is empty, no version is saved. Storages that do not
	// implement fmt.Stringer must not share a directory, because their versions would have the same file names.
	LastGood string
	// Strict makes Open return an error if the source has an error, even if a last good version is saved. If only the
	// network fails, a policy in a storage or on a web server still starts from its last good version.
	Strict   bool
	ReadOnly bool // do not write to LastGood or the storage
	// Guard, if not nil, decides whether a new version may be served. before is the version served now, and after is
	// the new one. Guard returns nil if after may be served, and the reason if it may not. If Guard cannot decide now,
	// it returns an [UndecidedError]. It must ignore what the search engines in accepted lose. An undo is always
	// served, so for an undo, an error of Guard only causes an alert. below finds the sites' own robots.txt files, and
	// is nil if they are not merged.
	Guard func(ctx context.Context, name string, before, after *site.Site, below site.Below, accepted []string) error
	// Upstream returns the robots.txt of the upstream, in the version that the handler has last fetched for a host. The
	// admin API needs it to show the merged robots.txt that crawlers get. It is nil if the handler does not merge.
	Upstream site.Below
	// OnLoad, if not nil, is called with each loaded policy that applies to all hosts. It must not call methods of the
	// pool or of its documents, because these would wait for OnLoad to return.
	OnLoad func(*Snapshot)
	// Emit, if not nil, is called with the events robots_policy.reloaded and robots_policy.reload_failed.
	Emit func(event string, data map[string]any)
	// Running, if not nil, reports whether Caddy runs the configuration of the store, or only loads or validates it.
	// The source is not watched until Running returns true.
	Running func() bool
	Logger  *zap.Logger // nil disables logging

	pool *Pool
}

// UndecidedError means that Options.Guard could not decide. It does not mean that the policy has an error.
type UndecidedError struct{ Err error }

func (e UndecidedError) Error() string { return e.Err.Error() }

func (e UndecidedError) Unwrap() error { return e.Err }

// Store finds the policy of a host for one handler.
type Store struct {
	snapshot atomic.Pointer[Snapshot] // policy of hosts without their own policy
	document *Document                // the source of snapshot; nil if there is none
	hosts    *Hosts                   // nil if all hosts have the same policy
	closers  []func()
}

// Open loads the policy, or opens the directory of per-host policies, and watches it until Close. The stores of a pool
// share their policies. If the policy cannot be read or has an error, Open serves the last good version instead, or
// returns an error (see Options.Strict). If a policy in a storage or on a web server is not available when the server
// starts, Open does not return an error; see [Store.Get].
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

// Static returns a store with a policy that never changes.
func Static(policy *Snapshot) *Store {
	s := new(Store)
	s.snapshot.Store(policy)
	return s
}

func (s *Store) open(ctx context.Context, o *Options) error {
	if !IsHostTemplate(o.Policy) {
		if o.Default != "" {
			return errors.New("\"default\" is only for policies whose name has a placeholder such as {host}")
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

// Get returns the policy of a host, or nil if the host does not have one. It returns an error if the policy could not
// be loaded. If the source was not available since the server started, the error is an [UnavailableError].
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

// Close stops watching the policy. Requests in progress keep their policy.
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
			err = fmt.Errorf("the policy %s is in Caddy's storage, but this program has no access to the storage; name a policy file instead", name)
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
	// StoragePrefix is the prefix of policy names that refer to Caddy's storage.
	StoragePrefix = "storage:"

	// LastGood is the prefix of the storage keys of saved last good versions. No policy can be published there.
	LastGood = "robots_policy/last_good"

	// Catalog is the key of the crawler catalog in a storage. No policy can be published there.
	Catalog = "robots_policy/crawlers.yaml"
)

// caddysOwn lists the top-level names that Caddy and CertMagic use in a storage.
var caddysOwn = []string{"acme", "certificates", "ech", "instance.uuid", "keys", "last_clean.json", "locks", "ocsp", "pki", "rate_limit"}

// StorageKey returns the storage key in a policy's name, such as storage:robots_policy/site.yaml. It returns an error
// if the key leads out of the storage, or if Caddy uses the key for other data. It compares keys without regard to
// letter case, because some file systems do.
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

// IsWebAddress reports whether a policy's name is the address of a file on a web server.
func IsWebAddress(name string) bool {
	return strings.HasPrefix(name, "https://") || strings.HasPrefix(name, "http://")
}

// WebAddress parses the address of a policy on a web server. It accepts http only if the web server is on this machine,
// because anyone on the network path to another machine could change the policy. It returns an error if the address
// contains a user name or a password.
func WebAddress(name string) (*url.URL, error) {
	u, err := url.Parse(name)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the policy's address: %w", err)
	case u.Host == "":
		return nil, fmt.Errorf("%q does not name a server", name)
	case u.User != nil:
		return nil, errors.New("the policy's address contains a user name or a password, which logs and the admin API would show; remove it")
	case u.Scheme == "http" && !loopback(u.Hostname()):
		return nil, fmt.Errorf("%q is not https, so anyone on the network path could change the policy", name)
	}
	return u, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
