// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/spf13/cobra"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/cataloguestore"
	"github.com/robotspolicy/caddy-robots-policy/source"
)

func crawlersUpdateCommand() *cobra.Command {
	var of storageOf
	var dryRun, allowLoss bool
	cmd := Command("update FILE|URL", "Checks a catalogue of crawlers and writes it to Caddy's storage, for every server that uses the storage",
		exactly(1, "FILE|URL", func(cmd *cobra.Command, args []string) error {
			data, err := readCatalogue(cmd, args[0])
			if err != nil {
				return err
			}
			next, err := crawlers.Parse(fileName(args[0]), data)
			if err != nil {
				return failure{err}
			}
			now := time.Now()
			if err := cataloguestore.CheckDate(next, now); err != nil {
				return failure{fmt.Errorf("%s: %w", fileName(args[0]), err)}
			}
			ctx, cancel := caddy.NewContext(caddy.Context{Context: context.Background()})
			defer cancel()
			storage, err := of.open(ctx)
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			before, source, err := cataloguestore.InUse(ctx, storage)
			if err != nil { // what is there is damaged: the update repairs it
				_, _ = fmt.Fprintf(out, "not compared with the catalogue in use: %v\n", err)
				if before, err = crawlers.Embedded(); err != nil {
					return err
				}
				source = cataloguestore.SourceEmbedded
			}
			if problems := cataloguestore.Guard(before, next, now); len(problems) > 0 && !allowLoss {
				return failure{fmt.Errorf("%s: %w; if that is intended, add --allow-loss", fileName(args[0]), errors.Join(problems...))}
			}
			added, removed := tokenChanges(before, next)
			_, _ = fmt.Fprintf(out, "before: %s\nnow:    %s: %d added, %d removed\n",
				catalogueText(before, source), catalogueText(next, fileName(args[0])), added, removed)
			if dryRun {
				_, err := fmt.Fprintln(out, "dry run: nothing was written")
				return err
			}
			if err := cataloguestore.Store(ctx, storage, data); err != nil {
				return err
			}
			_, err = fmt.Fprintf(out, "written to %s; servers use it within a minute, matchers after the next reload of Caddy\n", cataloguestore.SourceStorage)
			return err
		}))
	of.flags(cmd, "the Caddy configuration that sets the storage (default: ./Caddyfile, or else Caddy's default storage)")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only check and compare")
	cmd.Flags().BoolVar(&allowLoss, "allow-loss", false, "write a catalogue that is older, has fewer search crawlers or is much smaller than the one in use")
	return cmd
}

func crawlersExportCommand() *cobra.Command {
	return Command("export", "Prints the catalogue of this program as a file for crawlers update",
		exactly(0, "no arguments", func(cmd *cobra.Command, _ []string) error {
			data, err := crawlers.Export()
			if err == nil {
				_, err = cmd.OutOrStdout().Write(data)
			}
			return err
		}))
}

// catalogueOf returns the catalogue that servers with a configuration use, or that of the
// program if none is given.
func catalogueOf(of storageOf) (*crawlers.Catalogue, string, error) {
	if of.config == "" {
		known, err := crawlers.Default()
		return known, cataloguestore.SourceEmbedded, err
	}
	ctx, cancel := caddy.NewContext(caddy.Context{Context: context.Background()})
	defer cancel()
	storage, err := of.open(ctx)
	if err != nil {
		return nil, "", err
	}
	return cataloguestore.InUse(ctx, storage)
}

func catalogueText(c *crawlers.Catalogue, source string) string {
	return fmt.Sprintf("catalogue of %s, %s, %d crawlers", c.AsOf(), source, c.Len())
}

// tokenChanges counts the crawlers that only one of two catalogues has.
func tokenChanges(before, after *crawlers.Catalogue) (added, removed int) {
	common := 0
	for _, c := range after.All() {
		if _, ok := before.Lookup(c.Token); ok {
			common++
		}
	}
	return after.Len() - common, before.Len() - common
}

// readCatalogue reads a file, the standard input for "-", or a file on a web server.
func readCatalogue(cmd *cobra.Command, name string) ([]byte, error) {
	if !source.IsWebAddress(name) {
		return readFile(cmd, name)
	}
	u, err := source.WebAddress(name)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(cmp.Or(cmd.Context(), context.Background()), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	client := &http.Client{CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if _, err := source.WebAddress(r.URL.String()); err != nil {
			return err
		}
		if len(via) >= 5 {
			return errors.New("more than 5 redirects")
		}
		return nil
	}}
	resp, err := client.Do(r)
	if err != nil {
		return nil, fmt.Errorf("fetching the catalogue: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("fetching the catalogue: %s answers %s", u, resp.Status)
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, crawlers.MaxFile+1))
	if err != nil {
		return nil, fmt.Errorf("fetching the catalogue: %w", err)
	}
	return data, nil
}
