// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/robotspolicy/caddy-robots-policy/claim"
	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/crawlers/identity"
	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/catalogstore"
	"github.com/robotspolicy/caddy-robots-policy/internal/cli/policyinput"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

func checkCommand() *cobra.Command {
	var asJSON, strict, long bool
	var against, field, merge, config, adapter string
	cmd := Command("check FILE|ROBOTS.TXT|URL... | -", "Checks policy files and robots.txt files for errors and likely mistakes, runs their tests, and shows what crawlers may do",
		between(1, math.MaxInt, "at least one FILE, or -", func(cmd *cobra.Command, args []string) error {
			c := checker{Command: cmd, strict: strict, long: long, against: against, merge: merge, config: config, out: cmd.OutOrStdout()}
			if asJSON {
				c.out = io.Discard
			}
			if err := c.prepare(field, adapter); err != nil {
				return err
			}
			for _, name := range args {
				if err := c.check(name); err != nil {
					return err
				}
			}
			known, _ := crawlers.Default() // the built-in catalog is valid
			if old := catalogstore.Aged(known, time.Now()); old != "" {
				fmt.Fprintln(cmd.ErrOrStderr(), "warning: "+old)
			}
			if asJSON {
				if err := writeJSON(cmd.OutOrStdout(), &c.report); err != nil {
					return err
				}
			}
			if c.failed {
				return errReported
			}
			return nil
		}))
	cmd.Long = `
Checks policy files and robots.txt files for errors and likely mistakes, runs the tests of
policy files, and shows what crawlers may do. Give files or URLs, or - for the standard
input. If you give the URL of a site, the command reads the robots.txt of the site.

The exit code is 1 if a file has errors. With --strict, it is also 1 if a file has warnings.`
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the diagnostics, and what crawlers may do, as JSON")
	cmd.Flags().BoolVar(&long, "explain", false, "print a longer summary: each group of hosts that have the same rules, and up to 50 paths for each label such as \"may not crawl\"")
	cmd.Flags().StringVar(&against, "against", "", "show which crawlers in this `FILE` may crawl the site's front page; the FILE is a JSON or YAML list, or has one User-Agent per line")
	cmd.Flags().StringVar(&field, "field", "", "with --against, if the entries of the list have several fields: the field with the User-Agents or names. A dot leads to a field inside another, as in instances.accepted")
	mergeFlag(cmd, &merge)
	cmd.Flags().StringVar(&config, "config", "", "a Caddyfile: warn if the policy needs identity checks that the option \"verify\" in the Caddyfile does not switch on")
	cmd.Flags().StringVar(&adapter, "adapter", "", "the config adapter to use for the file in --config")
	cmd.Flags().BoolVar(&strict, "strict", false, "fail if there are warnings")
	return cmd
}

// checker checks the arguments of the check command, one after the other.
type checker struct {
	*cobra.Command

	strict, long           bool   // the values of the flags
	against, merge, config string // the values of the flags

	names   []string // the names in the list that --against names
	below   *robotstxt.File
	methods []identity.Methods
	out     io.Writer
	report  checkReport
	failed  bool
}

// prepare reads the files that the flags name.
func (c *checker) prepare(field, adapter string) (err error) {
	c.report = checkReport{Diagnostics: policyfile.Diagnostics{}, Policies: []checkedPolicy{}} // [] rather than null
	if c.against != "" {
		data, err := policyinput.ReadFile(c.against, c.InOrStdin())
		if err == nil {
			c.names, err = readList(data, field)
		}
		if err != nil {
			return fmt.Errorf("--against %s: %w", c.against, err)
		}
	}
	if c.below, err = readBelow(c.Command, c.merge); err != nil {
		return err
	}
	c.methods, err = configuredMethods(c.config, adapter)
	return err
}

func (c *checker) check(name string) error {
	raw, err := policyinput.ReadRaw(c.Context(), name, c.InOrStdin())
	if err != nil {
		return err
	}
	if !raw.IsRobots() {
		return c.policy(raw)
	}
	if err := rejectFlags(c.Command, raw.Name, "merge", "against", "config"); err != nil {
		return err
	}
	checked := checkRobots(raw)
	c.report.Robots = append(c.report.Robots, *checked)
	c.failed = c.failed || checked.failed(c.strict)
	return checked.writeText(c.out)
}

func (c *checker) policy(raw *policyinput.Raw) error {
	s, ds := site.LoadWith(raw.Name, raw.Data, policyfile.Options{Below: c.below})
	c.failed = c.failed || ds.HasErrors() || c.strict && ds.Count(policy.Warning) > 0
	c.report.add(raw.Name, s, ds)
	if s == nil {
		return c.report.write(c.out, raw.Name, s, ds, c.long)
	}
	if c.below != nil {
		writeNotes(c.ErrOrStderr(), c.merge, c.below.Below(s.Policy.WithoutFallback()).Notes())
	}
	if err := c.report.write(c.out, raw.Name, s, ds, c.long); err != nil {
		return err
	}
	checked := &c.report.Policies[len(c.report.Policies)-1]
	checked.Lacks = lacksOf(s, c.methods)
	if err := writeLacks(c.out, checked.Lacks, c.config); err != nil || c.against == "" {
		return err
	}
	checked.Against = compareList(c.against, c.names, s)
	return checked.Against.writeText(c.out, c.long)
}

// checkReport is the JSON output of the check command.
type checkReport struct {
	Diagnostics policyfile.Diagnostics `json:"diagnostics"`
	Policies    []checkedPolicy        `json:"policies"` // the policies that could be loaded
	Robots      []checkedRobots        `json:"robots_txt,omitempty"`
}

// checkedPolicy holds the results for one policy, such as the crawlers that may crawl.
type checkedPolicy struct {
	File     string                   `json:"file"`
	Tests    claim.Claim              `json:"tests,omitzero"` // the claim that the tests pass
	Hosts    []policyfile.HostSummary `json:"hosts"`
	Enforced policyfile.Enforced      `json:"enforcement"`
	Limits   []string                 `json:"limits,omitempty"`
	Lacks    []identity.Lack          `json:"cannot_be_proven,omitempty"`

	Controls []site.ControlState `json:"operators_controls,omitempty"`

	Against *comparedList `json:"against,omitempty"`
}

func (c *checkReport) add(name string, s *site.Site, ds policyfile.Diagnostics) {
	c.Diagnostics = append(c.Diagnostics, ds...)
	if s != nil {
		c.Policies = append(c.Policies, checkedPolicy{
			File: name, Tests: policyfile.TestsPass(s.File.Spec.Expect, ds), Hosts: s.File.Summary(time.Now()), Enforced: s.File.Enforced(), Limits: s.LimitTexts(time.Now()), Controls: s.ControlStates(site.ControlScope{}, time.Now()),
		})
	}
}

// write prints the diagnostics of one file. If the file can be loaded, write also prints a summary: the
// crawlers that may crawl, and the content that search engines may show. The summary has at most 15 lines, unless long
// is true.
func (c *checkReport) write(out io.Writer, name string, s *site.Site, ds policyfile.Diagnostics, long bool) error {
	if _, err := io.WriteString(out, ds.Colored(colored(out))+ds.Links()); err != nil {
		return err
	}
	counts := fmt.Sprintf("%s, %s and %s", english.Count(ds.Count(policy.Error), "error"), english.Count(ds.Count(policy.Warning), "warning"), english.Count(ds.Count(policy.Hint), "hint"))
	if s == nil {
		_, err := fmt.Fprintf(out, "%s: %s\n", name, counts)
		return err
	}
	p := &c.Policies[len(c.Policies)-1]
	if p.Tests.Made() {
		counts += "; " + p.Tests.Text()
	}
	var common []policyfile.SummaryRow
	if text := s.File.EnforcedText(); text != "" {
		common = append(common, policyfile.SummaryRow{Label: "blocked:", Text: text})
	}
	limits := p.Limits
	if len(limits) > 1 && !long {
		limits = []string{limits[0] + fmt.Sprintf(" (and %s)", english.Count(len(limits)-1, "more limit"))}
	}
	for _, limit := range limits {
		common = append(common, policyfile.SummaryRow{Label: "limited:", Text: limit})
	}
	summary := policyfile.SummaryText(p.Hosts, common, !long)
	_, err := fmt.Fprintf(out, "%s: %s\n%s%s", name, counts, summary, site.ControlsText(p.Controls))
	return err
}

func renderCommand() *cobra.Command {
	var host, other, scheme string
	cmd := Command("render FILE", "Prints the robots.txt that a policy file produces",
		exactly(1, "FILE", func(cmd *cobra.Command, args []string) error {
			file, err := readBelow(cmd, other)
			if err != nil {
				return err
			}
			s, ds, err := load(cmd, args[0], file)
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("host") {
				h, err := policy.ParseHost(host)
				if err != nil {
					return fmt.Errorf("--host %q: %w", host, err)
				}
				if h.Wildcard() {
					return fmt.Errorf("--host %q: must be one host, such as www%s", host, h[1:])
				}
				host = string(h)
			}
			if scheme != "http" && scheme != "https" {
				return fmt.Errorf("--scheme %q: must be http or https", scheme)
			}
			if err := report(cmd, ds); err != nil {
				return err
			}
			o := robotsserve.Options{Scheme: scheme}
			text, _ := s.Robots.Text(host)
			sitemaps := s.Policy.Spec().SitemapsOf(host)
			switch {
			case file != nil:
				if text, err = renderMerged(cmd, s.Policy, host, file, o); err != nil {
					return err
				}
				sitemaps = slices.Concat(sitemaps, file.Sitemaps())
			case scheme == "http":
				f, _ := robotsserve.Render(s.Policy, host, o)
				text = string(f.Body)
			}
			if host == "" {
				noteSitemaps(cmd.ErrOrStderr(), sitemaps)
			}
			_, err = io.WriteString(cmd.OutOrStdout(), text)
			return err
		}))
	mergeFlag(cmd, &other)
	cmd.Flags().StringVar(&scheme, "scheme", "https", "the `SCHEME` of the site's addresses in robots.txt, such as the address of the sitemap: http or https")
	cmd.Flags().StringVar(&host, "host", "", "the host whose robots.txt is printed (default: a host that no rule names)")
	return cmd
}

// noteSitemaps prints a note about each sitemap that is left out, because its host is not known.
func noteSitemaps(w io.Writer, sitemaps []string) {
	for _, s := range sitemaps {
		if strings.HasPrefix(s, "/") {
			fmt.Fprintf(w, "the sitemap %s is left out, because its host is not known. To include it, write for example: --host www.example.com\n", s)
		}
	}
}

// renderMerged renders a policy merged with a robots.txt. It prints notes about the robots.txt.
func renderMerged(cmd *cobra.Command, p *policy.Policy, host string, file *robotstxt.File, o robotsserve.Options) (string, error) {
	f, problems, notes := robotsserve.Merge(p, host, file, o)
	writeNotes(cmd.ErrOrStderr(), file.Name, notes)
	for _, pr := range problems {
		if pr.Severity == policy.Error {
			return "", fmt.Errorf("%s cannot be merged: %s", file.Name, pr.Message)
		}
		if robotsserve.AboutMerge(pr) {
			writeNote(cmd.ErrOrStderr(), file.Name, 0, "warning: "+pr.Message)
		}
	}
	return string(f.Body), nil
}

// writeNotes prints notes about a robots.txt with their line numbers. It combines notes of the same kind.
func writeNotes(w io.Writer, name string, notes []robotstxt.Note) {
	for _, n := range robotstxt.Grouped(notes) {
		writeNote(w, name, n.Line, n.Message)
	}
}

// writeNote prints a note about a line. If line is 0, the note is about the whole file.
func writeNote(w io.Writer, name string, line int, message string) {
	if line > 0 {
		name = fmt.Sprintf("%s:%d", name, line)
	}
	fmt.Fprintf(w, "%s: %s\n", name, message)
}

func schemaCommand() *cobra.Command {
	return Command("schema", "Prints the JSON Schema of policy files, for text editors",
		exactly(0, "no arguments", func(cmd *cobra.Command, _ []string) error {
			_, err := cmd.OutOrStdout().Write(policyfile.Schema())
			return err
		}))
}
