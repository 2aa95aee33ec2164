// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/robotspolicy/caddy-robots-policy/audit"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

func auditCommand() *cobra.Command {
	var policyName string
	var as []string
	var asJSON, merged bool
	var pages int
	cmd := Command("audit URL [--policy FILE] [--as CRAWLER,…]", "Fetches pages of a site like a crawler, and reports where robots.txt, headers and meta tags contradict each other or a policy",
		exactly(1, "URL", func(cmd *cobra.Command, args []string) error {
			address := args[0]
			if !strings.Contains(address, "://") {
				address = "https://" + address
			}
			u, err := url.Parse(address)
			if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
				return fmt.Errorf("invalid URL %q: must be like https://www.example.com/", args[0])
			}
			var s *site.Site
			if policyName != "" {
				if s, err = loadValid(cmd, policyName, nil); err != nil {
					return err
				}
			}
			found, err := audit.Run(cmd.Context(), u, audit.Options{Policy: s, Merged: merged, As: as, Pages: pages})
			if err != nil {
				return err
			}
			if err := printResult(cmd, asJSON, found, found.WriteText); err != nil {
				return err
			}
			return exitOf(found.Clean())
		}))
	cmd.Long = `Fetches robots.txt, the page at URL and some pages of the sitemap, and shows what
robots.txt and the headers and meta tags of these pages tell crawlers.

The audit obeys the rules for ` + audit.OwnToken + ` in robots.txt, and sends one request
a second with this name. With --as, it also sends requests with the names of crawlers. If
the server verifies crawlers, it treats the audit as an impostor and blocks these requests,
and the audit reports a warning. The audit connects to a private IP address only if the
host in URL is that address or localhost.

The exit code is 0 if the audit finds no error, 1 if it finds one, and 2 if the audit
cannot run. It is 3 if there is no error, but a page could not be read.`
	fl := cmd.Flags()
	fl.StringVar(&policyName, "policy", "", "report where the site differs from this policy file")
	fl.StringSliceVar(&as, "as", nil, "also send requests that have the names of these crawlers in the User-Agent, such as GPTBot,Googlebot")
	fl.BoolVar(&merged, "merged", false, "with --policy: do not report the lines that the server adds to robots.txt from the upstream's robots.txt (the option robots_txt merge)")
	fl.IntVar(&pages, "pages", audit.DefaultPages, "the number of pages to look at")
	fl.BoolVar(&asJSON, "json", false, "print the report as JSON")
	return cmd
}
