// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/claim"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
)

// decisionTexts maps decisions to descriptions of their effect.
var decisionTexts = map[activity.Decision]string{
	activity.Allowed: "allowed", activity.Disallowed: "disallowed, not blocked", activity.WouldBlock: "disallowed, in dry run", activity.Blocked: "blocked",
	activity.Limited: "over a rate limit (429)", activity.WouldLimit: "over a rate limit, in dry run",
}

// shownCrawlers limits the number of crawlers in a section of the text.
const shownCrawlers = 15

// WriteText writes the report for a terminal, with warnings in red if color is set.
func (r *Report) WriteText(w io.Writer, color bool) error {
	t := textWriter{tabwriter.NewWriter(w, 0, 8, 2, ' ', 0), color}
	for _, g := range r.Coverage.Gaps {
		t.line("gap: %s", g)
	}
	if len(r.Coverage.Gaps) > 0 {
		t.line("Because of these gaps, the numbers below may be wrong. The exit code is 3 unless --accept names each gap.")
	}
	for _, n := range r.NotReplayed {
		t.line("note: %s %s", english.Number(n.Requests), n.What)
	}
	if len(r.Coverage.Gaps)+len(r.NotReplayed) > 0 {
		t.line("")
	}
	t.search(r)
	t.summary(r)
	if r.Old != "" {
		t.section("Newly blocked", r.NewlyRefused)
		t.section("Newly allowed", r.NewlyAllowed)
	} else {
		t.section("Would be blocked", r.NewlyRefused)
	}
	if len(r.NewlyLimited) > 0 {
		t.section("Newly over a rate limit", r.NewlyLimited)
	}
	t.section("Disallowed but not blocked", r.Violations)
	t.rules(r)
	t.unknown(r)
	return t.w.Flush()
}

type textWriter struct {
	w     *tabwriter.Writer
	color bool
}

func (t *textWriter) line(format string, args ...any) { fmt.Fprintf(t.w, format+"\n", args...) }

// search writes the result of the claim about search engines.
func (t *textWriter) search(r *Report) {
	red, plain := "", ""
	if t.color && r.Search.Outcome() == claim.Fails {
		red, plain = "\x1b[1;31m", "\x1b[0m"
	}
	t.line("%s%s%s.", red, r.Search.Text(), plain)
	for _, line := range r.Search.Lines() {
		t.line("  %s", line)
	}
	for _, p := range r.SearchLoss.Paths {
		t.line("  most requested: %s (%s)", p.Path, english.Number(p.Requests))
	}
	t.line("")
}

func (t *textWriter) summary(r *Report) {
	if r.Requests == 0 {
		t.line("No requests.")
		return
	}
	const layout = "2006-01-02 15:04"
	t.line("%s from %s to %s UTC, %s from known crawlers.", plural(r.Requests, "request"),
		r.First.UTC().Format(layout), r.Last.UTC().Format(layout), english.Number(r.Crawlers))
	t.line("")
	for _, v := range r.Verdicts {
		if v.Requests > 0 {
			t.line("  %s\t%s\t%s", decisionTexts[v.Decision], plural(v.Requests, "request"), plural(v.Crawlers, "crawler"))
		}
	}
	t.line("")
}

func (t *textWriter) section(title string, counts []CrawlerCount) {
	if len(counts) == 0 {
		t.line("%s: no requests of crawlers", title)
		t.line("")
		return
	}
	t.line("%s:", title)
	t.line("  crawler\trequests\tverified\tunverified\timpostors\tmost requested")
	for i, c := range counts {
		if i == shownCrawlers {
			rest := int64(0)
			for _, c := range counts[i:] {
				rest += c.Requests
			}
			t.line("  and %d more\t%s\t\t\t\t", len(counts)-i, english.Number(rest))
			break
		}
		path := ""
		if len(c.Paths) > 0 {
			path = c.Paths[0].Path
		}
		t.line("  %s\t%s\t%s\t%s\t%s\t%s", c.Crawler, english.Number(c.Requests), english.Number(c.Verified), english.Number(c.Unverified), english.Number(c.Impostor), path)
	}
	t.line("")
}

func (t *textWriter) rules(r *Report) {
	if len(r.Rules) > 0 {
		t.line("Rules that decided:")
		for _, rc := range r.Rules {
			t.line("  %s\t%s\t%s\t%s disallowed", rc.Place, rc.Rule, plural(rc.Requests, "request"), english.Number(rc.Disallowed))
		}
	}
	if len(r.IdleRules) > 0 {
		t.line("Rules that did not decide any request of this traffic:")
		for _, rc := range r.IdleRules {
			t.line("  %s\t%s\t\t", rc.Place, rc.Rule)
		}
	}
}

// unknownInText limits the number of unlisted clients in the text.
const unknownInText = 8

func (t *textWriter) unknown(r *Report) {
	if r.UnknownRequests == 0 {
		return
	}
	t.line("")
	t.line("Unlisted clients that look automated, which the server never blocks: %s, %s.", plural(r.UnknownClients, "client"), plural(r.UnknownRequests, "request"))
	for i, c := range r.Unknown {
		if i == unknownInText {
			t.line("  and %d more", r.UnknownClients-unknownInText)
			break
		}
		t.line("  %s\t%s", c.Name, english.Number(c.Requests))
	}
}
