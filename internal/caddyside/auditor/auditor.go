// SPDX-License-Identifier: Apache-2.0

// Package auditor audits the site of a running server at intervals. If an audit finds different errors than the
// previous audit, it reports them.
package auditor

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyevents"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/robotspolicy/caddy-robots-policy/audit"
	"github.com/robotspolicy/caddy-robots-policy/claim"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

// Config configures the audits of a server's own site.
type Config struct {
	// The time between audits, at least `10m`.
	Interval caddy.Duration `json:"interval,omitempty"`

	// The public address of the site, such as `https://www.example.com/`.
	URL string `json:"url,omitempty"`
}

const (
	minInterval = 10 * time.Minute
	firstDelay  = time.Minute // gives the server time to start; a configuration replaced earlier is not audited
	event       = "robots_policy.audited"
)

// Parse reads the arguments of the Caddyfile's subdirective "audit".
func Parse(args []string) (*Config, error) {
	if len(args) != 2 {
		return nil, errors.New("audit takes an interval and the public address of the site, as in: audit 1h https://www.example.com/")
	}
	interval, err := caddy.ParseDuration(args[0])
	if err != nil {
		return nil, fmt.Errorf("invalid audit interval %q: must be a duration such as 1h", args[0])
	}
	c := &Config{caddy.Duration(interval), args[1]}
	_, err = c.address()
	return c, err
}

func (c *Config) address() (*url.URL, error) {
	if d := time.Duration(c.Interval); d < minInterval {
		return nil, fmt.Errorf("invalid audit interval %s: must be at least %s", d, minInterval)
	}
	u, err := url.Parse(c.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("invalid audit address %q: must be like https://www.example.com/", c.URL)
	}
	return u, nil
}

var (
	faults = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: "caddy", Subsystem: "robots_policy", Name: "audit_errors",
		Help: "Number of errors that the last audit of the URL found; -1 if the audit failed, or if it found no errors but could not read all pages.",
	}, []string{"url"})
	audited = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: "caddy", Subsystem: "robots_policy", Name: "audit_timestamp_seconds",
		Help: "When the last audit of the URL ended, in Unix seconds.",
	}, []string{"url"})
)

// Collectors returns the Prometheus collectors of this package.
func Collectors() []prometheus.Collector { return []prometheus.Collector{faults, audited} }

// auditor audits one address for one configuration.
type auditor struct {
	config  *Config
	address *url.URL
	logger  *zap.Logger
	emit    func(name string, data map[string]any)
	policy  func(ctx context.Context, host string) *site.Site
	merged  bool
	wait    func(context.Context, time.Duration) error
	run     func(context.Context, *url.URL, audit.Options) (*audit.Report, error)

	last string // findings of the previous audit; empty before the first audit
}

// Start audits the site at intervals until the configuration is replaced. policy returns the policy of a host, or nil.
// merged is true if robots.txt also contains rules of the upstream.
func Start(ctx caddy.Context, c *Config, merged bool, policy func(ctx context.Context, host string) *site.Site) error {
	address, err := c.address()
	if err != nil {
		return err
	}
	app, err := ctx.App("events")
	if err != nil {
		return fmt.Errorf("getting the events app: %w", err)
	}
	a := &auditor{
		config: c, address: address, logger: ctx.Logger(), policy: policy, merged: merged, wait: audit.Sleep, run: audit.Run,
		emit: func(name string, data map[string]any) { app.(*caddyevents.App).Emit(ctx, name, data) },
	}
	go a.loop(ctx)
	return nil
}

func (a *auditor) loop(ctx context.Context) {
	delay := firstDelay
	for a.wait(ctx, delay) == nil {
		delay = time.Duration(a.config.Interval)
		report, err := a.run(ctx, a.address, audit.Options{Policy: a.policy(ctx, a.address.Host), Merged: a.merged})
		if ctx.Err() != nil {
			break
		}
		a.report(report, err)
	}
	faults.DeleteLabelValues(a.config.URL)
	audited.DeleteLabelValues(a.config.URL)
	forget(a.config.URL)
}

// report sets the metrics. If the findings differ from the previous ones, it logs them and emits an event. It does not
// log anything if the first audit has no findings.
func (a *auditor) report(r *audit.Report, err error) {
	audited.WithLabelValues(a.config.URL).SetToCurrentTime()
	n, findings, failure := -1, []string{}, ""
	if err != nil {
		failure = err.Error()
	} else if findings = describe(r); r.Clean().Outcome() != claim.CannotBeJudged {
		n = r.Errors()
	}
	faults.WithLabelValues(a.config.URL).Set(float64(n))
	found := failure + strings.Join(findings, "\n")
	remember(Result{URL: a.config.URL, Time: time.Now(), Found: r, Err: err}, found == a.last)
	if found == a.last {
		return
	}
	a.last = found
	fields := []zap.Field{zap.String("url", a.config.URL), zap.Int("errors", n), zap.Strings("problems", findings)}
	switch {
	case err != nil:
		a.logger.Error("the audit could not be carried out", zap.String("url", a.config.URL), zap.Error(err))
	case n < 0:
		a.logger.Warn("the audit could not read all pages", fields...)
	case n > 0:
		a.logger.Warn("the audit found errors", fields...)
	default:
		a.logger.Info("the audit found no errors", fields...)
	}
	a.emit(event, map[string]any{"url": a.config.URL, "errors": n, "problems": findings, "error": failure})
}

// describe returns the errors and warnings of a report, and leaves out its hints.
func describe(r *audit.Report) []string {
	found := []string{}
	for _, f := range r.Findings {
		if f.Severity != audit.Hint {
			found = append(found, fmt.Sprintf("%s: %s %s: %s", f.Severity, f.Code, f.URL, f.Message))
		}
	}
	return found
}
