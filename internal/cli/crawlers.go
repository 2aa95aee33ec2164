// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/crawlers/verify"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
)

func crawlersCommand() *cobra.Command {
	var asJSON bool
	var of storageOf
	cmd := Command("crawlers [NAME|CATEGORY]", "Lists the crawlers that a policy can name, or describes one crawler",
		between(0, 1, "[NAME|CATEGORY]", func(cmd *cobra.Command, args []string) error {
			known, source, err := catalogOf(of)
			if err != nil {
				return err
			}
			return listCrawlers(cmd, known, source, args, asJSON)
		}))
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	of.flags(cmd, "read the catalog from the storage of this Caddy configuration (default: use the catalog of this program)")
	cmd.Args = cobra.ArbitraryArgs // otherwise cobra allows only names of subcommands as arguments
	cmd.AddCommand(crawlersUpdateCommand(), crawlersExportCommand())
	return cmd
}

// listCrawlers prints the crawlers that the arguments name. Without arguments, it prints all crawlers.
func listCrawlers(cmd *cobra.Command, known *crawlers.Catalog, source string, args []string, asJSON bool) error {
	found := known.All()
	if len(args) == 1 {
		name := strings.TrimPrefix(args[0], "category:")
		if operator, ok := strings.CutPrefix(name, "operator:"); ok {
			name, found = operator, known.OfOperator(operator)
		} else if found = known.OfCategory(crawlers.Category(strings.ToLower(name))); len(found) == 0 {
			found = known.Search(name)
		}
		if len(found) == 0 {
			return unknownName(known, name)
		}
	}
	list := make([]described, len(found))
	for i, c := range found {
		list[i] = described{c, c.Patterns(), known.ControlsOf(c.Token)}
	}
	return printResult(cmd, asJSON, list, func(out io.Writer) error {
		switch {
		case len(args) == 1 && len(list) == 1:
			return list[0].write(out)
		case len(args) == 0:
			fmt.Fprintf(out, "%s; address lists of %s\n\n", catalogText(known, source), verify.SnapshotDate().Format(time.DateOnly))
		}
		return writeTable(out, list)
	})
}

// unknownName returns the error for an unknown name, with a suggestion.
func unknownName(known *crawlers.Catalog, name string) error {
	kinds := make([]string, len(crawlers.Categories()))
	for i, k := range crawlers.Categories() {
		kinds[i] = string(k)
	}
	names := kinds
	for _, c := range known.All() {
		names = append(names, c.Token, c.Operator)
	}
	if near := policyfile.Nearest(name, names); near != "" {
		return fmt.Errorf("unknown crawler, operator or category %q; did you mean %q?", name, near)
	}
	return fmt.Errorf("unknown crawler, operator or category %q; the categories are %s", name, strings.Join(kinds, ", "))
}

func writeTable(out io.Writer, list []described) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "CRAWLER\tOPERATOR\tCATEGORY\tROBOTS.TXT\tVERIFIED BY")
	for _, d := range list {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", d.Token, d.Operator, d.Category, d.Honors, strings.Join(d.verifiedBy(), ", "))
	}
	return w.Flush()
}

// described is a crawler with the strings that identify it in a User-Agent, and with the controls that apply to it.
type described struct {
	*crawlers.Crawler
	UserAgents []string           `json:"user_agents,omitempty"`
	Controls   []crawlers.Control `json:"controls,omitempty"`
}

// controlText describes the usages that an operator's control disallows, and how to use the control.
func controlText(x crawlers.Control) string {
	how := map[crawlers.ControlKind]string{
		crawlers.ControlToken: "the robots.txt token " + x.Value,
		crawlers.ControlRule:  x.Value + " in headers and meta tags",
		crawlers.ControlForm:  "by hand, " + x.Value + " (" + x.Docs + ")",
	}[x.Kind]
	takes := english.List(x.Takes, "and")
	if x.Also != "" {
		takes += "; it also takes away " + x.Also
	}
	return how + ": against " + takes
}

func (d described) verifiedBy() (by []string) {
	if len(d.Verification.AddressLists) > 0 {
		by = append(by, "lists")
	}
	if len(d.Verification.ReverseDNS) > 0 {
		by = append(by, "dns")
	}
	if d.Verification.WebBotAuth != "" {
		by = append(by, "signatures")
	}
	return by
}

// honors maps the values of crawlers.Honors to words.
var honors = map[crawlers.Honors]string{
	crawlers.HonorsYes:           "obeyed, according to its operator",
	crawlers.HonorsNo:            "not followed",
	crawlers.HonorsPartly:        "obeyed in part or in some cases",
	crawlers.HonorsUserTriggered: "not obeyed: according to the operator, the crawler fetches pages only at the request of users",
	crawlers.HonorsUnknown:       "unknown: the operator does not say",
}

// audiences returns the names that a rule can use to apply to the crawler.
func (d described) audiences() []string {
	all := []string{d.Token}
	if d.Category.Valid() {
		all = append(all, "category:"+string(d.Category))
	}
	if d.IsAI() {
		all = append(all, "category:"+string(crawlers.CategoryAI))
	}
	if d.Operator != "" {
		all = append(all, "operator:"+d.Operator)
	}
	for i, a := range all {
		all[i] = "for: " + policyfile.Scalar(a)
	}
	return all
}

// write prints the facts about one crawler as text, and the names that a policy can use for it.
func (d described) write(out io.Writer) error {
	var b strings.Builder
	b.WriteString(d.Token)
	if d.Operator != "" {
		b.WriteString(" (" + d.Operator + ")")
	}
	b.WriteString("\n")
	line := func(name string, values ...string) {
		if text := strings.Join(values, ", "); text != "" {
			fmt.Fprintf(&b, "  %-16s %s\n", name, text)
		}
	}
	if d.Category.Valid() {
		line("category", string(d.Category)+": "+d.Category.Description())
	}
	for _, k := range d.Further {
		line("also", string(k))
	}
	if d.RobotsOnly {
		line("requests", "none: this name is only used in robots.txt, so it cannot be blocked")
	} else {
		line("recognized by", d.UserAgents...)
	}
	line("robots.txt", honors[d.Honors])
	if d.IgnoresStar {
		line("", "ignores the group of *")
	}
	if len(d.Follows) > 0 {
		line("", "if robots.txt has no group for this crawler, the crawler follows the group of "+strings.Join(d.Follows, ", "))
	}
	for _, x := range d.Controls {
		line("control", controlText(x))
	}
	line("address lists", d.Verification.AddressLists...)
	line("reverse DNS", d.Verification.ReverseDNS...)
	line("signs with", d.Verification.WebBotAuth)
	line("documentation", d.Docs)
	line("example", strings.Join(d.Examples[:min(1, len(d.Examples))], ""))
	line("note", strings.Join(strings.Fields(d.Note), " "))
	line("as of", d.AsOf)
	line("sources", d.Sources...)
	line("in a policy", d.audiences()...)
	_, err := io.WriteString(out, b.String())
	return err
}
