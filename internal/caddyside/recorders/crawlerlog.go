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

// Module is a Caddy module in the namespace robots_policy.recorders.
type Module interface {
	caddy.Module
	activity.Recorder
}

func init() { caddy.RegisterModule(new(CrawlerLog)) }

// CrawlerLog writes a line for each request to the log `http.robots_policy.crawler_log`. A line has the fields of
// activity.Request. docs/reference/crawler-log.md describes them.
type CrawlerLog struct {
	logger *zap.Logger
	queue  *activity.Queue[activity.Request]
}

func (*CrawlerLog) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "robots_policy.recorders.crawler_log", New: func() caddy.Module { return new(CrawlerLog) }}
}

// visitsQueue is the number of requests that can wait for the writer of the log.
const visitsQueue = 1 << 13

// Provision starts the queue.
func (l *CrawlerLog) Provision(ctx caddy.Context) error {
	l.logger = ctx.Logger(crawlerLogger{})
	l.queue = activity.NewQueue(visitsQueue, time.Hour, l.write, func() {})
	return nil
}

// crawlerLogger gives the log its name, which users write in their log configuration.
type crawlerLogger struct{}

// CaddyModule returns the name of the log in the form of a module name.
func (crawlerLogger) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.robots_policy.crawler_log", New: func() caddy.Module { return crawlerLogger{} }}
}

// Cleanup writes all queued requests.
func (l *CrawlerLog) Cleanup() error {
	if l.queue != nil {
		l.queue.Close()
	}
	return nil
}

// UnmarshalCaddyfile sets up the recorder from Caddyfile tokens. Syntax:
//
//	crawler_log
func (*CrawlerLog) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next()
	if d.NextArg() {
		return d.ArgErr()
	}
	return nil
}

func (l *CrawlerLog) Record(v activity.Request) { l.queue.Record(v) }

// Dropped returns the number of requests that were not logged because the queue was full.
func (l *CrawlerLog) Dropped() uint64 { return l.queue.Dropped() }

func (l *CrawlerLog) write(v activity.Request) {
	if c := l.logger.Check(zapcore.InfoLevel, "request"); c != nil {
		c.Write(zap.Inline(visitFields(v)))
	}
}

// visitFields writes the fields of a log line. It leaves out empty fields, unless every line has the field.
type visitFields activity.Request

func (v visitFields) MarshalLogObject(e zapcore.ObjectEncoder) error {
	e.AddInt("format", activity.Version)
	for _, f := range [][2]string{
		{"host", v.Host}, {"path", v.Path}, {"crawler", v.Crawler}, {"category", v.Category}, {"identity", string(v.Identity)}, {"decision", string(v.Decision)}, {"policy", v.Policy},
	} {
		e.AddString(f[0], f[1])
	}
	e.AddInt("status", v.Status)
	e.AddInt64("bytes", v.Bytes)
	e.AddTime("time", v.Time)
	for _, f := range [][2]string{{"rule", v.Rule}, {"robots", v.Robots}, {"form", v.Form}, {"version_hash", v.Publication}, {"version", v.Number}, {"proof", v.Proof}, {"document", v.Document}, {"document_version", v.DocumentVersion}} {
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
	_ caddy.Provisioner     = (*CrawlerLog)(nil)
	_ caddy.CleanerUpper    = (*CrawlerLog)(nil)
	_ caddyfile.Unmarshaler = (*CrawlerLog)(nil)
)
