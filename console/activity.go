// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/dustin/go-humanize"
	"go.uber.org/zap"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/activity/replay"
	"github.com/robotspolicy/caddy-robots-policy/activity/store"
	"github.com/robotspolicy/caddy-robots-policy/claim"
	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/block"
	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/optional"
	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/recorders"
	"github.com/robotspolicy/caddy-robots-policy/site"
	"github.com/robotspolicy/caddy-robots-policy/site/compare"
	"github.com/robotspolicy/caddy-robots-policy/source"
)

func init() { caddy.RegisterModule(new(Activity)) }

// Activity stores the totals of crawlers' requests in an SQLite database. It does not store client addresses.
type Activity struct {
	// The directory of the database. Only one server at a time may write to the database.
	Directory string `json:"directory,omitempty"`

	// The maximum number of database rows in each hour, and in each day, that hold the totals of a single path.
	// Requests for further paths are summed under `(other)`. Default: 50000.
	RowsPerHour int `json:"rows_per_hour,omitempty"`

	// How long hourly totals are stored. Default: 90d.
	Hours caddy.Duration `json:"hours,omitempty"`

	// How long daily totals are stored. Default: 396d.
	Days caddy.Duration `json:"days,omitempty"`

	// The maximum size of the database in bytes. If the database reaches this size, the oldest totals are deleted,
	// beginning with the totals of single paths. Default: 512 MiB.
	MaxBytes int64 `json:"max_bytes,omitempty"`

	// The maximum number of requests in the last seven days that search engines may lose under a new version of a
	// policy. If search engines would lose more, the new version is not loaded. A request is lost if it is newly
	// blocked, limited or disallowed. It is also lost if its page may no longer be indexed, or may only be shown with a
	// shorter snippet or without a link. Losses that the rules call `intended` are not counted. Default: no limit.
	MaxSearchLoss *int64 `json:"max_search_loss,omitempty"`

	// The names of gaps in the recorded traffic that MaxSearchLoss accepts, such as not-recorded. If the search losses
	// cannot be judged because of a gap, the error message names the gap. Default: none.
	AcceptGaps []string `json:"accept_gaps,omitempty"`

	// The ClickHouse database of a fleet of servers. Each server sends its totals to this database, and also keeps its
	// own database. Default: none.
	ClickHouse *ClickHouse `json:"fleet_database,omitempty"`

	// The server's name in a fleet. Default: the name of the host.
	Node string `json:"name,omitempty"`

	directory string                                // absolute
	store     *optional.Shared[Activity, openStore] // nil before Start
	lost      atomic.Uint64                         // number of requests that arrived while the store was not open
	counted   atomic.Uint64                         // number of the requests in lost that the store has counted
}

// CaddyModule returns the Caddy module information.
func (*Activity) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "robots_policy.recorders.activity", New: func() caddy.Module { return new(Activity) }}
}

// stores holds the open stores, keyed by directory. A store stays open during reloads, and must not be opened twice.
var stores = optional.NewPool("activity", optional.PoolFuncs[Activity, openStore]{
	Open:   open,
	Opened: recorders.Running().Changed,
	Configure: func(a *Activity, s openStore) error {
		s.Configure(a.options(nil))
		s.SendTo(a.fleet(s.sending.Report))
		return nil
	},
})

// openStore holds an open store and a reader of the store.
type openStore struct {
	*store.Store
	reader  *store.Reader
	cancel  context.CancelFunc // cancels a running check
	check   func()             // looks for damage, unless another call is still looking
	sending *optional.State
}

// open opens a store. before is the error of the previous attempt. If that error says that the database is damaged,
// open renames the database, and creates a new one.
func open(a *Activity, o *optional.Opening, before error) (s openStore, err error) {
	if errors.Is(before, store.ErrDamaged) {
		name, err := store.PutAside(a.directory, time.Now())
		if err != nil {
			return s, err
		}
		caddy.Log().Named("robots_policy.activity").Warn("the damaged activity database was renamed, and Caddy starts a new one", zap.String("damaged", name))
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	if s.Store, err = store.Open(ctx, a.directory, a.options(o)); err != nil {
		cancel()
		return s, err
	}
	s.reader = s.Store.Reader()
	var checking sync.Mutex
	s.check = func() {
		if !checking.TryLock() {
			return
		}
		defer checking.Unlock()
		if err := s.reader.Check(ctx); errors.Is(err, store.ErrDamaged) {
			o.Broken(err)
		}
	}
	go s.check()
	s.sending = optional.NewState("fleet_database")
	s.SendTo(a.fleet(s.sending.Report))
	return s, nil
}

// doubtStore is called after a failed read. It starts a check in the background that finds out whether the database is
// damaged.
func doubtStore() {
	if a := runningActivity(); a != nil {
		a.store.With(func(s openStore) { go s.check() })
	}
}

// Close implements io.Closer.
func (s openStore) Close() error {
	s.cancel()
	defer s.sending.Remove()
	return s.Store.Close()
}

// Provision checks the settings.
func (a *Activity) Provision(caddy.Context) error {
	if a.Directory == "" {
		return errors.New("activity needs a directory")
	}
	if a.RowsPerHour < 0 || a.Hours < 0 || a.Days < 0 || a.MaxBytes < 0 || a.MaxSearchLoss != nil && *a.MaxSearchLoss < 0 {
		return errors.New("invalid activity: rows_per_hour, hours, days, max_bytes and max_search_loss must not be negative")
	}
	if err := a.ClickHouse.check(); err != nil {
		return err
	}
	dir, err := filepath.Abs(a.Directory)
	if a.directory = dir; err != nil || !optional.Validating() {
		return err
	}
	r, err := store.OpenReader(context.Background(), dir)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
		// Caddy can create the directory, and the user who validates the configuration may not be the user who runs
		// Caddy
		return nil
	case err != nil:
		return err
	}
	return errors.Join(r.Check(context.Background()), r.Close())
}

// Start opens the store in the background. If the previous configuration has already opened the store of this
// directory, the open store continues with the new settings.
func (a *Activity) Start() error {
	a.store = stores.Join(a.directory, a)
	return nil
}

// options returns the options of the database. Failures of the database are reported to o.
func (a *Activity) options(o *optional.Opening) store.Options {
	return store.Options{
		RowsPerHour: a.RowsPerHour, Hours: time.Duration(a.Hours), Days: time.Duration(a.Days), MaxBytes: a.MaxBytes,
		Report: func(err error) {
			if errors.Is(err, store.ErrDamaged) {
				o.Broken(err)
			} else {
				o.Report(err)
			}
		},
		Shrinking: func(size, limit int64) {
			caddy.Log().Named("robots_policy.activity").Warn("the activity database has reached max_size, so the oldest totals with paths are deleted; to keep them longer, set a larger max_size",
				zap.Int64("size", size), zap.Int64("max_size", limit))
		},
	}
}

// Cleanup closes the store if no other configuration uses it.
func (a *Activity) Cleanup() error {
	if a.store == nil {
		return nil
	}
	return a.store.Leave(a)
}

// UnmarshalCaddyfile sets up the recorder from Caddyfile tokens. Syntax:
//
//	activity <directory> {
//	    rows_per_hour   <number>
//	    hours           <duration>
//	    days            <duration>
//	    max_size        <size>
//	    max_search_loss <requests>
//	    accept_gap      <name>
//	    fleet_database  <url> { ... }
//	    name            <name>
//	}
func (a *Activity) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next()
	if !d.AllArgs(&a.Directory) {
		return d.Err("activity takes one argument, a directory")
	}
	const duration = "a duration of 1h or more, such as 90d"
	return block.Read(d, block.Number("rows_per_hour", &a.RowsPerHour, 1, math.MaxInt32, "a number of 1 or more"),
		block.Duration("hours", &a.Hours, time.Hour, duration), block.Duration("days", &a.Days, time.Hour, duration),
		block.Value("max_size", "a size", func(value string) string {
			size, err := humanize.ParseBytes(value)
			if err != nil || size < 1<<20 || size > 1<<50 {
				return "a size of 1MiB or more, such as 512MiB"
			}
			a.MaxBytes = int64(size)
			return ""
		}),
		block.Value("max_search_loss", "a number", func(value string) string {
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil || n < 0 {
				return "a number of requests, such as 0"
			}
			a.MaxSearchLoss = &n
			return ""
		}),
		block.Value("accept_gap", "the name of a gap", func(value string) string {
			a.AcceptGaps = append(a.AcceptGaps, value)
			return ""
		}),
		block.Nested("fleet_database", func(d *caddyfile.Dispenser) error {
			a.ClickHouse = new(ClickHouse)
			return a.ClickHouse.unmarshal(d)
		}),
		block.Text("name", "the name of this server", &a.Node))
}

// Record implements activity.Recorder.
func (a *Activity) Record(v activity.Request) {
	s, ok := a.store.Get()
	if !ok {
		a.lost.Add(1)
		return
	}
	if n := a.lost.Load(); n > a.counted.Load() {
		s.Missed(int64(n - a.counted.Swap(n)))
	}
	s.Record(v)
}

// Reader returns the reader of the store, or nil while the store is not open. The caller must not close the reader.
func (a *Activity) Reader() *store.Reader {
	s, _ := a.store.Get()
	return s.reader
}

// errNotOpen returns the reason why Reader returns nil.
func (a *Activity) errNotOpen() error {
	return fmt.Errorf("the activity database is not open: %w", cmp.Or(a.store.Err(), errors.New("it is being opened")))
}

// Violations implements recorders.ActivityStore.
func (a *Activity) Violations(ctx context.Context, since time.Time, skip, limit int) (*recorders.Violations, error) {
	by := []store.Dimension{store.ByCrawler, store.ByIdentity, store.ByHost, store.ByPath, store.ByDecision}
	r := a.queries("")
	if r == nil {
		return nil, a.errNotOpen()
	}
	until := time.Now().Add(time.Hour)
	rows, err := r.Totals(ctx, store.Query{From: since, To: until, By: by, Violating: true})
	if err != nil {
		return nil, err
	}
	all := &recorders.Violations{Rows: len(rows), Violations: []recorders.Violation{}}
	for i, r := range rows {
		if all.All += r.Violations; i < skip || i >= skip+limit {
			continue
		}
		v := r.Values
		all.Violations = append(all.Violations, recorders.Violation{
			Crawler: v[store.ByCrawler], Identity: v[store.ByIdentity], Host: v[store.ByHost], Path: v[store.ByPath], Decision: v[store.ByDecision],
			Requests: r.Violations,
		})
	}
	if skip+limit < len(rows) {
		all.Next = skip + limit
	}
	sums, err := r.Totals(ctx, store.Query{From: since, To: until})
	for _, s := range sums {
		all.Requests, all.Undecided = s.Requests, s.Unread
	}
	var err2 error
	all.Coverage, err2 = r.Coverage(ctx, since, until)
	return all, errors.Join(err, err2)
}

// CheckReload implements recorders.ActivityStore.
func (a *Activity) CheckReload(ctx context.Context, name string, before, after *site.Site, below site.Below, accepted []string) error {
	if a.MaxSearchLoss == nil {
		return nil
	}
	reader := a.Reader()
	if reader == nil {
		return source.UndecidedError{Err: fmt.Errorf("max_search_loss cannot be checked now: %w", a.errNotOpen())}
	}
	versions, err := reader.PolicyVersions(ctx, name)
	if err != nil {
		return source.UndecidedError{Err: fmt.Errorf("max_search_loss cannot be checked now: %w", err)}
	}
	stored := replay.OfPolicies(reader.EachRow, versions)
	if len(versions) == 0 { // crawlers have not sent requests under this policy yet, so there is nothing to replay
		stored = func(context.Context, time.Time, time.Time, func(activity.Totals) error) (claim.Coverage, error) {
			return claim.Coverage{}, nil
		}
	}
	r, err := replay.Run(ctx, replay.Options{
		New: after, Old: before, Below: below, Stored: stored, StoreName: a.directory, Since: activity.Since(time.Now(), replay.LossPeriod),
	})
	if err != nil {
		return source.UndecidedError{Err: fmt.Errorf("max_search_loss cannot be checked now: %w", err)}
	}
	c := r.Keeps(*a.MaxSearchLoss, append(slices.Clone(accepted), a.AcceptGaps...))
	unread := func(g claim.Gap) bool { return g.Name == compare.GapUnread }
	if c.Outcome() == claim.CannotBeJudged && slices.ContainsFunc(c.Gaps(), unread) { // the next request for robots.txt reads the site's own file, and then the policy can be judged
		return source.UndecidedError{Err: c.Err()}
	}
	return c.Err()
}

// Dropped returns the number of requests that were not recorded, because the queue was full or the database was not
// open.
func (a *Activity) Dropped() uint64 {
	n := a.lost.Load()
	if s, ok := a.store.Get(); ok {
		n += s.Dropped()
	}
	return n
}

// Publish implements activity.Publisher. If the database is not open, Publish is called again after the database has
// been opened.
func (a *Activity) Publish(p *activity.Publication) {
	a.publish(p, func(ctx context.Context, s *store.Store) error {
		at := time.Now()
		// The version is stored with the time when it was loaded, if this was less than a minute ago. Otherwise it is
		// stored with the current time, because it may have been loaded before this server or its database existed.
		if at.Sub(p.Time) < time.Minute && p.Time.Before(at) {
			at = p.Time
		}
		return s.Publish(ctx, p, at)
	})
}

// Serve implements activity.Publisher.
func (a *Activity) Serve(p *activity.Publication, d site.Document) {
	a.publish(p, func(ctx context.Context, s *store.Store) error { return s.Serve(ctx, p, d, time.Now()) })
}

// End implements activity.Publisher.
func (a *Activity) End(p *activity.Publication) {
	a.publish(p, func(ctx context.Context, s *store.Store) error { return s.End(ctx, p, time.Now()) })
}

func (a *Activity) publish(p *activity.Publication, record func(context.Context, *store.Store) error) {
	s, ok := a.store.Get()
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := record(ctx, s.Store); err != nil {
		caddy.Log().Named("robots_policy.activity").Error("storing the published version failed", zap.String("version", p.Label()), zap.Error(err))
	}
}

var (
	_ caddy.Provisioner     = (*Activity)(nil)
	_ caddy.CleanerUpper    = (*Activity)(nil)
	_ caddyfile.Unmarshaler = (*Activity)(nil)
	_ activity.Publisher    = (*Activity)(nil)

	_ recorders.ActivityStore = (*Activity)(nil)
)
