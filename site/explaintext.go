// SPDX-License-Identifier: Apache-2.0

package site

import (
	"fmt"
	"io"
	"strings"
)

// WriteText writes the explanation as an answer to a person.
func (e *Explanation) WriteText(w io.Writer) error {
	var b strings.Builder
	b.WriteString(e.headline())
	b.WriteString("\n")
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
	e.Identity.write(&b)
	if len(e.Usages) > 0 {
		b.WriteString("\nWhat the policy says of every usage:\n")
		for _, a := range e.Usages {
			fmt.Fprintf(&b, "  %-22s %-11s %s\n", a.Usage, a.Verdict, a.Reason)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// write writes what is known of an identity; nothing for nil.
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

func (c *Channel) title() string {
	if c.Name == ChannelRobotsTxt {
		return c.Name
	}
	return strings.ToUpper(c.Name[:1]) + c.Name[1:]
}

// headline answers the question itself: who it is, and whether it may.
func (e *Explanation) headline() string {
	who := "Nobody that the policy or the catalogue knows: what holds for everyone holds."
	if e.Meant != "" {
		who = fmt.Sprintf("Nobody that the policy or the catalogue knows (did you mean %q?): what holds for everyone holds.", e.Meant)
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
	}
	return who + "\n" + fmt.Sprintf(e.may(), e.URL)
}

// may is whether it may, with a place for the URL.
func (e *Explanation) may() string {
	readAs := ""
	if e.ReadAs != "" {
		readAs = ", which servers may read as " + strings.ReplaceAll(e.ReadAs, "%", "%%")
	}
	switch {
	case e.MayCrawl && e.Reason == nil:
		return "It may crawl %s: the policy says nothing against it."
	case e.MayCrawl:
		return "It may crawl %s."
	case e.Crawler == nil:
		return "Crawlers that the policy does not name may not crawl %s" + readAs + ". A client that is not recognised is not refused."
	case e.Open:
		return "It is asked not to crawl %s, and is not refused there: crawlers learn the rules by it."
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
