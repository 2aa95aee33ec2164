// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/robotspolicy/caddy-robots-policy/crawlers/identity"
	"github.com/robotspolicy/caddy-robots-policy/internal/cli/policyinput"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

func explainCommand() *cobra.Command {
	var agent, address, merge string
	var asJSON bool
	cmd := Command("explain FILE|ROBOTS.TXT|URL --agent AGENT URL", "Explains what robots.txt, headers, meta tags and rights documents say about a request, whether the server blocks it, and which line of the policy or robots.txt decides",
		exactly(2, "FILE --agent AGENT URL", func(cmd *cobra.Command, args []string) error {
			u, err := url.Parse(args[1])
			if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
				return fmt.Errorf("invalid URL %q: must be like https://www.example.com/news/", args[1])
			}
			if agent == "" {
				return errors.New("--agent is missing: give a User-Agent or a product token such as GPTBot")
			}
			raw, err := policyinput.ReadRaw(cmd.Context(), args[0], cmd.InOrStdin())
			if err != nil {
				return err
			}
			if raw.IsRobots() {
				if err := rejectFlags(cmd, raw.Name, "merge", "address"); err != nil {
					return err
				}
				e, err := explainRobots(raw, agent, u)
				if err != nil {
					return err
				}
				return printResult(cmd, asJSON, e, e.writeText)
			}
			below, err := readBelow(cmd, merge)
			if err != nil {
				return err
			}
			s, ds := site.LoadWith(raw.Name, raw.Data, policyfile.Options{Below: below, Accepted: below != nil})
			if s == nil {
				return report(cmd, ds)
			}
			q := site.Question{Agent: agent, URL: u, Now: time.Now()}
			if cmd.Flags().Changed("address") {
				addr, err := netip.ParseAddr(address)
				if err != nil {
					return fmt.Errorf("invalid --address %q: must be an IP address such as 192.0.2.1 or 2001:db8::1", address)
				}
				q.Verify = identity.ExplainEmbedded(s.File.Catalog.AddressLists(), addr)
			}
			e := s.Explain(q)
			return printResult(cmd, asJSON, e, e.WriteText)
		}))
	cmd.Long = `
Explains what robots.txt, headers, meta tags and rights documents say about a request,
whether the server blocks it, and which line of the policy or robots.txt decides.

The first argument is a policy file, a robots.txt, or the URL of one. The last argument is
the URL of the requested page.`
	cmd.Example = `  caddy robots-policy explain site-policy.yaml --agent GPTBot https://www.example.com/news/`
	mergeFlag(cmd, &merge)
	cmd.Flags().StringVar(&agent, "agent", "", "the User-Agent of the request, or the crawler's name in robots.txt (its product token), such as GPTBot")
	cmd.Flags().StringVar(&address, "address", "", "the client's IP address, to check whether the built-in address lists verify the client")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the explanation as JSON")
	return cmd
}
