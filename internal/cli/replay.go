// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/spf13/cobra"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/activity/accesslog"
	"github.com/robotspolicy/caddy-robots-policy/activity/replay"
	"github.com/robotspolicy/caddy-robots-policy/claim"
	"github.com/robotspolicy/caddy-robots-policy/internal/cli/policyinput"
)

type replayFlags struct {
	against, format, host, since, until, html, store, merge string
	names                                                   map[string]string
	accept                                                  []string
	json                                                    bool
}

func replayCommand() *cobra.Command {
	var f replayFlags
	cmd := Command("replay NEW [--against OLD] LOG...|--database DIR", "Shows what a policy would have done with real traffic", f.run)
	cmd.Long = `
Applies the policy file NEW to every request in access logs. It shows which crawlers the
policy would have blocked, by which rules, and how many of the blocked requests came from
verified crawlers or search engines. With --against, it compares NEW with OLD, which is
a policy file, a robots.txt, or the URL of one.

Logs may be compressed with gzip or zstd, and have these formats:
  - Caddy's JSON or console format, also with the prefix that journald, docker,
    compose or Kubernetes writes before each line
  - the Combined and Common formats, and nginx's JSON
  - Traefik, Cloudflare Logpush, AWS ALB, CloudFront and IIS
Give files, globs in quotes, or - for the standard input. A log may have lines
in several formats. Describe other JSON with --map, and other text with --format.

With --database, the command reads the totals that the server stores (the option "activity"
of robots_policy) instead of logs, or in addition to logs.

If Caddy logged the identity of a client, the command uses this identity. It verifies other
clients with the address lists in this program. The command assumes that the server has
"enforce block", the default. Rate limits are counted as if a single server had received all
requests.

The exit code is:
  0  search engines lose nothing, or only what a rule with the key "intended" disallows
  1  search engines lose something, or a policy file has errors
  2  the command cannot run, because an argument is invalid or a file cannot be read
  3  the traffic has gaps, such as lines that could not be read, a compressed log
     that ends early, or requests without User-Agents; --accept NAME accepts a gap`
	cmd.Example = `  caddy robots-policy replay new.yaml --against site-policy.yaml /var/log/caddy/access.log
  caddy robots-policy replay new.yaml --html report.html '/var/log/nginx/access.log*'
  caddy robots-policy replay new.yaml --map time=@timestamp,ip=client.ip,uri=url.original,agent=user_agent.original app.log
  journalctl -u caddy | caddy robots-policy replay new.yaml --against https://www.example.com/robots.txt -
  caddy robots-policy replay new.yaml --database /var/lib/caddy/activity --since 7d`
	flags := cmd.Flags()
	flags.StringVar(&f.against, "against", "", "compare NEW with this policy file or robots.txt (a file or a URL), such as the one that the site uses now")
	flags.StringVar(&f.store, "database", "", "read the activity database in this directory, or the ClickHouse at this address")
	flags.StringVar(&f.format, "format", "", `the format of the logs: json, common, combined, vhost_combined, alb, a log_format of nginx or a LogFormat of Apache (default: detected for each line)`)
	flags.StringToStringVar(&f.names, "map", nil, "which fields of JSON logs to read, as `PART=FIELD,...`, such as ip=client.ip; PART is time, ip, host, uri, request, agent or size")
	flags.Lookup("map").DefValue = "" // otherwise the help text shows []
	flags.StringVar(&f.host, "host", "", "the host to assume for log lines that do not name one")
	flags.StringVar(&f.since, "since", "", "leave out requests before this day or time, or older than this duration: 2026-11-22, 2026-11-22T10:00:00Z or 168h")
	flags.StringVar(&f.until, "until", "", "leave out requests at or after this day or time")
	flags.StringVar(&f.html, "html", "", "write the report as one HTML page to this file")
	flags.StringSliceVar(&f.accept, "accept", nil, "give a result despite these gaps in the traffic data, such as unreadable-lines; the report has the name of each gap")
	mergeFlag(cmd, &f.merge)
	flags.BoolVar(&f.json, "json", false, "print the report as JSON")
	return cmd
}

func (f *replayFlags) run(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return argumentsError(args, "NEW LOG...")
	case len(args) == 1 && f.store == "":
		return fmt.Errorf("no requests to replay for %s: add access logs, or --database with the folder of the activity database", args[0])
	}
	inputs := append([]string{f.against}, args...)
	if i := slices.Index(inputs, accesslog.Stdin); i >= 0 && slices.Contains(inputs[i+1:], accesslog.Stdin) {
		return errors.New("the standard input (-) is named twice; use it for the policy, --against or the log, but only once")
	}
	o := replay.Options{Accept: f.accept, Host: f.host, Stdin: cmd.InOrStdin()}
	below, err := readBelow(cmd, f.merge)
	if err != nil {
		return err
	}
	if o.New, err = loadValid(cmd, args[0], below); err != nil {
		return err
	}
	o.Below = belowOf(below)
	if f.against != "" {
		old, err := policyinput.Read(cmd.Context(), f.against, cmd.InOrStdin())
		if errors.Is(err, policyinput.ErrInvalid) {
			return failure{err}
		}
		if err != nil {
			return err
		}
		writeNotes(cmd.ErrOrStderr(), old.Name, old.Notes)
		o.Old = old.Site
	}
	switch {
	case f.format != "" && f.names != nil:
		return errors.New("--map is for JSON, and --format for other logs; give only one of them")
	case f.names != nil:
		if o.Parser, err = accesslog.NewJSON(f.names); err != nil {
			return fmt.Errorf("--map: %w", err)
		}
	case f.format != "":
		if o.Parser, err = accesslog.ParseFormat(f.format); err != nil {
			return err
		}
	}
	if o.Since, err = parseTime("--since", f.since); err != nil {
		return err
	}
	if o.Until, err = parseTime("--until", f.until); err != nil {
		return err
	}
	if o.Files, err = accesslog.Expand(args[1:]); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if f.store != "" {
		s, err := useStore(ctx, f.store, &o)
		if err != nil {
			return err
		}
		defer s.Close()
	}
	found, err := replay.Run(ctx, o)
	if err != nil {
		return err
	}
	if f.html != "" {
		page, err := os.Create(f.html)
		if err != nil {
			return err
		}
		if err := errors.Join(found.WriteHTML(page), page.Close()); err != nil {
			return err
		}
	}
	if err := printResult(cmd, f.json, found, func(w io.Writer) error { return found.WriteText(w, colored(w)) }); err != nil {
		return err
	}
	switch {
	case found.Search.Outcome() == claim.Fails:
		return errReported
	case !found.Search.Holds() || slices.ContainsFunc(found.Coverage.Gaps, func(g claim.Gap) bool { return !slices.Contains(f.accept, g.Name) }):
		return errUndecided
	}
	return nil
}

// errUndecided makes the command exit with the code 3. This code means that the result may be wrong because some data
// is missing.
const errUndecided = exitError(3)

// Store reads an activity database. It is an interface, so that this package does not import activity/store, which
// links SQLite. Only the package console and its subcommands import that package.
type Store interface {
	EachRow(ctx context.Context, from, to time.Time, each func(activity.Totals) error) (claim.Coverage, error)
	PolicyVersions(ctx context.Context, name string) ([]string, error)
	Close() error
}

var openStore func(ctx context.Context, dir string) (Store, error)

// RegisterStore sets the function that opens a store. It must be called from an init function.
func RegisterStore(open func(ctx context.Context, dir string) (Store, error)) { openStore = open }

// useStore opens the store in a directory and sets it as the source of a replay. The caller must close the store after
// the replay.
func useStore(ctx context.Context, dir string, o *replay.Options) (Store, error) {
	if openStore == nil {
		return nil, errors.New("this build of Caddy cannot read an activity database: build it with the package github.com/robotspolicy/caddy-robots-policy/console")
	}
	s, err := openStore(ctx, dir)
	if err != nil {
		return nil, err
	}
	o.Stored, o.StoreName = s.EachRow, dir
	return s, nil
}

// parseTime parses a day, a time, or a duration before the present time.
func parseTime(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if t, err := time.Parse(time.DateOnly, text); err == nil {
		return t, nil
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	if d, err := caddy.ParseDuration(text); err == nil && d > 0 {
		return activity.Since(time.Now(), d), nil
	}
	return time.Time{}, fmt.Errorf("invalid %s %q: must be a day such as 2026-11-22, a time such as 2026-11-22T10:00:00Z, or a duration such as 7d", flag, text)
}
