// SPDX-License-Identifier: Apache-2.0

package recorders

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"math"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/certmagic"
	"go.uber.org/zap"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/activity/evidence"
	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/block"
	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/optional"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/aside"
	"github.com/robotspolicy/caddy-robots-policy/site"
	"github.com/robotspolicy/caddy-robots-policy/source"
)

func init() { caddy.RegisterModule(new(Evidence)) }

// Evidence writes an event log that shows which robots.txt and policy were published, which crawlers read them, and
// which requests violated them. `caddy robots-policy verify-evidence` checks that the log was not changed.
type Evidence struct {
	// The directory of the log. Only one server at a time can write to it.
	Directory string `json:"directory,omitempty"`

	// A file with an Ed25519 private key (PEM), which signs the log as it is written. Make one with
	// `openssl genpkey -algorithm ed25519`. Without a key, the log is not signed.
	Key string `json:"key,omitempty"`

	// The address of a time-stamping authority (RFC 3161). It stamps the log once in each hour in which new lines are
	// written. Default: no time stamps.
	Timestamps string `json:"timestamps,omitempty"`

	// A key in Caddy's storage, such as `storage:robots_policy/evidence/web-1`. Once an hour, the server stores the
	// number and hash of the log's last line there. If the log is replaced by an older copy, its last line comes before
	// the stored line, so the server detects the replacement. Each server needs its own key. Default: none.
	Copy string `json:"copy,omitempty"`

	// Files of the log are deleted after this number of days. Default: 396.
	Days int `json:"days,omitempty"`

	name string                                    // key in the pool: the directory
	log  *optional.Shared[Evidence, *evidence.Log] // nil before Start
	lost evidence.Omissions                        // events left out while the log was not open
	stop chan struct{}                             // closed to end the watch

	storage certmagic.Storage // the storage that contains copyKey
	copyKey string            // key for the copy of the last line; "" if there is no copy
}

func (*Evidence) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "robots_policy.recorders.evidence", New: func() caddy.Module { return new(Evidence) }}
}

// evidenceLogs holds the logs by directory. A log stays open when Caddy is reloaded, and must not be opened twice.
var evidenceLogs = optional.NewPool("evidence", optional.PoolFuncs[Evidence, *evidence.Log]{
	Open: func(e *Evidence, o *optional.Opening, before error) (*evidence.Log, error) {
		key, err := e.readKey()
		if err != nil {
			return nil, err
		}
		var putAside string
		if damaged, ok := errors.AsType[*evidence.DamagedError](before); ok {
			name, err := aside.Put(time.Now(), damaged.File, damaged.File+evidence.SignatureSuffix, damaged.File+evidence.TimestampSuffix)
			if err != nil {
				return nil, err
			}
			putAside = filepath.Base(name)
		}
		return evidence.Open(e.name, evidence.Options{
			Key: key, Authority: e.Timestamps, Days: e.Days, Program: "caddy-robots-policy", Damaged: putAside, Report: func(reason string, err error) {
				if reason == evidence.WriteFailed {
					o.Report(err)
				} else {
					caddy.Log().Named("robots_policy.evidence").Error("there is a problem with the evidence log", zap.String("reason", reason), zap.Error(err))
				}
			},
		})
	},
	Opened: running.Changed,
	Configure: func(e *Evidence, l *evidence.Log) error {
		key, err := e.readKey()
		if err == nil {
			l.Configure(evidence.Options{Key: key, Authority: e.Timestamps, Days: e.Days})
		}
		return err
	},
})

// Provision checks the settings.
func (e *Evidence) Provision(ctx caddy.Context) (err error) {
	if e.Directory == "" {
		return errors.New("evidence needs a directory")
	}
	if e.Days < 0 {
		return fmt.Errorf("invalid days %d: must be 1 or more", e.Days)
	}
	if u, err := url.Parse(e.Timestamps); e.Timestamps != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		return fmt.Errorf("invalid timestamps %q: must be the address of a time-stamping authority, such as http://timestamp.example.com/", e.Timestamps)
	}
	if e.Copy != "" {
		if !strings.HasPrefix(e.Copy, source.StoragePrefix) {
			return fmt.Errorf("invalid copy %q in the evidence block: must be a key in Caddy's storage, such as storage:robots_policy/evidence/web-1", e.Copy)
		}
		if e.copyKey, err = source.StorageKey(e.Copy); err != nil {
			return fmt.Errorf("copy: %w", err)
		}
		e.storage = ctx.Storage()
	}
	if e.name, err = filepath.Abs(e.Directory); err != nil {
		return err
	}
	if optional.Validating() {
		_, err = e.readKey()
	}
	return err
}

// readKey reads the private key, or returns nil if there is none.
func (e *Evidence) readKey() (ed25519.PrivateKey, error) {
	if e.Key == "" {
		return nil, nil
	}
	key, err := evidence.ReadKey(e.Key)
	if err != nil {
		return nil, fmt.Errorf("reading the key of evidence: %w", err)
	}
	return key, nil
}

// PrivateKey returns the key that signs the log, or nil if there is none.
func (e *Evidence) PrivateKey() (ed25519.PrivateKey, error) { return e.readKey() }

// Start opens the log in the background. If the previous configuration has opened it, Start only changes its
// settings.
func (e *Evidence) Start() error {
	e.log, e.stop = evidenceLogs.Join(e.name, e), make(chan struct{})
	go e.watch(e.stop)
	return nil
}

// Cleanup closes the log if no other configuration uses it.
func (e *Evidence) Cleanup() error {
	if e.log == nil {
		return nil
	}
	close(e.stop)
	return e.log.Leave(e)
}

// UnmarshalCaddyfile sets up the recorder from Caddyfile tokens. Syntax:
//
//	evidence <directory> {
//	    key        <file>
//	    timestamps <url>
//	    copy       <storage:key>
//	    days       <number>
//	}
func (e *Evidence) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next()
	if !d.AllArgs(&e.Directory) {
		return d.Err("evidence takes one argument, a directory")
	}
	return block.Read(d, block.Text("key", "a file", &e.Key), block.Text("timestamps", "the address of an authority", &e.Timestamps),
		block.Text("copy", "a key in Caddy's storage", &e.Copy), block.Number("days", &e.Days, 1, math.MaxInt32, "a number of 1 or more"))
}

func (e *Evidence) Record(v activity.Request) {
	if l, ok := e.log.Get(); ok {
		l.Omit(&e.lost)
		l.Record(v)
	} else {
		e.lost.Add(&v, evidence.NotOpen)
	}
}

// Dropped returns the number of events that were left out of the log.
func (e *Evidence) Dropped() uint64 {
	if l, ok := e.log.Get(); ok {
		l.Omit(&e.lost)
		return l.Dropped()
	}
	return e.lost.Total()
}

// Troubles returns the time of the last problem of each kind since the log was opened.
func (e *Evidence) Troubles() map[string]time.Time {
	if l, ok := e.log.Get(); ok {
		return l.Troubles()
	}
	return nil
}

func (*Evidence) Ordered() {}

// Publish implements activity.Publisher. If the log is not open, it ignores p, because the log gets all publications
// again when it opens.
func (e *Evidence) Publish(p *activity.Publication) {
	e.log.With(func(l *evidence.Log) { l.Publish(p) })
}

func (e *Evidence) Serve(p *activity.Publication, d site.Document) {
	e.log.With(func(l *evidence.Log) { l.Serve(p, d) })
}

func (e *Evidence) End(p *activity.Publication) {
	e.log.With(func(l *evidence.Log) { l.End(p) })
}

// Sign records that a person acted on a version of a policy. action names the action.
func (e *Evidence) Sign(action, by, note, name, policy string) {
	e.log.With(func(l *evidence.Log) { l.Sign(action, by, note, name, policy) })
}

var (
	_ caddy.Provisioner         = (*Evidence)(nil)
	_ caddy.CleanerUpper        = (*Evidence)(nil)
	_ caddyfile.Unmarshaler     = (*Evidence)(nil)
	_ activity.OrderedPublisher = (*Evidence)(nil)
)
