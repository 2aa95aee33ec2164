// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/user"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/caddyserver/certmagic"
	"github.com/spf13/cobra"

	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
	"github.com/robotspolicy/caddy-robots-policy/site"
	"github.com/robotspolicy/caddy-robots-policy/site/compare"
	"github.com/robotspolicy/caddy-robots-policy/source"
)

func publishCommand() *cobra.Command {
	var to, back string
	var p publication
	cmd := Command("publish FILE|--rollback [VERSION] --to storage:KEY", "Checks a policy file and writes it to Caddy's storage, for every server that reads it from there",
		func(cmd *cobra.Command, args []string) error {
			var err error
			if p.key, err = storageKey("--to", to); err != nil {
				return err
			}
			switch {
			case back == previous && len(args) == 1:
				back, args = args[0], nil
			case back != "" && len(args) > 0:
				return argumentsError(args, "--rollback [VERSION] --to storage:KEY")
			case back == "" && len(args) != 1:
				return argumentsError(args, "FILE --to storage:KEY")
			case back == "":
				if p.data, err = readFile(cmd, args[0]); err != nil {
					return err
				}
			}
			return p.run(cmd, strings.Join(args, ""), back)
		})
	of, guard := &p.of, &p.guard
	cmd.Long = `
Writes a policy to Caddy's storage, and says what it changes.

With --rollback an earlier version is published again: the one before the current one, or
VERSION, a number that the command history prints.`
	cmd.Example = `  caddy robots-policy publish site-policy.yaml --to storage:robots_policy/site.yaml --note "AI training out"
  caddy robots-policy publish --rollback --to storage:robots_policy/site.yaml
  caddy robots-policy publish --rollback v7 --to storage:robots_policy/site.yaml`
	cmd.Flags().StringVar(&to, "to", "", "the key to write: storage:KEY")
	cmd.Flags().StringVar(&back, "rollback", "", "publish an earlier version again: the one before, or the one that is named")
	cmd.Flags().Lookup("rollback").NoOptDefVal = previous
	cmd.Flags().StringVar(&p.signed.Note, "note", "", "why, for the history and the evidence log")
	cmd.Flags().StringVar(&p.signed.By, "author", "", "who publishes it, for the history and the evidence log (default: the user of this machine)")
	of.flags(cmd, "the Caddy configuration that sets the storage (default: ./Caddyfile, or else Caddy's default storage)")
	cmd.Flags().StringVar(&guard.traffic, "if-replay", "", "publish only if this traffic of the last seven days allows it: the directory of an activity store, the address of ClickHouse, or access logs (a file or a glob)")
	cmd.Flags().Int64Var(&guard.most, "max-search-loss", 0, "with --if-replay: how many requests search engines may lose")
	cmd.Flags().Int64Var(&guard.undecided, "undecided", 0, "with --if-replay: how many requests may remain of which it cannot be judged whether search engines lose them")
	cmd.Flags().BoolVar(&guard.yes, "yes", false, "publish without asking, though search engines lose something")
	cmd.Flags().BoolVar(&p.dryRun, "dry-run", false, "only print what would change")
	return cmd
}

// previous stands for the version before the current one.
const previous = "previous"

// storageKey reads storage:KEY, what a flag or an argument is to be.
func storageKey(what, name string) (string, error) {
	if !strings.HasPrefix(name, source.StoragePrefix) {
		return "", errors.New(what + " is missing: give a key in Caddy's storage, such as storage:robots_policy/site.yaml")
	}
	return source.StorageKey(name)
}

// publication is what publish is asked to do.
type publication struct {
	site   *site.Site
	data   []byte
	key    string
	of     storageOf
	dryRun bool
	guard  searchGuard
	signed source.Signed
}

// run publishes the data of a file or, if it names one, an earlier version.
func (p *publication) run(cmd *cobra.Command, file, back string) error {
	ctx, cancel := caddy.NewContext(caddy.Context{Context: context.Background()})
	defer cancel()
	storage, err := p.of.open(ctx)
	if err != nil {
		return err
	}
	if back != "" {
		v, err := earlier(ctx, storage, p.key, back)
		if err != nil {
			return failure{err}
		}
		file, p.data = source.StoragePrefix+p.key+" "+label(v), []byte(v.Text)
		p.signed.Note = cmp.Or(p.signed.Note, "rollback to "+label(v))
	}
	s, ds := site.Load(file, p.data)
	if err := report(cmd, ds); err != nil {
		return err
	}
	p.site = s
	p.signed.By = cmp.Or(p.signed.By, operator())
	return publish(ctx, cmd, storage, p)
}

// earlier finds a version to go back to.
func earlier(ctx context.Context, storage certmagic.Storage, key, version string) (*source.Published, error) {
	history, err := readHistory(ctx, storage, key)
	if err != nil {
		return nil, err
	}
	current, err := loadPublished(ctx, storage, key)
	if err != nil {
		return nil, err
	}
	var known []string
	for i := range history {
		v := &history[i]
		known = append(known, label(v))
		switch {
		case version == previous && v.SHA256 != sumOf(current):
			for _, older := range history[i:] {
				if older.SHA256 == sumOf(current) { // once more would bring back what was left
					return nil, fmt.Errorf("%s already went back to %s, from %s: name the version that you want, as in --rollback %[2]s; caddy robots-policy history lists them", source.StoragePrefix+key, label(&older), label(v))
				}
			}
			return v, nil
		case version != previous && (strings.TrimPrefix(version, "v") == strconv.Itoa(v.Number) || len(version) >= 8 && strings.HasPrefix(v.SHA256, version)):
			return v, nil
		}
	}
	if version == previous {
		return nil, fmt.Errorf("%s has no earlier version: what was published before is in the history of the storage only if publish or the console replaced it", source.StoragePrefix+key)
	}
	return nil, fmt.Errorf("%s has no version %q: it has %s", source.StoragePrefix+key, version, english.List(known, "and"))
}

func readHistory(ctx context.Context, storage certmagic.Storage, key string) ([]source.Published, error) {
	limited, stop := context.WithTimeout(ctx, storageTimeout)
	defer stop()
	history, err := source.HistoryOf(limited, storage, key)
	if err == nil && len(history) == 0 {
		err = fmt.Errorf("%s has no history: nothing was published there by publish or the console", source.StoragePrefix+key)
	}
	return history, err
}

// label is what people call a version.
func label(v *source.Published) string { return "v" + strconv.Itoa(v.Number) }

func historyCommand() *cobra.Command {
	var of storageOf
	var asJSON bool
	cmd := Command("history storage:KEY", "Lists the versions of a policy in Caddy's storage: when, by which author, and why",
		exactly(1, "storage:KEY", func(cmd *cobra.Command, args []string) error {
			key, err := storageKey("storage:KEY", args[0])
			if err != nil {
				return err
			}
			ctx, cancel := caddy.NewContext(caddy.Context{Context: context.Background()})
			defer cancel()
			storage, err := of.open(ctx)
			if err != nil {
				return err
			}
			history, err := readHistory(ctx, storage, key)
			if err != nil {
				return failure{err}
			}
			current, err := loadPublished(ctx, storage, key)
			if err != nil {
				return err
			}
			return printResult(cmd, asJSON, history, func(w io.Writer) error { return writeHistory(w, history, sumOf(current)) })
		}))
	cmd.Long = `
Lists what publish and the console have published at a key, the newest first: 20 versions at
most. One that was written there by other means has no author. publish --rollback goes back
to a version.`
	of.flags(cmd, "the Caddy configuration that sets the storage (default: ./Caddyfile, or else Caddy's default storage)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the versions as JSON, with their texts")
	return cmd
}

func writeHistory(out io.Writer, history []source.Published, current string) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "version\ttime (UTC)\tauthor\tsha256\tnote")
	known := false
	for i := range history {
		v := &history[i]
		name := label(v)
		if v.SHA256 == current && !known {
			name, known = name+" *", true
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%.12s\t%s\n", name, stamp(v.Time), cmp.Or(english.OneLine(v.By), "-"), v.SHA256, english.OneLine(v.Note))
	}
	if !known {
		fmt.Fprintf(w, "*\t-\t-\t%.12s\twritten there by other means\n", current)
	}
	fmt.Fprintln(w, "* is what the storage holds now")
	return w.Flush()
}

// publish writes a valid policy to the storage and prints what changes.
func publish(ctx context.Context, cmd *cobra.Command, storage certmagic.Storage, p *publication) error {
	before, err := loadPublished(ctx, storage, p.key)
	if err != nil {
		return fmt.Errorf("reading the published policy: %w", err)
	}
	name, sum := source.StoragePrefix+p.key, sumOf(p.data)
	say := func(format string, args ...any) { _, _ = fmt.Fprintf(cmd.OutOrStdout(), format+"\n", args...) }
	if before != nil && bytes.Equal(before, p.data) {
		say("%s already holds this policy (sha256 %s)", name, sum)
		return nil
	}
	replaces := ""
	var old *site.Site // nil, too, if what is published has errors
	if before != nil {
		replaces = sumOf(before)
		old, _ = site.Load(name, before)
		p.guard.broken = old == nil
	}
	var losses *compare.Losses
	switch {
	case old != nil:
		d := compare.Sites(old, p.site, compare.Options{})
		losses = d.Losses
		for _, words := range d.Words() {
			say("%s", words)
		}
	case before == nil:
		say("%s is new, so there is no policy to compare with", name)
	}
	if err := p.check(ctx, cmd, old, losses); err != nil {
		return failure{err}
	}
	if p.dryRun {
		say("dry run: nothing was published")
		return nil
	}
	switch err := source.PublishTo(ctx, storage, p.key, replaces, string(p.data), p.signed); {
	case errors.Is(err, source.ErrOvertaken):
		return fmt.Errorf("not published: %w at %s; run the command again to compare with it", err, name)
	case errors.Is(err, source.ErrLockStays):
		say("warning: %v", err)
	case err != nil:
		return err
	}
	say("published as %s (sha256 %s)", name, sum)
	return nil
}

func sumOf(data []byte) string { return fmt.Sprintf("%x", sha256.Sum256(data)) }

// operator is who runs the command, as the system knows them.
func operator() string {
	u, err := user.Current()
	if err != nil {
		return ""
	}
	return u.Username
}

// storageTimeout bounds how long the storage may take for one step.
const storageTimeout = time.Minute

// loadPublished returns the policy at a key of the storage, nil if there is none.
func loadPublished(ctx context.Context, storage certmagic.Storage, key string) ([]byte, error) {
	limited, stop := context.WithTimeout(ctx, storageTimeout)
	defer stop()
	data, err := storage.Load(limited, key)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

// storageOf names a configuration that sets the storage.
type storageOf struct{ config, adapter string }

func (of *storageOf) flags(cmd *cobra.Command, usage string) {
	cmd.Flags().StringVar(&of.config, "config", "", usage)
	cmd.Flags().StringVar(&of.adapter, "adapter", "", "the config adapter to use")
}

func (of storageOf) open(ctx caddy.Context) (certmagic.Storage, error) {
	config, _, _, err := caddycmd.LoadConfig(of.config, of.adapter)
	if err != nil {
		return nil, err
	}
	var c struct {
		StorageRaw json.RawMessage `json:"storage,omitempty" caddy:"namespace=caddy.storage inline_key=module"`
	}
	if len(config) > 0 {
		if err := json.Unmarshal(config, &c); err != nil {
			return nil, fmt.Errorf("reading the configuration: %w", err)
		}
	}
	if c.StorageRaw == nil {
		return caddy.DefaultStorage, nil
	}
	v, err := ctx.LoadModule(&c, "StorageRaw")
	if err != nil {
		return nil, fmt.Errorf("opening the storage: %w", err)
	}
	return v.(caddy.StorageConverter).CertMagicStorage()
}
