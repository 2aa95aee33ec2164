// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/user"
	"path/filepath"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/spf13/cobra"

	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
	"github.com/robotspolicy/caddy-robots-policy/site"
	"github.com/robotspolicy/caddy-robots-policy/site/compare"
	"github.com/robotspolicy/caddy-robots-policy/source"
)

// defaultWait is the default time that the command waits until servers have loaded a version.
const defaultWait = 10 * time.Second

func publishCommand() *cobra.Command {
	var to string
	p := publication{confirm: confirmation{wait: defaultWait}}
	cmd := Command("publish FILE|--undo|--version N --to storage:KEY", "Checks a policy, and writes it to Caddy's storage for all servers that use it",
		func(cmd *cobra.Command, args []string) error {
			files := 1
			if p.undo || p.version != "" {
				files = 0
			}
			if len(args) != files || p.undo && p.version != "" {
				return argumentsError(args, "--to storage:KEY, and one of FILE, --undo and --version N")
			}
			if p.undo && to != "" && !strings.HasPrefix(to, source.StoragePrefix) {
				return failure{p.undoElsewhere(cmd, to)}
			}
			var err error
			if p.key, err = storageKey("--to", to); err != nil {
				return err
			}
			if p.version != "" {
				if p.number, err = versionNumber(p.version); err != nil {
					return err
				}
			}
			if files == 1 {
				p.file = args[0]
				if p.text, err = readFile(cmd, p.file); err != nil {
					return failure{err}
				}
			}
			return p.run(cmd)
		})
	cmd.Long = `
Writes a policy to Caddy's storage, prints the changes and the key in the storage, and waits
until the server has loaded the policy.

--undo goes back to the version that servers used just before the present one. The limit
max_search_loss in the Caddyfile does not apply to an undo. A second undo returns to the
version that was undone, and asks you to confirm. --version N goes back to an older version
that servers have used. If search engines would lose something because of that version, name
these search engines with --accept-loss. The command "history" lists the versions.

The exit code is:
  0  the server has loaded the version
  1  the version was not written
  3  the version was written, but no server has confirmed it`
	cmd.Example = `  caddy robots-policy publish site-policy.yaml --to storage:robots_policy/site.yaml --note "AI training out"
  caddy robots-policy publish --undo --to storage:robots_policy/site.yaml
  caddy robots-policy publish --version v7 --accept-loss Bingbot --to storage:robots_policy/site.yaml`
	guard := &p.guard
	cmd.Flags().StringVar(&to, "to", "", "the policy's key in Caddy's storage, in the form storage:KEY")
	cmd.Flags().BoolVar(&p.undo, "undo", false, "go back to the version that servers used just before the present one")
	cmd.Flags().StringVar(&p.version, "version", "", "go back to this `VERSION`, which servers used earlier")
	cmd.Flags().StringSliceVar(&p.change.Accept, "accept-loss", nil, "with --version: publish even if the version disallows more than now for these search engines, such as Bingbot,Googlebot")
	cmd.Flags().StringVar(&p.change.Note, "note", "", "the reason for the change, for the history and the evidence log")
	cmd.Flags().StringVar(&p.change.By, "author", "", "the author, for the history and the evidence log (default: the name of the user who runs the command)")
	p.of.flags(cmd, "the Caddy configuration that sets the storage (default: ./Caddyfile, or else Caddy's default storage)")
	cmd.Flags().StringVar(&p.confirm.address, "address", "", "the address of the admin API of the server that will load the policy (default: from the configuration, or "+caddy.DefaultAdminListen+")")
	cmd.Flags().DurationVar(&p.confirm.wait, "wait", defaultWait, "how long to wait until servers have loaded the version")
	cmd.Flags().StringVar(&guard.traffic, "if-replay", "", "publish only if a replay of the last seven days of this traffic shows that search engines lose no requests. Give the directory of an activity database, a ClickHouse address, or access logs")
	cmd.Flags().Int64Var(&guard.most, "max-search-loss", 0, "with --if-replay: the largest number of requests that search engines may lose")
	cmd.Flags().StringSliceVar(&guard.accept, "accept", nil, "with --if-replay: publish despite these gaps in the traffic data, such as not-recorded; the command prints the name of each gap")
	cmd.Flags().BoolVar(&guard.yes, "yes", false, "publish without asking, even if the policy disallows more for search engines than now, or if this would undo an undo")
	mergeFlag(cmd, &guard.merge)
	cmd.Flags().BoolVar(&p.dryRun, "dry-run", false, "only print what would change")
	return cmd
}

// publication holds the arguments of the publish command, and its intermediate results.
type publication struct {
	undo, dryRun bool
	version      string
	number       int // the number of version, or 0 if there is none
	file         string
	text         []byte
	key          string
	of           storageOf
	guard        searchGuard
	confirm      confirmation
	change       source.Change

	site    *site.Site
	before  *source.Standing
	returns source.Return
}

// run publishes a file or a version that was served before.
func (p *publication) run(cmd *cobra.Command) error {
	ctx, cancel := caddy.NewContext(caddy.Context{Context: context.Background()})
	defer cancel()
	s, err := p.of.open(ctx)
	if err != nil {
		return err
	}
	if err := p.guard.read(cmd, s, p.key); err != nil {
		return notWritten(err)
	}
	say := func(format string, args ...any) { _, _ = fmt.Fprintf(cmd.OutOrStdout(), format+"\n", args...) }
	if err := p.prepare(ctx, cmd, s, say); err != nil {
		return notWritten(err)
	}
	name, sum := source.StoragePrefix+p.key, source.SumOf(p.change.Text)
	if p.before.SHA256 == sum {
		say("%s already contains this policy (sha256 %s)", name, sum)
		if p.dryRun {
			return nil
		}
		return p.confirm.of(ctx, say, s, p.key, sum)
	}
	p.compare(say)
	if err := p.judge(ctx, cmd, say); err != nil {
		return notWritten(err)
	}
	if p.dryRun {
		say("dry run: nothing was published")
		return nil
	}
	if n := s.config.Apps.RobotsPolicy.Options.Console.Approval; n > 1 {
		return notWritten(p.saveDraft(ctx, s, n))
	}
	switch err := source.PublishTo(ctx, s, p.key, p.change); {
	case errors.Is(err, source.ErrOvertaken):
		return notWritten(fmt.Errorf("not published: %w at %s; run the command again to compare with that version", err, name))
	case errors.Is(err, source.ErrLockStays):
		say("warning: %v", err)
	case err != nil:
		return notWritten(err)
	}
	return p.confirm.of(ctx, say, s, p.key, sum)
}

// notWritten returns err with the exit code 1, which means that the policy was not published. It does not change an
// error that already has this exit code.
func notWritten(err error) error {
	if _, ok := errors.AsType[failure](err); ok || err == nil {
		return err
	}
	return failure{err}
}

// prepare reads what the storage contains at the key of the policy, and determines the text to publish. This is the
// text of the file or, for an undo, the text of an earlier version. It returns an error if the text is not valid.
func (p *publication) prepare(ctx context.Context, cmd *cobra.Command, s *storage, say func(string, ...any)) (err error) {
	if !p.dryRun {
		if err := s.mayWrite(p.key); err != nil {
			return err
		}
	}
	if p.before, err = standingOf(ctx, s, p.key); err != nil {
		return fmt.Errorf("reading the published policy at %s: %w", s.place(p.key), err)
	}
	name := fileName(p.file)
	if p.file == "" {
		back, err := p.before.GoBack(p.number)
		if err != nil {
			return fmt.Errorf("%s: %w", s.place(p.key), err)
		}
		name, p.text = source.StoragePrefix+p.key+" "+back.Label(), []byte(back.Text)
		p.change.Note = cmp.Or(p.change.Note, "back to "+back.Label())
		say("back to %s, published %s UTC%s", back.Label(), stamp(back.Time), authorOf(back))
	}
	p.change.Text, p.change.Replaces = string(p.text), p.before.SHA256
	p.change.By = cmp.Or(p.change.By, operator())
	p.returns = p.before.Returns(source.SumOf(p.change.Text))
	next, ds := site.LoadWith(name, p.text, policyfile.Options{Accepted: p.returns == source.Undo})
	p.site = next
	return report(cmd, ds)
}

func authorOf(v *source.Published) string {
	if v.By == "" {
		return ""
	}
	return " by " + english.OneLine(v.By)
}

// compare prints the changes from the published policy to the new one. It keeps the published policy for the
// search-loss limit.
func (p *publication) compare(say func(string, ...any)) {
	if p.before.SHA256 == "" {
		say("%s does not exist yet, so there is no policy to compare with", source.StoragePrefix+p.key)
		return
	}
	p.guard.old, _ = site.Load(source.StoragePrefix+p.key, []byte(p.before.Text))
	if p.guard.broken = p.guard.old == nil; p.guard.broken {
		return
	}
	for _, words := range compare.Sites(p.guard.old, p.site, compare.Options{Below: p.guard.below}).Words() {
		say("%s", words)
	}
}

// judge returns an error if the text must not be published, for example because search engines would lose too much. An
// undo is published even if search engines lose something, but the user must confirm an undo of an undo.
func (p *publication) judge(ctx context.Context, cmd *cobra.Command, say func(string, ...any)) error {
	switch p.returns {
	case source.Undo:
		if c, err := p.judgeSearch(ctx); err == nil && !c.Holds() {
			say("This is an undo, so it is published although search engines lose something:")
			writeClaim(cmd.OutOrStdout(), c)
		}
		if p.undo && p.before.UndoesUndo() {
			say("The present version is itself an undo. This command returns to the text that was undone.")
			return p.guard.ask(cmd, "not published; to return to the text that was undone, give --yes")
		}
		return nil
	case source.Earlier:
		if p.guard.broken {
			return p.check(ctx, cmd)
		}
		lost, ok := errors.AsType[*source.LossError](source.NotAccepted(p.guard.old, p.site, p.guard.below, p.change.Accept))
		if !ok {
			return nil
		}
		writeClaim(cmd.OutOrStdout(), lost.Claim)
		return fmt.Errorf("not published; to accept what search engines lose, give --accept-loss %s", strings.Join(lost.Names, ","))
	case source.NeverServed:
	}
	return p.check(ctx, cmd)
}

// saveDraft saves the text as a draft instead of publishing it, because the configuration demands that several people
// approve a version.
func (p *publication) saveDraft(ctx context.Context, s *storage, people int) error {
	err := source.ProposeTo(ctx, s, p.key, &source.Draft{Base: p.change.Replaces, Text: p.change.Text, Time: time.Now().UTC(), Signed: p.change.Signed})
	if err != nil {
		return fmt.Errorf("not published, and not saved as a draft: %w", err)
	}
	return fmt.Errorf("not published, because of \"approval %d\" in the option \"console\"; saved as a draft for %s, which other people can approve in the console", people, s.place(p.key))
}

// undoElsewhere is called if the policy is not in Caddy's storage, so the command cannot undo a change. It prints how
// to undo the change by hand. It always returns an error, because the command did not write anything.
func (p *publication) undoElsewhere(cmd *cobra.Command, name string) error {
	which := "the text that Caddy served before the present text"
	ctx, cancel := caddy.NewContext(caddy.Context{Context: context.Background()})
	defer cancel()
	if s, err := p.of.open(ctx); err == nil {
		limited, stop := context.WithTimeout(ctx, p.confirm.wait)
		defer stop()
		if status, err := statusAt(limited, p.confirm.addressOf(s), fileOrAddress(name)); err == nil && status.Before != "" {
			which += fmt.Sprintf(" (sha256 %.12s)", status.Before)
		}
	}
	_, _ = fmt.Fprintf(cmd.OutOrStdout(), "%s is not in Caddy's storage, so this command cannot undo its last change. Restore this text by hand: %s. The limit max_search_loss does not stop Caddy from loading the restored text.\n", name, which)
	return errors.New("nothing was written")
}

// operator returns the name of the system user who runs the command.
func operator() string {
	u, err := user.Current()
	if err != nil {
		return ""
	}
	return u.Username
}

// fileOrAddress returns the name that the server uses for a policy outside Caddy's storage.
func fileOrAddress(name string) string {
	if source.IsWebAddress(name) {
		return name
	}
	if path, err := filepath.Abs(name); err == nil {
		return path
	}
	return name
}
