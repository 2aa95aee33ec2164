// SPDX-License-Identifier: Apache-2.0

package recorders

import (
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/robotspolicy/caddy-robots-policy/activity"
)

// Module is a recorder in the namespace robots_policy.recorders.
type Module interface {
	caddy.Module
	activity.Recorder
}

func init() { caddy.RegisterModule(new(VisitsLog)) }

// VisitsLog writes each visit as one line to the log `http.robots_policy.visits`.
// The fields are those of activity.Visit; docs/analytics.md lists them.
type VisitsLog struct {
	logger *zap.Logger
	queue  *activity.Queue[activity.Visit]
}

func (*VisitsLog) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "robots_policy.recorders.visits_log", New: func() caddy.Module { return new(VisitsLog) }}
}

// visitsQueue is how many visits may wait for the log's writer.
const visitsQueue = 1 << 13

// Provision starts the queue.
func (l *VisitsLog) Provision(ctx caddy.Context) error {
	l.logger = ctx.Logger(visitsLogger{})
	l.queue = activity.NewQueue(visitsQueue, time.Hour, l.write, func() {})
	return nil
}

// visitsLogger stands for the name of the log, which users include in a log of their own.
type visitsLogger struct{}

// CaddyModule returns the name as that of a module.
func (visitsLogger) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.robots_policy.visits", New: func() caddy.Module { return visitsLogger{} }}
}

// Cleanup writes what is queued.
func (l *VisitsLog) Cleanup() error {
	if l.queue != nil {
		l.queue.Close()
	}
	return nil
}

// UnmarshalCaddyfile sets up the recorder from Caddyfile tokens. Syntax:
//
//	visits_log
func (*VisitsLog) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next()
	if d.NextArg() {
		return d.ArgErr()
	}
	return nil
}

func (l *VisitsLog) Record(v activity.Visit) { l.queue.Record(v) }

// Dropped is how many visits found the queue full.
func (l *VisitsLog) Dropped() uint64 { return l.queue.Dropped() }

func (l *VisitsLog) write(v activity.Visit) {
	if c := l.logger.Check(zapcore.InfoLevel, "visit"); c != nil {
		c.Write(zap.Inline(visitFields(v)))
	}
}

// visitFields are the fields of a log line. Empty ones are left out, except those that every line has.
type visitFields activity.Visit

func (v visitFields) MarshalLogObject(e zapcore.ObjectEncoder) error {
	e.AddInt("version", activity.Version)
	for _, f := range [][2]string{
		{"host", v.Host}, {"path", v.Path}, {"crawler", v.Crawler}, {"kind", v.Kind}, {"identity", string(v.Identity)}, {"decision", string(v.Decision)}, {"policy", v.Policy},
	} {
		e.AddString(f[0], f[1])
	}
	e.AddInt("status", v.Status)
	e.AddInt64("bytes", v.Bytes)
	e.AddTime("time", v.Time)
	for _, f := range [][2]string{{"rule", v.Rule}, {"robots", v.Robots}, {"publication", v.Publication}, {"number", v.Number}, {"proof", v.Proof}, {"document", v.Document}, {"document_version", v.DocumentVersion}} {
		if f[1] != "" {
			e.AddString(f[0], f[1])
		}
	}
	for _, f := range []struct {
		name  string
		value bool
	}{{"query_omitted", v.QueryOmitted}, {"robots_txt", v.RobotsTxt}, {"violation", v.Violation}} {
		if f.value {
			e.AddBool(f.name, true)
		}
	}
	return nil
}

var (
	_ caddy.Provisioner     = (*VisitsLog)(nil)
	_ caddy.CleanerUpper    = (*VisitsLog)(nil)
	_ caddyfile.Unmarshaler = (*VisitsLog)(nil)
)
