// SPDX-License-Identifier: Apache-2.0

package policyinput

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/claim"
	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
	"github.com/robotspolicy/caddy-robots-policy/internal/rfc9309"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/site/compare"
)

// Questions holds the result of comparing two robots.txt files. Package rfc9309, an independent parser, answers the
// same questions about crawlers and paths for both files.
type Questions struct {
	*rfc9309.Comparison

	// Spellings counts answers that differ only for some spellings of a path. For another spelling of the same path,
	// such as / instead of %2F, both files give the same answer.
	Spellings int

	old, now string          // the names of the files
	lost     []string        // for each difference, a path that is disallowed in every spelling, or "" if there is no such path
	searches map[string]bool // the crawlers of search engines
}

// AskBoth compares the robots.txt files of two inputs with an independent parser. If an input is a policy, its file is
// the robots.txt that the policy produces for the host.
func AskBoth(old, now *Input, host string) *Questions {
	// Other stands for all crawlers that the files do not name; some of them belong to search engines
	known, searches := map[string]rfc9309.Crawler{}, map[string]bool{rfc9309.Other: true}
	var all []rfc9309.Crawler
	for _, in := range []*Input{old, now} {
		for _, c := range in.Policy.Crawlers {
			key := strings.ToLower(c.Token)
			if _, again := known[key]; !again {
				known[key] = rfc9309.Crawler{Names: append([]string{c.Token}, c.Follows...), IgnoresStar: c.IgnoresStar}
				searches[c.Token] = c.Category == string(crawlers.CategorySearch)
				all = append(all, known[key])
			}
		}
	}
	catalog, _ := crawlers.Default() // the built-in catalog is valid
	parse := func(in *Input) *rfc9309.File {
		// Like Google's parser, rfc9309 shortens a name to its first word, unless the name is in the catalog.
		return rfc9309.Parse(in.RobotsTxt(host), func(name string) bool {
			_, known := catalog.Lookup(name)
			return known
		})
	}
	x, y := parse(old), parse(now)
	q := &Questions{Comparison: rfc9309.Compare(x, y, all), old: old.robotsName(), now: now.robotsName(), searches: searches}
	for i := range q.Differences {
		d := &q.Differences[i]
		who, ok := known[strings.ToLower(d.Crawlers[0])]
		if !ok {
			who = rfc9309.Crawler{Names: d.Crawlers[:1]}
		}
		lost := ""
		for _, path := range d.Asked {
			switch {
			case d.Usage != "":
				if d.Usage == "search" && d.Old.Allowed && !d.New.Allowed {
					lost = path
				}
			case !d.Sent && !d.Laxer() && path != slashEscaped(path) && !x.Ask(who, slashEscaped(path)).Allowed:
				lost = cmp.Or(lost, path)
			case d.Sent && d.Laxer():
			case d.Sent && x.Respelled(d.Old.Line): // an Allow line has this spelling
				lost = cmp.Or(lost, path)
			case d.Sent, spelled(path, func(other string) bool { return x.Ask(who, other).Allowed == y.Ask(who, other).Allowed }):
				q.Spellings += len(d.Crawlers)
			case lost == "" && !d.Laxer() && !spelled(path, func(other string) bool { return !x.Ask(who, other).Allowed }):
				lost = path
			}
		}
		q.lost = append(q.lost, lost)
	}
	return q
}

// slashEscaped returns path with %2F instead of each "/" in its query. If path already contains an escape, slashEscaped
// returns it unchanged. A policy treats both spellings as the same path. But crawlers do not: they may fetch the
// spelling with "/" if robots.txt disallows only the spelling with %2F.
func slashEscaped(path string) string {
	before, query, _ := strings.Cut(path, "?")
	if strings.Contains(path, "%") || !strings.Contains(query, "/") {
		return path
	}
	return before + "?" + strings.ReplaceAll(query, "/", "%2F")
}

// spelled reports whether the function "is" returns true for one of the spellings of a path.
func spelled(path string, is func(path string) bool) bool {
	return slices.ContainsFunc(rfc9309.Spellings(path), func(other string) bool {
		return pathpattern.NormalizePath(other) == pathpattern.NormalizePath(path) && is(other)
	})
}

// sameSubject holds the data that [sameFile] judges.
type sameSubject struct {
	Asked claim.Known[*Questions]
}

// sameFile is the claim that an independent parser finds the same answers in two files, except for some spellings of
// paths.
var sameFile = claim.Register("same-file", func(s sameSubject) claim.Finding {
	q, _ := s.Asked.Get()
	text := english.Number(int64(q.Questions)) + ` answers to "may this crawler fetch this path?"`
	if q.Preferences > 0 {
		text += " and " + english.Number(int64(q.Preferences)) + " preferences about AI or search"
	}
	text += " compared, " + english.Number(int64(q.Differ)) + " differ"
	if q.Differ == 1 {
		text += "s"
	}
	const only = "only because some crawlers treat two spellings of a URL, such as /a:b and /a%3Ab, as different paths"
	switch q.Spellings {
	case 0:
	case q.Differ:
		text += ", but " + only
	default:
		text += fmt.Sprintf(" (%s of them %s)", english.Number(int64(q.Spellings)), only)
	}
	f := claim.Finding{Text: text, Fails: q.Differ > q.Spellings}
	f.Unjudged = f.Text
	return f
})

// Same returns the claim that an independent parser finds the same answers in both files.
func (q *Questions) Same() claim.Claim {
	var c claim.Coverage
	if !q.Complete {
		c.Gaps = append(c.Gaps, claim.Gap{Name: compare.GapTooLarge, What: "the files are too large to compare completely, so it is not known whether they have the same meaning"})
	}
	return claim.Judge(sameFile, sameSubject{claim.Read(q, c)})
}

// Sentence returns a sentence with the number of questions that the two files answer differently. The sentence also
// mentions the parts that could not be compared.
func (q *Questions) Sentence() string {
	c := q.Same()
	return strings.TrimSuffix(c.Text()+"; "+c.Missing(), "; ")
}

// RobotsTxt returns the text that crawlers receive. For a robots.txt, this is the file itself. For a policy, it is the
// robots.txt that the policy produces for the host.
func (in *Input) RobotsTxt(host string) []byte {
	if in.Robots != nil {
		return in.Robots
	}
	text, _ := in.Site.Robots.Text(host)
	return []byte(text)
}

// robotsName returns the name of the text that RobotsTxt returns.
func (in *Input) robotsName() string {
	if in.Robots != nil {
		return in.Name
	}
	return robotsOfPolicy
}

// robotsOfPolicy is the name of the robots.txt that a policy produces.
const robotsOfPolicy = "the policy's robots.txt"

// Judge compares the robots.txt with the policy that was made from it. It compares them only once.
func (c *Converted) Judge() *Questions {
	if c.judged == nil {
		p := c.File.Policy
		rendered, _ := c.File.Effect.Robots.Text("")
		c.judged = AskBoth(&Input{Name: c.name, Policy: p, Robots: c.data}, &Input{Name: robotsOfPolicy, Policy: p, Robots: []byte(rendered)}, "")
	}
	return c.judged
}

// SearchLoss is a path that search engines may no longer crawl, or no longer show in search results.
type SearchLoss struct {
	Path string
	Show bool   // they may crawl the path, but not show it in search results
	Says string // the lines of both files, and the crawlers
}

// What says what search engines lose.
func (l *SearchLoss) What() string {
	if l.Show {
		return l.Path + " in search results, although they may still crawl it"
	}
	return l.Path
}

// SearchLosses returns what search engines lose. A rendered robots.txt lists several spellings of a disallowed path. If
// the old file already disallows one spelling, the others are not a loss. There is one exception: the spelling with "/"
// in the query is a loss if the old file disallows only the spelling with %2F (see slashEscaped).
func (q *Questions) SearchLosses() (losses []SearchLoss) {
	for i := range q.Differences {
		d := q.Differences[i]
		d.Crawlers = slices.DeleteFunc(slices.Clone(d.Crawlers), func(name string) bool { return !q.searches[name] })
		if len(d.Crawlers) == 0 || q.lost[i] == "" {
			continue
		}
		d.Path = q.lost[i]
		losses = append(losses, SearchLoss{d.Path, d.Usage != "", q.words(&d)})
	}
	return losses
}

// shownDifferences limits the number of lines that WriteText prints.
const shownDifferences = 20

// WriteText writes the Sentence, and then one line for each difference.
func (q *Questions) WriteText(w io.Writer) error {
	end := "."
	if q.Differ > 0 {
		end = ":"
	}
	var b strings.Builder
	fmt.Fprintln(&b, q.Sentence()+end)
	for i := range q.Differences[:min(len(q.Differences), shownDifferences)] {
		fmt.Fprintln(&b, "  "+q.words(&q.Differences[i]))
	}
	if n := len(q.Differences) - shownDifferences; n > 0 {
		fmt.Fprintf(&b, "  and %s\n", english.Count(n, "more difference"))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// words describes one difference between the answers of the two files, with the lines that cause it.
func (q *Questions) words(d *rfc9309.Difference) string {
	if d.Usage != "" {
		return q.preferenceWords(d)
	}
	closing, opening, at, by := q.now, q.old, d.New.Line, d.Old.Line
	if d.Laxer() {
		closing, opening, at, by = q.old, q.now, d.Old.Line, d.New.Line
	}
	what, it := d.Path, "it"
	if len(d.Asked) > 1 {
		what, it = fmt.Sprintf("%s and %s", d.Path, english.Count(len(d.Asked)-1, "similar path")), "them"
	}
	s := fmt.Sprintf("%s:%d disallows %s for %s; %s leaves %s allowed", closing, at, what, someCrawlers(d, 3), opening, it)
	if by > 0 {
		s += fmt.Sprintf(" (line %d)", by)
	}
	return s
}

// preferenceWords describes a difference between preferences, such as "ai-train=no".
func (q *Questions) preferenceWords(d *rfc9309.Difference) string {
	says := func(file string, line int, value string) string {
		if value == "" {
			return file + " states no preference about it"
		}
		if line > 0 {
			file = fmt.Sprintf("%s:%d", file, line)
		}
		return file + " states " + value
	}
	first, second := says(q.now, d.New.Line, d.New.Written), says(q.old, d.Old.Line, d.Old.Written)
	if d.New.Preference == "" {
		first, second = second, first
	}
	return fmt.Sprintf("%s for %s and %s; %s", first, d.Path, someCrawlers(d, 3), second)
}

// someCrawlers lists the crawlers of a difference, the well-known ones first.
func someCrawlers(d *rfc9309.Difference, most int) string {
	who := slices.Clone(d.Crawlers)
	crawlers.SortWellKnown(who)
	for i, name := range who {
		if name == rfc9309.Other {
			who[i] = "crawlers without a group of their own (User-agent: *)"
		}
	}
	return english.Some(who, most)
}
