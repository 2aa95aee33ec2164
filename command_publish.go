// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/caddyserver/certmagic"
	"github.com/spf13/cobra"

	"github.com/robotspolicy/caddy-robots-policy/internal/policyname"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

func publishCommand() *cobra.Command {
	var to, config, adapter string
	var dryRun bool
	cmd := command("publish FILE --to storage:KEY", "Checks a policy file and puts it where every server of a fleet reads it",
		func(cmd *cobra.Command, args []string) (int, error) {
			const usage = "FILE --to storage:KEY"
			if !strings.HasPrefix(to, policyname.StoragePrefix) {
				return exitUsage, errors.New("where to? --to takes a key in Caddy's storage, such as storage:robots_policy/site.yaml")
			}
			key, err := policyname.StorageKey(to)
			if err != nil {
				return exitUsage, err
			}
			if len(args) != 1 {
				return exitUsage, argumentsError(args, usage)
			}
			data, err := readFile(args[0])
			if err != nil {
				return exitUsage, err
			}
			s, ds := site.Load(args[0], data, robotsserve.ServeOptions{})
			errOut := cmd.ErrOrStderr()
			if err := ds.Write(errOut, colored(errOut)); err != nil || s == nil {
				return exitCode(ds), err
			}
			return publish(cmd, s, data, key, storageOf{config, adapter}, dryRun)
		})
	cmd.Flags().StringVar(&to, "to", "", "where to put it: storage:KEY")
	cmd.Flags().StringVar(&config, "config", "", "the configuration that names the storage (default: ./Caddyfile, else Caddy's own default storage)")
	cmd.Flags().StringVar(&adapter, "adapter", "", "the adapter of the configuration")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only say what would change")
	return cmd
}

// publish puts a policy that is good into the storage, and says what changes.
func publish(cmd *cobra.Command, s *site.Site, data []byte, key string, of storageOf, dryRun bool) (int, error) {
	ctx, cancel := caddy.NewContext(caddy.Context{Context: context.Background()})
	defer cancel()
	storage, err := of.open(ctx)
	if err != nil {
		return exitUsage, err
	}
	limited, stop := context.WithTimeout(ctx, time.Minute)
	defer stop()
	before, err := storage.Load(limited, key)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return exitUsage, fmt.Errorf("reading what is published now: %w", err)
	}
	out := cmd.OutOrStdout()
	say := func(format string, args ...any) { _, _ = fmt.Fprintf(out, format+"\n", args...) }
	if err == nil && bytes.Equal(before, data) {
		say("%s%s is this policy already (sha256 %s)", policyname.StoragePrefix, key, sumOf(data))
		return caddy.ExitCodeSuccess, nil
	}
	if old, _ := site.Load(policyname.StoragePrefix+key, before, robotsserve.ServeOptions{}); err == nil && old != nil {
		for _, words := range site.Compare(old, s).Words() {
			say("%s", words)
		}
	}
	if dryRun {
		say("nothing was published: this is a dry run")
		return caddy.ExitCodeSuccess, nil
	}
	if err := storage.Store(limited, key, data); err != nil {
		return exitUsage, fmt.Errorf("publishing: %w", err)
	}
	if got, err := storage.Load(limited, key); err != nil || !bytes.Equal(got, data) {
		return exitUsage, fmt.Errorf("the storage does not give back what was published: %w", errors.Join(err, fs.ErrInvalid))
	}
	say("published as %s%s (sha256 %s)", policyname.StoragePrefix, key, sumOf(data))
	return caddy.ExitCodeSuccess, nil
}

// storageOf finds the storage of a configuration.
type storageOf struct{ config, adapter string }

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
