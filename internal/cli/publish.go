// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os/user"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/caddyserver/certmagic"
	"github.com/spf13/cobra"

	"github.com/robotspolicy/caddy-robots-policy/site"
	"github.com/robotspolicy/caddy-robots-policy/site/compare"
	"github.com/robotspolicy/caddy-robots-policy/source"
)

func publishCommand() *cobra.Command {
	var to string
	var of storageOf
	var dryRun bool
	var guard searchGuard
	cmd := Command("publish FILE --to storage:KEY", "Checks a policy file and writes it to Caddy's storage, for every server that reads it from there",
		func(cmd *cobra.Command, args []string) error {
			if !strings.HasPrefix(to, source.StoragePrefix) {
				return errors.New("--to is missing: give a key in Caddy's storage, such as storage:robots_policy/site.yaml")
			}
			key, err := source.StorageKey(to)
			if err != nil {
				return err
			}
			if len(args) != 1 {
				return argumentsError(args, "FILE --to storage:KEY")
			}
			data, err := readFile(cmd, args[0])
			if err != nil {
				return err
			}
			s, ds := site.Load(args[0], data)
			if err := report(cmd, ds); err != nil {
				return err
			}
			return publish(cmd, publication{s, data, key, of, dryRun, &guard})
		})
	cmd.Long = "\nWrites a policy to Caddy's storage, and says what it changes. To undo a change, or roll back,\npublish the earlier file again."
	cmd.Flags().StringVar(&to, "to", "", "the key to write: storage:KEY")
	of.flags(cmd, "the Caddy configuration that sets the storage (default: ./Caddyfile, or else Caddy's default storage)")
	cmd.Flags().StringVar(&guard.traffic, "if-replay", "", "publish only if this traffic of the last seven days allows it: the directory of an activity store, the address of ClickHouse, or access logs (a file or a glob)")
	cmd.Flags().Int64Var(&guard.most, "max-search-loss", 0, "with --if-replay: how many requests search engines may lose")
	cmd.Flags().Int64Var(&guard.undecided, "undecided", 0, "with --if-replay: how many requests may remain of which it cannot be judged whether search engines lose them")
	cmd.Flags().BoolVar(&guard.yes, "yes", false, "publish without asking, though search engines lose something")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only print what would change")
	return cmd
}

// publication is what publish is asked to do.
type publication struct {
	site   *site.Site
	data   []byte
	key    string
	of     storageOf
	dryRun bool
	guard  *searchGuard
}

// publish writes a valid policy to the storage and prints what changes.
func publish(cmd *cobra.Command, p publication) error {
	ctx, cancel := caddy.NewContext(caddy.Context{Context: context.Background()})
	defer cancel()
	storage, err := p.of.open(ctx)
	if err != nil {
		return err
	}
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
	if err := p.guard.check(ctx, cmd, replacement{old, p.site, losses, name}); err != nil {
		return failure{err}
	}
	if p.dryRun {
		say("dry run: nothing was published")
		return nil
	}
	limited, stop := context.WithTimeout(ctx, storageTimeout) // from now: the guard may have taken long
	defer stop()
	switch err := source.PublishTo(limited, storage, p.key, replaces, string(p.data), source.Signed{By: operator()}); {
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

// storageTimeout bounds how long the storage may take for one step, with the wait for
// the lock of a process that was killed while it published.
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
