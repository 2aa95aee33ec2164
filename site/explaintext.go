// SPDX-License-Identifier: Apache-2.0

package site

import (
	"fmt"
	"io"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// WriteText writes the explanation as a text for people.
func (e *Explanation) WriteText(w io.Writer) error {
	var b strings.Builder
	b.WriteString(e.headline())
	b.WriteString("\n")
	if e.Reason != nil {
		fmt.Fprintf(&b, "  because %s\n", e.Reason)
	}
	for i := range e.Despite {
		d := &e.Despite[i]
		fmt.Fprintf(&b, "although %s; this has no effect here, because %s\n", &d.Reason, d.Why)
	}
	for _, c := range e.Channels {
		fmt.Fprintf(&b, "\n%s: %s.\n", c.title(), c.Summary)
		for _, s := range c.Sends {
			fmt.Fprintf(&b, "    %s\n", s)
		}
		for _, r := range c.Reasons {
			fmt.Fprintf(&b, "  because %s\n", &r)
		}
		for _, d := range c.Differs {
			fmt.Fprintf(&b, "  but %s\n", d)
		}
	}
	writeRights(&b, e.Rights)
	if table := ControlsText(e.Controls); table != "" {
		b.WriteString("\n" + table)
	}
	e.Identity.write(&b)
	if len(e.Usages) > 0 {
		b.WriteString("\nWhat the policy says about each usage:\n")
		for _, a := range e.Usages {
			fmt.Fprintf(&b, "  %-22s %-11s %s\n", a.Usage, a.Verdict, a.Reason)
		}
	}
	if e.Expect != "" {
		fmt.Fprintf(&b, "\nTo test this whenever the policy is loaded, add this line to its expect section:\n  - %s\n", quoted(e.Expect))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (id *Identity) write(b *strings.Builder) {
	if id == nil {
		return
	}
	fmt.Fprintf(b, "\nIdentity: %s.\n", id.headline())
	if !id.same() {
		for _, o := range id.Outcomes {
			fmt.Fprintf(b, "    %-9s %s\n", o.Identity+":", o.Summary)
		}
	}
	for _, r := range id.Demands {
		fmt.Fprintf(b, "  because %s\n", &r)
	}
}

// quoted returns a line as it must be written in a YAML list. It only needs quotes if it ends in a colon, which is
// possible at the end of a path.
func quoted(line string) string {
	if !strings.HasSuffix(line, ":") {
		return line
	}
	return "'" + strings.ReplaceAll(line, "'", "''") + "'"
}

func (c *Channel) title() string {
	if c.Name == ChannelRobotsTxt {
		return c.Name
	}
	return strings.ToUpper(c.Name[:1]) + c.Name[1:]
}

func (e *Explanation) headline() string {
	who := "Neither the policy nor the catalog has this crawler, so the rules for everyone apply."
	if e.Meant != "" {
		who = fmt.Sprintf("Neither the policy nor the catalog has this crawler (did you mean %q?), so the rules for everyone apply.", e.Meant)
	}
	if c := e.Crawler; c != nil {
		who = c.Token
		if c.Operator != "" {
			who += " of " + c.Operator
		}
		if c.Category != "" {
			who += " (" + c.Category
			if c.AI {
				who += ", category:ai"
			}
			who += ")"
		}
		who += ", " + c.How + "."
		if len(e.Others) > 0 {
			who += " The User-Agent also names " + english.List(e.Others, "and") + "; the strictest decision applies, which is the one about " + c.Token + "."
		}
	}
	return who + "\n" + e.Sentences()
}

// String returns the reason in words. The place comes first.
func (r *Reason) String() string {
	if r == nil {
		return "always"
	}
	kind := "rule"
	switch {
	case r.Rule == "": // a line above the groups of the site's own robots.txt
		return r.Place + ", " + r.Says
	case r.group:
		kind = "group"
	}
	return fmt.Sprintf("%s, %s %q, %s", r.Place, kind, r.Rule, r.Says)
}

// Despite is an allow entry that matches a disallowed path, but does not override the deciding disallow entry.
type Despite struct {
	Reason
	Why string `json:"why"`
}

const maxDespite = 3

// despite lists the allow entries that match a disallowed path but do not allow it, the narrowest first. For each allow
// entry, it explains why the entry does not override the disallow entry that disallows the path. If there are several
// such disallow entries, it uses the narrowest of them.
func (s *Site) despite(p *policy.Policy, q policy.Query) (all []Despite) {
	standing, permissions := p.Reasons(q)
	if len(standing) == 0 {
		return nil
	}
	for i := range permissions {
		a := &permissions[i]
		why := obstacle(p, a, &standing[0])
		if why == "" || a.Rule.Fallback || len(all) == maxDespite {
			continue
		}
		all = append(all, Despite{s.reason(policy.Decision{Verdict: policy.Allowed, Rule: a.Rule, Statement: a.Statement}), why})
	}
	return all
}

// obstacle returns a text that explains why the allow entry a does not override the disallow entry d. It returns "" if
// a can override d, or if a comes from the site's own robots.txt.
func obstacle(p *policy.Policy, a, d *policy.Applied) string {
	switch p.Obstacle(a, d) {
	case policy.WiderHost:
		return "line " + line(d) + " is for fewer hosts"
	case policy.WiderUsage:
		return fmt.Sprintf("line %s is about %s itself", line(d), d.Statement.Usage)
	case policy.WiderAudience:
		return fmt.Sprintf("line %s is for fewer crawlers (%s)", line(d), d.AudienceName())
	case policy.OtherGroup:
		return fmt.Sprintf("neither %s nor %s is narrower than the other", a.AudienceName(), d.AudienceName())
	case policy.NotWithinAI:
		return fmt.Sprintf("line %s is for category:ai, and only a rule for a crawler's name or for one of the four ai- categories can make an exception", line(d))
	case policy.ElseOnly:
		return "a rule for everyone-else cannot allow a path that is disallowed for everyone"
	case policy.Shorter:
		return fmt.Sprintf("the pattern of line %s is longer", line(d))
	case policy.NotWithin:
		return fmt.Sprintf("%s also covers paths outside %s", a.Statement.Pattern, d.Statement.Pattern)
	case policy.NoObstacle, policy.OnlyFallback:
	}
	return ""
}

func line(a *policy.Applied) string { return fmt.Sprint(a.Statement.Pos.Line) }
