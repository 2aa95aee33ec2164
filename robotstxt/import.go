// SPDX-License-Identifier: Apache-2.0

package robotstxt

import (
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/acap"
	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/ascii"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// Imported is a robots.txt converted to a policy.
type Imported struct {
	// Spec is the policy. The positions in it are line numbers of the robots.txt. Its field Crawlers lists the crawlers
	// that the catalog does not have.
	Spec  *policy.Spec
	Notes []Note // notes about lines that were left out, or whose meaning changed
	// Stricter is a text that says why the policy disallows more than most crawlers read in the file, or "".
	Stricter string
	// Comments holds the file's comments about a rule, by the index of the rule in Spec. LineComments holds the
	// comments about a line, by its number. All other comments are in the Spec's preamble.
	Comments     map[int]string
	LineComments map[int]string
}

// ErrTooLarge is an error of Import.
var ErrTooLarge = errors.New("the file has too many lines, names and patterns to find a policy with the same meaning; shorten it, or write the policy by hand")

// maxImported limits the weight of a file, and so the memory and time of an import. A plain line has the weight 1, and
// other lines have more. The largest known file of a site has the weight 12,000.
const maxImported = 12_500

// weight estimates the work of an import (see maxImported). A line in a group with several names is counted once for
// each name. Patterns that can overlap many other patterns cost more.
func (f *File) weight() int {
	n := f.read/16 + len(f.sitemaps) + crossing*len(f.purposes) + stated*f.acap + f.crawlWeight()
	for _, g := range f.Groups {
		n += stated * len(g.lines)
	}
	if star := f.Group("*"); star != nil {
		n += len(star.rules) * len(f.purposes)
	}
	return n
}

const crossing, stated = 4, 16

// crawlWeight returns the weight of the Allow and Disallow lines.
func (f *File) crawlWeight() int {
	const pairs = 100
	n := f.lines + len(f.Groups)
	costly := map[int]bool{} // by line, because a line may belong to thousands of groups
	for _, g := range f.Groups {
		var wild [2]int // number of Disallow and of Allow lines with wildcards
		for i := range g.rules {
			r := &g.rules[i]
			is, known := costly[r.number]
			if !known {
				is = !r.normal() || strings.Contains(r.Pattern.String(), "*")
				costly[r.number] = is
			}
			if is {
				n += crossing
				if r.Allow {
					wild[1]++
				} else {
					wild[0]++
				}
			}
		}
		n += wild[0] * wild[1] / pairs
	}
	return n
}

// Import converts a robots.txt to a policy with the same meaning for every crawler. It reads the file as Google's
// parser does. It converts groups, sitemaps, crawl-delays, purposes, ACAP records, and the lines Content-Usage,
// Content-Signal, App-Directives and License.
//
//	User-agent: *                 - for: everyone-else
//	Disallow: /a/                   disallow: {crawl: /a/}
//	                         →    - for: [AdsBot-Google, …]        # which ignore "*"
//	User-agent: Bingbot             allow: {crawl: /}
//	Disallow: /b/                 - for: Bingbot
//	                                disallow: {crawl: /b/}
//	                                allow: {crawl: /}
//
// The catalog lists the known crawlers, with the groups that they follow or ignore. The policy lists the crawlers of
// the file that are not in the catalog, unless the catalog is empty. Import returns ErrPage or ErrNoLines if data is
// not a robots.txt. It returns ErrTooLarge if the import would need too much time or memory.
func Import(data []byte, catalog []policy.Crawler) (*Imported, error) {
	known := map[string]bool{}
	for _, c := range catalog {
		known[strings.ToLower(c.Token)] = true
	}
	im := importer{
		f: read(data).withTop(), spec: &policy.Spec{}, known: known, crawlers: catalog, comments: map[int]string{},
	}
	if err := im.f.Unreadable(); err == ErrPage || err == ErrNoLines {
		return nil, err
	}
	if !im.f.text {
		im.f.note(0, "crawlers find no lines in this file, so they may fetch everything; a policy without rules also allows everything")
	}
	if im.f.acap > 0 {
		im.acap = acap.Parse(data)
	}
	if im.f.weight()+im.recordWeight() > maxImported {
		return nil, ErrTooLarge
	}
	im.preamble()
	im.sitemaps()
	for _, l := range im.f.licenses {
		im.license(l, false)
	}
	im.otherLines()
	im.usageGroups()
	im.dropNames()
	im.groups()
	if im.tooLarge {
		return nil, ErrTooLarge
	}
	if im.f.acap > 0 {
		im.records(im.acap)
	}
	if im.f.unread != nil {
		im.stricter = "Crawlers cannot read the file, because it is in UTF-16, so they may fetch everything today. The policy disallows what the lines of the file disallow."
	}
	im.f.noteSpellings()
	made := &Imported{
		Spec: im.spec, Notes: im.f.Notes(), Stricter: im.stricter, Comments: im.comments, LineComments: im.f.comments,
	}
	made.DropEmptyRules()
	return made, nil
}

// DropEmptyRules removes empty rules and moves their comments to the next rule.
func (im *Imported) DropEmptyRules() {
	comments := map[int]string{}
	var rules []policy.Rule
	waiting := ""
	for i, r := range im.Spec.Rules {
		waiting = strings.TrimPrefix(waiting+"\n"+im.Comments[i], "\n")
		if len(r.Statements)+len(r.AppDirectives)+len(r.Requests) == 0 && r.CrawlDelay == 0 && !r.NoCrawlDelay && r.PermissionsReference == "" {
			continue
		}
		if waiting = strings.TrimSuffix(waiting, "\n"); waiting != "" {
			comments[len(rules)] = waiting
		}
		rules, waiting = append(rules, r), ""
	}
	im.Spec.Rules, im.Comments = rules, comments
}

type importer struct {
	f         *File
	spec      *policy.Spec
	known     map[string]bool // tokens of the catalog and of spec.Crawlers, in lower case
	crawlers  []policy.Crawler
	comments  map[int]string // comments of rules, by index
	acap      *acap.File
	permitted []policy.Audience // crawlers whose groups allow them to crawl something
	stricter  string            // see Imported.Stricter
	tooLarge  bool              // see cancelDirectives
	below     bool              // the file is a fallback below a policy, so only crawling matters
}

// dropNames removes groups whose names are not valid in a policy file. A name such as "everyone" means several crawlers
// in a policy file. If a group has such a name, dropNames adds a note, because the policy contains the name in another
// form. It also adds a note if a name is the name of a category.
func (im *importer) dropNames() {
	im.dropGroups(func(g *Group) bool {
		purpose, category := strings.TrimPrefix(g.Name, PurposePrefix), crawlers.Category(ascii.Lower(g.Name))
		switch name := (policy.Audience{Kind: policy.ForToken, Name: g.Name}).String(); {
		case g.Name == "*":
			return false
		case !im.name(g.Name):
			if !slices.ContainsFunc(im.f.purposes, func(p *Group) bool { return strings.EqualFold(p.Name, purpose) }) {
				im.misnamed(g.number, g.Name, "import leaves out its group")
			}
			return true
		case name != g.Name:
			im.f.note(g.number, "in a policy, %q means several crawlers, so import writes the name of this crawler as %s", g.Name, name)
		case category.Valid() || category == crawlers.CategoryAI:
			im.f.note(g.number, "in the policy, %q is the name of one crawler, as in this robots.txt; crawlers of the category are called category:%s", g.Name, string(category))
		}
		return false
	})
}

// misnamed adds a note about a name that is not valid in a policy file. left is the end of the note, which says what is
// left out for this reason.
func (im *importer) misnamed(line int, name, left string) {
	im.f.note(line, "%q cannot be the name of a crawler in a policy; %s", name, left)
}

// name reports whether a crawler's name is valid in a policy file. It adds a valid name to the crawlers of the policy
// unless the catalog has it.
func (im *importer) name(name string) bool {
	if !crawlers.CanBeListed(name) || strings.HasPrefix(name, PurposePrefix) && len(im.f.purposes) > 0 {
		return false
	}
	if key := strings.ToLower(name); len(im.known) > 0 && !im.known[key] {
		im.known[key] = true
		im.spec.Crawlers = append(im.spec.Crawlers, policy.Crawler{Token: name, RobotsOnly: crawlers.NamesBrowser(name)})
	}
	return true
}

// crawl returns a statement about crawling. line is the number of its line in robots.txt, or 0 if it has none.
func crawl(allow bool, p pathpattern.Pattern, line int) policy.Statement {
	return policy.Statement{Pos: position(line), Allow: allow, Usage: policy.Crawl, Pattern: p}
}

// position returns the start of a line, or the zero Pos for line 0.
func position(line int) policy.Pos {
	if line == 0 {
		return policy.Pos{}
	}
	return policy.Pos{Line: line, Column: 1}
}

// noteSpellings adds a note about each Disallow line whose path crawlers may spell in several ways, such as `/a,b` and
// `/a%2Cb`. The robots.txt of a policy has a line for each of these spellings. In the original file, the line has only
// one spelling, and some crawlers do not recognize the others.
func (f *File) noteSpellings() {
	said := map[int]bool{}
	for _, g := range f.Groups {
		for _, r := range g.rules {
			if r.Allow || said[r.number] {
				continue
			}
			said[r.number] = true
			if spelled := pathpattern.Spell(r.Pattern, r.Written); len(spelled.Prohibition()) == 1 {
				continue
			}
			f.note(r.number, "crawlers may spell the path %q in several ways, because they percent-encode different characters. The new robots.txt lists up to four of them, and the server treats "+
				"all of them as the same path. Some crawlers compare only the spelling in your robots.txt", r.text())
		}
	}
}

const maxPreamble = 32 << 10

// aboutRights matches comments about rights in the languages of the European Union: "all rights reserved", reservations
// under Article 4 of Directive (EU) 2019/790 or a national law, and the words of licenses.
var aboutRights = regexp.MustCompile(`(?i)copyright|\(c\) ?[0-9]|©|\brights?\b|\br[eé]serv|2019/790|article 4|44b|urhg|urheber|vorbehalt|` +
	`voorbeh|auteursrecht|förbeh|forbeh|upphovsrätt|ophavsret|oikeu|tekijänoik|õigus|tiesības|teisės|zastrzeż|praw[ao]? aut|vyhrazen|vyhraden|` +
	`pridržan|autorsk|jogfennt|fenntart|szerzői|drepturi|direitos|derechos|diritti|droits|drittijiet|δικαι|права|` +
	`data[- ]?mining|\btdm|datengewinnung|fouille de|l122-5|\blicen[cs]|terms of|nutzungsbedingungen|prohibited|forbidden|permission`)

// Preamble returns the comments that a policy publishes: the comment at the start of the file, and all comments about
// rights. The lines do not have "#".
func (f *File) Preamble() string {
	text, _ := f.preamble()
	return text
}

// preamble is like Preamble, but also returns a line number: the first line with a comment about rights that is not
// part of the comment at the start of the file. If there is no such line, first is 0.
func (f *File) preamble() (text string, first int) {
	parts := []string{strings.TrimRight(f.header, "\n")}
	for _, line := range slices.Sorted(maps.Keys(f.comments)) {
		if c := f.comments[line]; aboutRights.MatchString(c) && !slices.Contains(parts, c) {
			parts = append(parts, c)
			if first == 0 {
				first = line
			}
		}
	}
	lines := strings.Split(strings.TrimLeft(strings.Join(parts, "\n"), "\n"), "\n")
	lines = slices.DeleteFunc(lines, func(l string) bool { return strings.HasPrefix(l, "ACAP version=") || !printable(l) })
	text = strings.Trim(strings.Join(lines, "\n"), "\n")
	if len(text) > maxPreamble {
		text = text[:maxPreamble]
		text = text[:strings.LastIndexByte(text, '\n')+1]
		f.note(0, "the comments for the start of the new robots.txt have more than %d KiB in total; only the first of them are kept", maxPreamble>>10)
	}
	return strings.TrimRight(text, "\n"), first
}

func (im *importer) preamble() {
	text, line := im.f.preamble()
	if text == "" {
		return
	}
	im.spec.Publish.Preambles = []policy.Preamble{{Text: text}}
	for n, c := range im.f.comments {
		if aboutRights.MatchString(c) {
			delete(im.f.comments, n)
		}
	}
	if aboutRights.MatchString(text) {
		im.f.note(line, "the comments of the file mention rights. They become the preamble (publish: {preamble: …}), which few programs read. "+
			"To reserve rights in a form that programs read, disallow train-ai and ai-use and set publish: {tdmrep: on}")
	}
}
