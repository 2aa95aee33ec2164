// SPDX-License-Identifier: Apache-2.0

package recorders

import (
	"crypto/ed25519"
	"fmt"
	"path/filepath"
	"strconv"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"go.uber.org/zap"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/activity/evidence"
)

func init() { caddy.RegisterModule(new(Evidence)) }

// Evidence writes an event log that shows which robots.txt and policy were published,
// who read them, and what was fetched against them. `caddy robots-policy
// verify-evidence` checks that it was not changed.
type Evidence struct {
	// The directory of the log. One server at a time writes to it.
	Directory string `json:"directory,omitempty"`

	// A file with an Ed25519 private key (PEM), which signs the files of days that have
	// ended. Make one with `openssl genpkey -algorithm ed25519`. Without a key they are
	// not signed.
	Key string `json:"key,omitempty"`

	// After how many days files are deleted. Default: 396.
	Days int `json:"days,omitempty"`

	name string // in the pool: the directory
	key  ed25519.PrivateKey
	log  *pooledEvidence // nil before Start
}

// CaddyModule returns the Caddy module information.
func (*Evidence) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "robots_policy.recorders.evidence", New: func() caddy.Module { return new(Evidence) }}
}

// evidenceLogs are the open logs by directory. A log outlives reloads, and must not be
// open twice.
var evidenceLogs = caddy.NewUsagePool()

type pooledEvidence struct {
	*evidence.Log
	users Latest[Evidence]
}

// Destruct implements caddy.Destructor.
func (p *pooledEvidence) Destruct() error { return p.Close() }

// Provision checks the settings and reads the key.
func (e *Evidence) Provision(caddy.Context) (err error) {
	if e.Directory == "" {
		return fmt.Errorf("evidence needs a directory")
	}
	if e.Days < 0 {
		return fmt.Errorf("invalid days %d: must be 1 or more", e.Days)
	}
	if e.Key != "" {
		if e.key, err = evidence.ReadKey(e.Key); err != nil {
			return err
		}
	}
	e.name, err = filepath.Abs(e.Directory)
	return err
}

// Start opens the log, or changes its settings if the configuration before has it open.
func (e *Evidence) Start() error {
	v, loaded, err := evidenceLogs.LoadOrNew(e.name, func() (caddy.Destructor, error) {
		l, err := evidence.Open(e.name, e.options())
		return &pooledEvidence{Log: l}, err
	})
	if err != nil {
		return fmt.Errorf("opening evidence: %w", err)
	}
	e.log = v.(*pooledEvidence)
	e.log.users.Add(e)
	if loaded {
		e.log.Configure(e.key, e.Days)
	}
	return nil
}

func (e *Evidence) options() evidence.Options {
	return evidence.Options{Key: e.key, Days: e.Days, Program: "caddy-robots-policy", Report: func(err error) {
		logger := caddy.Log().Named("robots_policy.evidence")
		if err != nil {
			logger.Error("writing evidence failed; events are lost until it works again", zap.Error(err))
		} else {
			logger.Info("writing evidence works again")
		}
	}}
}

// Cleanup closes the log if no other configuration has it.
func (e *Evidence) Cleanup() error {
	if e.log == nil {
		return nil
	}
	e.log.users.Remove(e)
	if other := e.log.users.Get(); other != nil {
		e.log.Configure(other.key, other.Days)
	}
	_, err := evidenceLogs.Delete(e.name)
	return err
}

// UnmarshalCaddyfile sets up the recorder from Caddyfile tokens. Syntax:
//
//	evidence <directory> {
//	    key  <file>
//	    days <number>
//	}
func (e *Evidence) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next()
	if !d.AllArgs(&e.Directory) {
		return d.Err("evidence takes one argument, a directory")
	}
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		var value string
		switch name := d.Val(); name {
		case "key":
			if !d.AllArgs(&e.Key) {
				return d.Err("key takes one argument, a file")
			}
		case "days":
			var err error
			if !d.AllArgs(&value) {
				return d.Err("days takes one argument, a number")
			}
			if e.Days, err = strconv.Atoi(value); err != nil || e.Days < 1 {
				return d.Errf("invalid days %q: must be a number of 1 or more", value)
			}
		default:
			return d.Errf("unrecognized option '%s': must be key or days", name)
		}
	}
	return nil
}

// Record implements activity.Recorder.
func (e *Evidence) Record(v activity.Visit) { e.log.Record(v) }

// Dropped is how many visits found the queue full.
func (e *Evidence) Dropped() uint64 { return e.log.Dropped() }

// PublishNow implements activity.OrderedPublisher.
func (e *Evidence) PublishNow(p activity.Publication) {
	e.log.Log.Publish(p.Kind, p.Version, p.Host, p.Name, p.Text)
}

var (
	_ caddy.Provisioner         = (*Evidence)(nil)
	_ caddy.CleanerUpper        = (*Evidence)(nil)
	_ caddyfile.Unmarshaler     = (*Evidence)(nil)
	_ activity.OrderedPublisher = (*Evidence)(nil)
)
