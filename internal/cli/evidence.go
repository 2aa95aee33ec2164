// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/activity/evidence"
	"github.com/robotspolicy/caddy-robots-policy/claim"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
)

func evidenceCommand() *cobra.Command {
	var crawler, host, since, until, page string
	var verify verifyFlags
	var asJSON bool
	cmd := Command("evidence DIR... [--crawler NAME] [--since TIME]", "Shows when each version of the policy was published, which crawlers read it, and which requests violated it",
		between(1, math.MaxInt, "DIR", func(cmd *cobra.Command, args []string) error {
			if err := areDirectories(args); err != nil {
				return err
			}
			q := evidence.Question{Crawler: crawler, Host: host, Paths: evidencePaths}
			if asJSON {
				q.Paths = 0
			}
			var err error
			if q.Since, err = parseTime("--since", since); err != nil {
				return err
			}
			if q.Until, err = parseTime("--until", until); err != nil {
				return err
			}
			logs := make([]evidence.Checked, len(args))
			for i, dir := range args {
				l := evidence.Checked{Dir: dir}
				if l.Check, err = verify.check(dir); err != nil {
					return err
				}
				if l.Answer, err = evidence.Ask(dir, q); err != nil && len(l.Check.Problems) == 0 {
					return err
				}
				logs[i] = l
			}
			answer, check := evidence.Together(logs)
			if answer == nil {
				return failure{errors.New(check.Problems[0])}
			}
			if page != "" {
				if err := writeReport(page, reportOf(q, logs, verify.key != "", verify.authority != "")); err != nil {
					return err
				}
			}
			result := struct {
				*evidence.Answer
				Whole    []claim.Claim `json:"whole"` // a claim about each log
				Gaps     []string      `json:"gaps"`
				Problems []string      `json:"problems"`
			}{answer, wholes(logs), check.Gaps, check.Problems}
			if err := printResult(cmd, asJSON, result, func(w io.Writer) error { return writeEvidence(w, answer, check) }); err != nil {
				return err
			}
			if len(check.Problems) > 0 {
				return errReported
			}
			return nil
		}))
	cmd.Long = `
Shows the content of an evidence log. DIR is the directory after "evidence" in the global
option robots_policy. The command lists the versions of the policy, when each was in force,
and its robots.txt and other documents. It lists the crawlers that read these documents, and
how these crawlers were verified. It also lists violations: requests for paths that are
disallowed by the robots.txt that the crawler had read before.

If you name several logs, such as the logs of a fleet, the command checks each of
them separately, and sorts the events of all logs by time.

The command first checks the log in the same way as verify-evidence. The exit code is 1 if the log was
changed, and 2 if it cannot be read.`
	cmd.Example = `  caddy robots-policy evidence /var/lib/caddy/evidence --crawler GPTBot --since 30d
  caddy robots-policy evidence /var/lib/caddy/evidence --since 2026-11-01 --html report.html`
	flags := cmd.Flags()
	flags.StringVar(&crawler, "crawler", "", "only events of this crawler, named as in robots.txt, such as GPTBot")
	flags.StringVar(&host, "host", "", "only events on this host")
	flags.StringVar(&since, "since", "", "only events since this day or time, or not older than this duration: 2026-11-22, 2026-11-22T10:00:00Z or 30d")
	flags.StringVar(&until, "until", "", "only events before this day or time")
	flags.StringVar(&page, "html", "", "also write an HTML report to this file, for readers who are not engineers; it has the full text of each policy and published file")
	verify.add(flags)
	flags.BoolVar(&asJSON, "json", false, "print the result as JSON, with the texts of all versions and documents, and all paths of violations")
	return cmd
}

// evidencePaths limits the number of paths that the text output lists for each violation.
const evidencePaths = 5

func writeEvidence(w io.Writer, a *evidence.Answer, c *evidence.Check) error {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	for _, p := range c.Problems {
		line("NOT WHOLE: %s", p)
	}
	for _, g := range c.Gaps {
		line("MISSING: %s", g)
	}
	line("The log covers %s to %s. Times are UTC.", stamp(a.First), stamp(a.Last))
	line("%s", leftOut(a))
	line("\nPublished:")
	for _, p := range a.Published {
		line("  %s of %s, in force from %s to %s%s%s", p.Label(), p.Name, stamp(p.From), until(p.Until), publishedBy(p.By, p.Note), inLog(p.Log))
		for _, pause := range p.Pauses {
			line("    the log has no records from %s to %s, so it is not known whether the version was in force then", stamp(pause.From), stamp(pause.Until))
		}
		line("    version %s", p.ID)
		line("    policy sha256 %s; %s; catalog of %s", p.SHA256, p.Program, p.Catalog)
		for _, d := range p.Documents {
			line("    %s %s of %s", d.Name, d.Version, hostText(d.Host))
		}
		for _, d := range p.Served {
			line("    %s %s of %s, first read by a crawler at %s", d.Name, d.Version, d.Host, stamp(d.First))
		}
	}
	line("\nChanges by people: %s", none(len(a.Acts)))
	for _, act := range a.Acts {
		line("  %s: %s of %s by %s%s, sha256 %s%s", stamp(act.Time), act.What, act.Name, english.OneLine(act.By), quoted(act.Note), act.SHA256, inLog(act.Log))
	}
	line("\nRead by crawlers: %s", none(len(a.Reads)))
	for _, r := range a.Reads {
		line("  %s (%s) read %s %s of %s %s, first at %s, last at %s, while %s was in force%s%s", r.Crawler, identityText(r.Identity), cmp.Or(r.Document, "robots.txt"), r.Robots, r.Host, times(r.Count), stamp(r.First), stamp(r.Last), publicationText(r.Published), forms(r.Forms), inLog(r.Log))
		proofs(line, r.Proofs)
	}
	line("\nViolations: %s", none(len(a.Violations)))
	for _, v := range a.Violations {
		read := "read before this log began"
		if !v.Read.IsZero() {
			read = "read at " + stamp(v.Read)
		}
		line("  %s (%s) on %s, against robots.txt %s, %s:", v.Crawler, identityText(v.Identity), v.Host, v.Robots, read)
		line("    %s from %s to %s; %d answered, %d blocked%s", times(v.Count), stamp(v.First), stamp(v.Last), v.Served, v.Blocked, inLog(v.Log))
		proofs(line, v.Proofs)
		for _, l := range v.Lines {
			line("    %s against line %d: %s", times(l.Count), l.Line, l.Says)
		}
		for _, p := range v.Paths {
			line("    %d  %s", p.Count, p.Path)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func publishedBy(name, note string) string {
	if name == "" {
		return quoted(note)
	}
	return ", published by " + english.OneLine(name) + quoted(note)
}

// quoted returns a note in quotation marks, with a separator, to be appended to a text.
func quoted(note string) string {
	if note == "" {
		return ""
	}
	return " (“" + english.OneLine(note) + "”)"
}

// inLog returns a phrase that names the directory of an entry's log. dir is empty if there is only one log.
func inLog(dir string) string {
	if dir == "" {
		return ""
	}
	return ", says " + dir
}

// until returns a text for the time when a version ceased to be in force.
func until(t time.Time) string {
	if t.IsZero() {
		return "the end of the log"
	}
	return stamp(t)
}

// hostText returns a text for the hosts of a document.
func hostText(host string) string { return cmp.Or(host, "all hosts that no rule names") }

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") }

func none(n int) string {
	if n == 0 {
		return "nothing in the log"
	}
	return ""
}

func times(n int64) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// identityText returns the word for a crawler's identity, such as "verified".
func identityText(i activity.Identity) string {
	if i == activity.Unverified {
		return "unverified"
	}
	return string(i)
}

// leftOut describes the share of events that are missing in the log.
func leftOut(a *evidence.Answer) string {
	if a.Omitted == 0 {
		return fmt.Sprintf("The log has %d events, and does not report that any events were left out.", a.Events)
	}
	return fmt.Sprintf("Caddy left out %d of %d events (%.1f %%) when it wrote the log, so the true numbers may be higher than the numbers below.",
		a.Omitted, a.Events+a.Omitted, 100*float64(a.Omitted)/float64(a.Events+a.Omitted))
}

// publicationText returns a text that names the versions in labels.
func publicationText(labels []string) string {
	if len(labels) == 0 {
		return "a version that the log does not have"
	}
	return english.List(labels, "and")
}

// forms describes the variants of a robots.txt that were sent.
func forms(all []string) string {
	if len(all) == 0 {
		return ""
	}
	return ", over " + english.List(all, "and")
}

// proofs prints the proofs of a crawler's identity.
func proofs(line func(string, ...any), all []string) {
	for _, p := range all {
		line("    verified: %s", p)
	}
}
