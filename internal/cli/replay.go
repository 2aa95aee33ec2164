// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/robotspolicy/caddy-robots-policy/activity/accesslog"
	"github.com/robotspolicy/caddy-robots-policy/activity/replay"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

// replayFlags are the flags of replay as they are given.
type replayFlags struct {
	against, format, host, since, until, html, store string
	json                                             bool
}

func replayCommand() *cobra.Command {
	var f replayFlags
	cmd := Command("replay NEW [--against OLD] LOG...|--store DIR", "Shows what a policy would have done to real traffic",
		func(cmd *cobra.Command, args []string) (int, error) { return f.run(cmd, args) })
	cmd.Long = `
Decides every request of access logs as the policy file NEW would have: who would
have been refused, by which rule, how many of them were verified, and which search
engines are among them. With --against, compares NEW with the policy file OLD.

Logs are Caddy's JSON, or the Common or Combined format of Apache and nginx; plain,
gzip or zstd; files, globs in quotes, or - for the standard input.

With --store, reads the totals that the server stores (the option activity of
robots_policy) instead of logs, or beside them.

A client is verified by the address lists that came with this program, or by what
Caddy had logged. The server is taken to have "enforce block", the default.

The exit code is 0 on success, 1 if a policy file has an error, and 2 if the
command cannot be carried out as given.`
	cmd.Example = `  caddy robots-policy replay new.yaml --against site-policy.yaml /var/log/caddy/access.log
  caddy robots-policy replay new.yaml --html report.html '/var/log/nginx/access.log*'
  caddy robots-policy replay new.yaml --store /var/lib/caddy/activity --since 7d`
	flags := cmd.Flags()
	flags.StringVar(&f.against, "against", "", "the policy file to compare with, such as the one that is live")
	flags.StringVar(&f.store, "store", "", "read the activity store in this directory")
	flags.StringVar(&f.format, "format", "", `the format of the logs: caddy, common, combined, vhost_combined, or a log format of nginx or Apache (default: found from each file's first lines)`)
	flags.StringVar(&f.host, "host", "", "the host of logs that do not name one")
	flags.StringVar(&f.since, "since", "", "leave out requests before this day or time, such as 2026-11-22 or 2026-11-22T10:00:00Z, or older than a duration such as 168h")
	flags.StringVar(&f.until, "until", "", "leave out requests from this day or time on")
	flags.StringVar(&f.html, "html", "", "write the report as one HTML page to this file")
	flags.BoolVar(&f.json, "json", false, "print the report as JSON")
	return cmd
}

func (f *replayFlags) run(cmd *cobra.Command, args []string) (int, error) {
	switch {
	case len(args) == 0:
		return ExitUsage, argumentsError(args, "NEW LOG...")
	case len(args) == 1 && f.store == "":
		return ExitUsage, fmt.Errorf("no requests to replay for %s: add access logs, or --store with the folder of the activity store", args[0])
	}
	o := replay.Options{Host: f.host, Stdin: cmd.InOrStdin(), Progress: new(atomic.Int64)}
	var code int
	var err error
	if o.New, code, err = loadForReplay(cmd, args[0]); o.New == nil {
		return code, err
	}
	if f.against != "" {
		if o.Old, code, err = loadForReplay(cmd, f.against); o.Old == nil {
			return code, err
		}
	}
	if f.format != "" {
		if o.Parser, err = accesslog.ParseFormat(f.format); err != nil {
			return ExitUsage, err
		}
	}
	if o.Since, err = parseTime("--since", f.since); err != nil {
		return ExitUsage, err
	}
	if o.Until, err = parseTime("--until", f.until); err != nil {
		return ExitUsage, err
	}
	if o.Files, err = accesslog.Expand(args[1:]); err != nil {
		return ExitUsage, err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if f.store != "" {
		_, closeStore, err := useStore(ctx, f.store, &o)
		if err != nil {
			return ExitUsage, err
		}
		defer func() { _ = closeStore() }() // only read
	}
	endProgress := showProgress(cmd.ErrOrStderr(), o.Progress, accesslog.Size(o.Files))
	report, err := replay.Run(ctx, o)
	endProgress()
	if err != nil {
		return ExitUsage, err
	}
	return caddy.ExitCodeSuccess, f.write(cmd, report)
}

// loadForReplay loads a policy. Of a file with errors only the diagnostics are
// printed; warnings do not matter here.
func loadForReplay(cmd *cobra.Command, name string) (*site.Site, int, error) {
	data, err := readFile(name)
	if err != nil {
		return nil, ExitUsage, err
	}
	s, ds := site.Load(name, data, robotsserve.ServeOptions{})
	if s == nil {
		out := cmd.ErrOrStderr()
		return nil, exitCode(ds), ds.Write(out, colored(out))
	}
	return s, 0, nil
}

func (f *replayFlags) write(cmd *cobra.Command, r *replay.Report) error {
	if f.html != "" {
		out, err := os.Create(f.html)
		if err != nil {
			return err
		}
		if err := errors.Join(r.WriteHTML(out), out.Close()); err != nil {
			return err
		}
	}
	out := cmd.OutOrStdout()
	if f.json {
		return writeJSON(out, r)
	}
	return r.WriteText(out, colored(out))
}

// parseTime reads a day, a time, or a duration back from now.
func parseTime(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if t, err := time.ParseInLocation(time.DateOnly, text, time.Local); err == nil {
		return t, nil
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	if d, err := caddy.ParseDuration(text); err == nil && d > 0 {
		return time.Now().Add(-d), nil
	}
	return time.Time{}, fmt.Errorf("invalid %s %q: must be a day such as 2026-11-22, a time such as 2026-11-22T10:00:00Z, or a duration such as 7d", flag, text)
}

// showProgress draws how much was read, on a terminal only, until the function that
// it returns is called.
func showProgress(w io.Writer, done *atomic.Int64, total int64) (end func()) {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) || total == 0 {
		return func() {}
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	began := time.Now()
	go func() {
		defer close(stopped)
		ticker := time.NewTicker(200 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-stop:
				fmt.Fprint(w, "\r\x1b[K")
				return
			case <-ticker.C:
				fmt.Fprint(w, "\r\x1b[K"+progressLine(done.Load(), total, time.Since(began)))
			}
		}
	}()
	return func() { close(stop); <-stopped }
}

func progressLine(done, total int64, passed time.Duration) string {
	const mb = 1 << 20
	rate := float64(done) / max(passed.Seconds(), 0.001)
	left := "?"
	if rate > 0 {
		left = time.Duration(float64(total-done) / rate * float64(time.Second)).Round(time.Second).String()
	}
	return fmt.Sprintf("%3d %%  %d of %d MB  %.0f MB/s  %s left", min(100, 100*done/total), done/mb, total/mb, rate/mb, left)
}
