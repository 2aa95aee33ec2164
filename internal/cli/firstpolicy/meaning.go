// SPDX-License-Identifier: Apache-2.0

package firstpolicy

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

// place is a host and a path. The table that shows the meaning of a policy has a column for each place.
type place struct{ host, path string }

// places returns the columns of the table: the home page, at most two of the paths that crawlers may not read, and at
// most two of the staging hosts.
func (a Answers) places() []place {
	host := a.siteHost()
	all := append(make([]place, 0, 5), place{host, "/"})
	for _, p := range a.Closed[:min(len(a.Closed), 2)] {
		all = append(all, place{host, strings.TrimSuffix(strings.ReplaceAll(p.String(), "*", "x"), "$")})
	}
	for _, h := range a.Staging[:min(len(a.Staging), 2)] {
		all = append(all, place{exampleOf(h), "/"})
	}
	return all
}

// tableRows holds the rows of the table. Each row asks whether some crawlers may do something, such as read a page.
var tableRows = []struct {
	text  string
	kind  crawlers.Category // "" for a single crawler
	token string            // token of the single crawler; "" for an unlisted client
	usage policy.Usage
}{
	{"search engines may read", crawlers.CategorySearch, "", policy.Crawl},
	{"search engines may list", crawlers.CategorySearch, "", policy.Index},
	{"Googlebot-Image may read", "", "Googlebot-Image", policy.Crawl},
	{"crawlers for AI training may read", crawlers.CategoryAITraining, "", policy.Crawl},
	{"AI may be trained with it", "", "", policy.TrainAI},
	{"crawlers for AI answers may read", crawlers.CategoryAIInput, "", policy.Crawl},
	{"AI assistants may read", crawlers.CategoryAIAssistant, "", policy.Crawl},
	{"archives may read", crawlers.CategoryArchive, "", policy.Crawl},
	{"link previews may read", crawlers.CategoryPreview, "", policy.Crawl},
	{"unlisted clients may read", "", "", policy.Crawl},
}

// WriteMeaning writes a table with the decisions of a policy about kinds of crawlers at several places of the site.
// Below the table, it writes which AI search engines may read the site, and which controls of operators the policy
// uses. If AI training remains allowed because of an existing robots.txt, it also writes how to disallow AI training.
func (b *Built) WriteMeaning(w io.Writer, now time.Time) error {
	a, s := b.answers, b.Site
	places := a.places()
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprint(t, "What it means")
	for i, p := range places {
		if i > 0 && p.host == places[0].host {
			p.host = "" // the host is omitted so that the table stays narrow
		}
		fmt.Fprintf(t, "\t%s%s", p.host, p.path)
	}
	fmt.Fprintln(t)
	for _, row := range tableRows {
		fmt.Fprint(t, row.text)
		for _, p := range places {
			fmt.Fprintf(t, "\t%s", meaning(s, row.kind, row.token, policy.Query{Host: p.host, Path: p.path, Usage: row.usage, Now: now}))
		}
		fmt.Fprintln(t)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if err := b.writeAnswerEngines(w, policy.Query{Host: places[0].host, Path: places[0].path, Now: now}); err != nil {
		return err
	}
	if table := site.ControlsText(s.ControlStates(site.ControlScope{}, now)); table != "" {
		if _, err := fmt.Fprint(w, "\n"+table); err != nil {
			return err
		}
	}
	training := policy.Query{Host: places[0].host, Path: places[0].path, Usage: policy.TrainAI, Now: now}
	if a.From == "" || a.To[Training] != Unanswered || meaning(s, "", "", training) == "no" {
		return nil
	}
	_, err := fmt.Fprint(w, "\nThe policy starts from your robots.txt. For questions that no flag answers, the rules of your robots.txt remain.\nThis robots.txt does not disallow AI training. To disallow it, run init again with --ai-training no.\n")
	return err
}

// meaning returns the text of a table cell. It answers the question q for all crawlers of a category. If kind is "", it
// answers q for the crawler with the token. The text is "yes", "no", "no (403)" if the crawlers are blocked, or "3 of
// 8" if only 3 of 8 crawlers are allowed. If the policy neither allows nor disallows AI training, the text is "not
// stated".
func meaning(s *site.Site, kind crawlers.Category, token string, q policy.Query) string {
	ids := []policy.CrawlerID{s.Policy.Crawler(token)}
	if kind != "" {
		all := s.File.Catalog.OfCategory(kind)
		ids = make([]policy.CrawlerID, 0, len(all))
		for _, c := range all {
			ids = append(ids, s.Policy.Crawler(c.Token))
		}
	}
	in, refused, stated := 0, 0, false
	for _, id := range ids {
		q.Crawler = id
		d := s.Policy.Decide(q)
		stated = stated || d.Verdict != policy.Unstated
		if d.Verdict != policy.Disallowed {
			in++
		} else if q.Usage == policy.Crawl && s.Policy.Mode(d) == policy.ModeBlock {
			refused++
		}
	}
	switch {
	case in == len(ids) && !stated && q.Usage == policy.TrainAI:
		return "not stated"
	case in == len(ids):
		return "yes"
	case in == 0 && refused > 0:
		return "no (403)"
	case in == 0:
		return "no"
	}
	return fmt.Sprintf("%d of %d", in, len(ids))
}

// WriteRobotsTxt writes the robots.txt of the site. It shortens long lists of names.
func (b *Built) WriteRobotsTxt(w io.Writer) error {
	const name, most = "User-agent: ", 4
	f, _ := robotsserve.Render(b.Site.Policy, b.answers.siteHost(), robotsserve.Options{})
	names := 0
	var out strings.Builder
	more := func() {
		if names > most {
			fmt.Fprintf(&out, "    (and %d more names)\n", names-most)
		}
		names = 0
	}
	for line := range strings.Lines(string(f.Body)) {
		if !strings.HasPrefix(line, name) {
			more()
		} else if names++; names > most {
			continue
		}
		out.WriteString("    " + line)
	}
	more()
	_, err := fmt.Fprintf(w, "\nThe robots.txt of this policy:\n\n%s\n", out.String())
	return err
}

// WriteNextSteps writes the lines that the user must add to the Caddyfile, and the commands to run next.
func (b *Built) WriteNextSteps(w io.Writer, file string) error {
	a := b.answers
	hosts := append(make([]string, 0, 1+len(a.Staging)), cmp.Or(a.siteHost(), "www.example.com"))
	for _, h := range a.Staging {
		hosts = append(hosts, string(h))
	}
	_, err := fmt.Fprintf(w, `
In the Caddyfile, robots_policy goes before whatever serves the site:

%s {
	robots_policy %s
	reverse_proxy localhost:9000
}

Next:
  caddy robots-policy check %[2]s
  caddy robots-policy explain %[2]s --agent GPTBot https://%[3]s/
  caddy robots-policy audit https://%[3]s/ --policy %[2]s   (when it is live)
`, strings.Join(hosts, ", "), file, hosts[0])
	return err
}
