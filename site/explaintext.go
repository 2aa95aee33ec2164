// SPDX-License-Identifier: Apache-2.0

package site

import (
	"fmt"
	"io"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
)

// WriteText writes the explanation as an answer to a person.
func (e *Explanation) WriteText(w io.Writer) error {
	var b strings.Builder
	b.WriteString(e.headline())
	b.WriteString("\n")
	if e.Reason != nil {
		fmt.Fprintf(&b, "  because %s\n", e.Reason)
	}
	for i := range e.Despite {
		d := &e.Despite[i]
		fmt.Fprintf(&b, "  although %s: this does not open it, as %s\n", &d.Reason, d.Why)
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
	e.Identity.write(&b)
	if len(e.Usages) > 0 {
		b.WriteString("\nWhat the policy says about each usage:\n")
		for _, a := range e.Usages {
			fmt.Fprintf(&b, "  %-22s %-11s %s\n", a.Usage, a.Verdict, a.Reason)
		}
	}
	if e.Expect != "" {
		fmt.Fprintf(&b, "\nTo test this whenever the policy is loaded, add to its expect section:\n  - %s\n", quoted(e.Expect))
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

// quoted is a line of a list in YAML. A path may end in a colon, and only there
// does such a line need quotes.
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
	who := "No crawler that the policy or the catalogue knows: rules for everyone apply."
	if e.Meant != "" {
		who = fmt.Sprintf("No crawler that the policy or the catalogue knows (did you mean %q?): rules for everyone apply.", e.Meant)
	}
	if c := e.Crawler; c != nil {
		who = c.Token
		if c.Operator != "" {
			who += " of " + c.Operator
		}
		if c.Kind != "" {
			who += " (" + c.Kind + ")"
		}
		who += ", " + c.How + "."
		if len(e.Others) > 0 {
			who += " The User-Agent also names " + english.List(e.Others, "and") + "; the strictest decision applies, which is the one about " + c.Token + "."
		}
	}
	return who + "\n" + fmt.Sprintf(e.may(), e.URL)
}

// may is whether it may, with a place for the URL.
func (e *Explanation) may() string {
	readAs := ""
	if e.ReadAs != "" {
		readAs = ", which servers may read as " + strings.ReplaceAll(e.ReadAs, "%", "%%")
	}
	if e.AnyCase {
		readAs += ", because Caddy's path matchers and many applications disregard letter case"
	}
	switch {
	case e.MayCrawl && e.Reason == nil:
		return "It may crawl %s: the policy does not disallow it."
	case e.MayCrawl:
		return "It may crawl %s."
	case e.Crawler == nil:
		return "Crawlers that the policy does not name may not crawl %s" + readAs + ". A client that is not recognised is not refused."
	case e.Open:
		return "It is asked not to crawl %s, but is not refused there: crawlers learn the rules from it."
	}
	return "It may not crawl %s" + readAs + "."
}

// String is the reason in words, the place first.
func (r *Reason) String() string {
	if r == nil {
		return "always"
	}
	return fmt.Sprintf("%s, rule %q, %s", r.Place, r.Rule, r.Says)
}
