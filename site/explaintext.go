// SPDX-License-Identifier: Apache-2.0

package site

import (
	"fmt"
	"io"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/policy"
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
	if len(e.Usages) > 0 {
		b.WriteString("\nWhat the policy says of every usage:\n")
		for _, a := range e.Usages {
			fmt.Fprintf(&b, "  %-22s %-11s %s\n", a.Usage, a.Verdict, a.Reason)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
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
	may := "It may crawl %s: the policy says nothing against it."
	for _, a := range e.Usages {
		if a.Usage != policy.Crawl.String() {
			continue
		}
		may = "It may crawl %s."
		if a.Verdict == policy.Disallowed.String() {
			may = "It may not crawl %s."
		}
	}
	return who + "\n" + fmt.Sprintf(may, e.URL)
}

// String is the reason in words, the place first.
func (r *Reason) String() string {
	if r == nil {
		return "always"
	}
	return fmt.Sprintf("%s, rule %q, %s", r.Place, r.Rule, r.Says)
}
