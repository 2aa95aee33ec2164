// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/spf13/cobra"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/crawlers/verify"
	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/catalogstore"
	"github.com/robotspolicy/caddy-robots-policy/source"
)

func crawlersUpdateCommand() *cobra.Command {
	var of storageOf
	var dryRun, allowLoss bool
	cmd := Command("update FILE|URL", "Checks a crawler catalog, and writes it to Caddy's storage for all servers that use the storage",
		exactly(1, "FILE|URL", func(cmd *cobra.Command, args []string) error {
			next, data, err := parseCatalog(cmd, args[0])
			if err != nil {
				return err
			}
			now := time.Now()
			if err := catalogstore.CheckDate(next, now); err != nil {
				return failure{fmt.Errorf("%s: %w", fileName(args[0]), err)}
			}
			ctx, cancel := caddy.NewContext(caddy.Context{Context: context.Background()})
			defer cancel()
			storage, err := of.open(ctx)
			if err != nil {
				return err
			}
			if !dryRun {
				if err := storage.mayWrite(source.Catalog); err != nil {
					return failure{err}
				}
			}
			out := cmd.OutOrStdout()
			before, from, err := catalogstore.InUse(ctx, storage)
			if err != nil { // an error means that the stored catalog is damaged; the update will replace it
				_, _ = fmt.Fprintf(out, "The new catalog was not compared with the catalog in use: %v\n", err)
				if before, err = crawlers.Embedded(); err != nil {
					return err
				}
				from = catalogstore.SourceEmbedded
			}
			if problems := catalogstore.Guard(before, next, now); len(problems) > 0 && !allowLoss {
				return failure{fmt.Errorf("%s: %w; if that is intended, add --allow-loss", fileName(args[0]), errors.Join(problems...))}
			}
			added, removed := catalogstore.Changes(before, next)
			_, _ = fmt.Fprintf(out, "before: %s\nnow:    %s; crawlers: %d added, %d removed\n",
				catalogText(before, from), catalogText(next, fileName(args[0])), len(added), len(removed))
			if dryRun {
				_, err := fmt.Fprintln(out, "dry run: nothing was written")
				return err
			}
			if err := catalogstore.Store(ctx, storage, data); err != nil {
				return err
			}
			_, err = fmt.Fprintf(out, "written to %s; servers with this storage use the catalog within a minute, and the matcher \"crawler\" uses it after the next reload of Caddy\n", storage.place(source.Catalog))
			return err
		}))
	of.flags(cmd, "the Caddy configuration that sets the storage (default: ./Caddyfile, or else Caddy's default storage)")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only check the catalog, and compare it with the catalog in use")
	cmd.Flags().BoolVar(&allowLoss, "allow-loss", false, "write the catalog even if it is older or much smaller than the catalog in use, or lacks some of its search crawlers")
	return cmd
}

func crawlersExportCommand() *cobra.Command {
	var key, newKey string
	var addresses bool
	cmd := Command("export", "Prints the catalog of this program, as a file for the command \"crawlers update\"",
		exactly(0, "no arguments", func(cmd *cobra.Command, _ []string) error {
			if newKey != "" {
				return writeKey(cmd, newKey)
			}
			if addresses {
				return exportAddresses(cmd)
			}
			data, err := crawlers.Export(verify.SnapshotText())
			if err == nil && key != "" {
				var private []byte
				if private, err = readFile(cmd, key); err == nil {
					data, err = catalogstore.Sign(data, strings.TrimSpace(string(private)))
				}
			}
			if err == nil {
				_, err = cmd.OutOrStdout().Write(data)
			}
			return err
		}))
	cmd.Flags().StringVar(&key, "sign", "", "sign the catalog with the private key in this `FILE`, for servers with the option \"catalog auto\"")
	cmd.Flags().StringVar(&newKey, "new-key", "", "write a new private key for --sign to this `FILE`, and print the public key instead of the catalog")
	cmd.Flags().BoolVar(&addresses, "addresses", false, "fetch the address lists that operators publish, and print them instead of the catalog, in the format of the program's source file crawlers/verify/snapshot.txt")
	return cmd
}

func exportAddresses(cmd *cobra.Command) error {
	known, _ := crawlers.Default() // the built-in catalog is valid
	text, err := verify.FetchSnapshot(cmp.Or(cmd.Context(), context.Background()), known.AddressLists(), verify.ListOptions{})
	if err != nil {
		fmt.Fprintf(cmd.ErrOrStderr(), "these lists were not changed:\n%v\n", err)
	}
	_, err = io.WriteString(cmd.OutOrStdout(), text)
	return err
}

// writeKey creates a key pair for signing released catalogs.
func writeKey(cmd *cobra.Command, name string) error {
	private, public, err := catalogstore.NewKey()
	if err != nil {
		return err
	}
	if err = writeNew(name, []byte(private+"\n"), 0o600); err == nil {
		_, err = fmt.Fprintln(cmd.OutOrStdout(), public)
	}
	return err
}

// catalogOf returns the catalog that servers with this configuration use. Without a configuration, it returns the
// catalog of this program.
func catalogOf(of storageOf) (*crawlers.Catalog, string, error) {
	if of.config == "" {
		known, err := crawlers.Default()
		return known, catalogstore.SourceEmbedded, err
	}
	ctx, cancel := caddy.NewContext(caddy.Context{Context: context.Background()})
	defer cancel()
	storage, err := of.open(ctx)
	if err != nil {
		return nil, "", err
	}
	return catalogstore.InUse(ctx, storage)
}

func catalogText(c *crawlers.Catalog, source string) string {
	return fmt.Sprintf("catalog of %s, %s, %d crawlers", c.AsOf(), source, c.Len())
}

// parseCatalog reads a catalog from a file, a URL, or the standard input if name is "-". If the catalog is signed,
// parseCatalog checks the signature.
func parseCatalog(cmd *cobra.Command, name string) (c *crawlers.Catalog, text []byte, err error) {
	if source.IsWebAddress(name) {
		text, err = catalogstore.Fetch(cmp.Or(cmd.Context(), context.Background()), name)
	} else {
		text, err = readFile(cmd, name)
	}
	if err != nil {
		return nil, nil, err
	}
	if catalogstore.IsSigned(text) {
		if text, err = catalogstore.Open(text); err != nil {
			return nil, nil, failure{fmt.Errorf("%s: %w", fileName(name), err)}
		}
	}
	if c, err = crawlers.Parse(fileName(name), text); err != nil {
		return nil, nil, failure{err}
	}
	return c, text, nil
}
