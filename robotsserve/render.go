// SPDX-License-Identifier: Apache-2.0

// Package robotsserve renders a policy as the robots.txt of a host, and serves the file. The file has the same meaning
// as the policy for every reader. Groups of RFC 9309 state what may be crawled. Other channels add their lines to the
// groups, or after them.
package robotsserve

import (
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policy/solve"
	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
)

// maxLine is the maximum length of a line in bytes. Google's parser cuts lines after 2083 * 8 bytes.
const maxLine = 16 << 10

// Options are the options of a rendering apart from the policy and the host.
type Options struct {
	Scheme string // completes sitemaps that the policy names by path; "" means https
	// Below is the site's own file, or nil. The policy must already have the file's lines about crawling as a fallback.
	// Rendering adds the other lines of the file.
	Below *robotstxt.File
}

// with returns the options for a client's scheme, which may be "".
func (o Options) with(scheme string) Options {
	if scheme != "" {
		o.Scheme = scheme
	}
	return o
}

// below returns the options for a client's scheme, which may be "", and for a site's own file.
func (o Options) below(f *robotstxt.File, scheme string) Options {
	o = o.with(scheme)
	o.Below = f
	return o
}

// File is the robots.txt of a host.
type File struct {
	Body   []byte
	ETag   string // strong (RFC 9110 section 8.8.3)
	Losses []Loss // places in the groups where the file is stricter than the policy
	drawn  *drawing
}

// Loss is a place where the file is stricter than the policy, because in robots.txt the longest match decides, which is
// not enough to express every policy.
type Loss struct {
	Crawlers []string            // product tokens; "*" is everyone who is not named
	Purpose  string              // if Crawlers is empty, the purpose that the group is for, in lower case
	Paths    pathpattern.Pattern // the affected paths; for some of them, the file may agree with the policy
	Rule     *policy.Rule
	Pos      policy.Pos
	Pattern  pathpattern.Pattern // the pattern of the statement
	spelling bool                // the file is only stricter for readers that compare URLs as sent
	allow    bool                // the statement is a permission
	written  string              // the pattern as its author wrote it
	all      bool                // the file may lack the Allow lines of all allow entries
	// combined is true if the group of a purpose lacks an Allow line for the paths, because the group of another
	// purpose disallows them. A crawler with both purposes combines the two groups.
	combined bool
}

// Render renders the robots.txt of a policy for a host, which may have a port. If a problem is an error, the policy
// must not be published, because readers would not read the whole file.
func Render(p *policy.Policy, host string, o Options) (*File, []policy.Problem) {
	return newLayout(p).render(host, o)
}

func (l *layout) render(host string, o Options) (*File, []policy.Problem) {
	d, problems := l.drawBelow(host, o)
	v, more := d.vary(l.p, host, o)
	return d.file(l.p, v, append(problems, more...))
}

// drawBelow is like draw, but also merges o.Below, the site's own file.
func (l *layout) drawBelow(host string, o Options) (*drawing, []policy.Problem) {
	if o.Below == nil {
		return l.draw(host, nil, maxRoom)
	}
	return l.fit(host, o.Below)
}

func (d *drawing) file(p *policy.Policy, v varying, problems []policy.Problem) (*File, []policy.Problem) {
	body := slices.Concat(v.front, d.head, v.sitemaps, d.tail)
	if len(body) > robotstxt.MaxSize {
		problems = append(problems, tooLarge(p, len(body)))
	}
	return &File{Body: body, ETag: d.etag(v), Losses: d.losses, drawn: d}, problems
}

func tooLarge(p *policy.Policy, n int) policy.Problem {
	return policy.NewProblem(policy.Error, "robots-txt-too-large", largestRule(p),
		"robots.txt has %d KiB, and crawlers read only the first %d KiB; write fewer paths, for example a directory instead of each file in it",
		(n+1023)>>10, robotstxt.MaxSize>>10)
}

func notRendered(p *policy.Policy, rendered, all int) policy.Problem {
	return policy.NewProblem(policy.Warning, "hosts-not-rendered", largestRule(p),
		"there are too many hosts or crawlers to check every robots.txt, so only %d of %d were checked, those with the most rules first. "+
			"Write rules for categories or operators, or name fewer hosts", rendered, all)
}

func largestRule(p *policy.Policy) (pos policy.Pos) {
	most := 0
	for i := range p.Spec().Rules {
		r := &p.Spec().Rules[i]
		if size := r.Lines() + len(r.For); size > most {
			most, pos = size, r.Pos
		}
	}
	return pos
}

// drawing is a robots.txt without the parts that contain the host's name.
type drawing struct {
	first      []byte            // the start of the file
	license    string            // the line that names a license, or ""
	theirs     string            // comments of the site's own file, or ""
	head, tail []byte            // the groups, and the part after the sitemaps
	documents  []document        // documents that the file names
	hidden     bool              // search engines cannot find any page, so there are no sitemaps
	sum        [sha256.Size]byte // the SHA-256 of head and tail
	eol        string
	groups     []*group        // in the order in which they are printed
	left       map[string]bool // crawlers that a group's comment counts without naming them; the key is the token in lower case
	losses     []Loss
	work       int // the work done, in steps of a budget
	shut       int // number of crawlers whose groups had no room
}

// costOfLine is the cost of printing a line, in the steps of a budget.
const costOfLine = 8

// draw renders the parts that are the same for all hosts with the same rules. below is the site's own file, or nil.
// room limits the size of the groups in bytes.
func (l *layout) draw(host string, below *robotstxt.File, room int) (*drawing, []policy.Problem) {
	g := &grouping{
		layout: l, host: host, below: below, room: room, budget: solve.NewBudget(),
		star: &group{}, byKey: map[string]*group{}, due: map[string]*group{}, nameless: map[string]bool{}, left: map[string]bool{},
	}
	g.collect()
	records, problems := l.write(host)
	d := &drawing{eol: "\n", groups: g.arrange(), left: g.left}
	if below != nil {
		d.theirs = below.Preamble()
	}
	for _, r := range records {
		d.eol = r.EOL
	}
	first, head, tail := writer{eol: d.eol}, writer{eol: d.eol}, writer{eol: d.eol}
	for _, r := range records {
		first.line(r.First)
	}
	if url := l.p.Spec().Publish.License; url != "" {
		d.license = "License: " + url
	}
	d.hidden = len(l.p.Spec().Sitemaps) > 0 && hidden(l.p, host)
	d.first = first.text
	d.documents = documents(l.p, host)
	for _, group := range d.groups {
		head.blank()
		group.write(&head)
	}
	d.head = head.text
	for _, r := range records {
		tail.line("")
		for _, line := range r.lines {
			tail.pos = line.Pos
			tail.line(line.Text)
		}
		d.work += costOfLine * len(r.lines)
	}
	problems = append(g.problems, problems...)
	d.tail = tail.text
	d.sum = sha256.Sum256(slices.Concat(d.head, d.tail))
	d.losses, d.shut = g.losses, g.shut
	d.work += g.budget.Spent()
	for _, group := range d.groups {
		d.work += costOfLine * (len(group.tokens) + len(group.lines))
	}
	problems = slices.Concat(problems, first.problems, head.problems, tail.problems)
	slices.SortStableFunc(problems, func(a, b policy.Problem) int {
		return slices.Compare([]int{a.Pos.Line, a.Pos.Column}, []int{b.Pos.Line, b.Pos.Column})
	})
	return d, problems
}

// least returns the size of the file in bytes without sitemaps, for a host with the longest possible name.
func (d *drawing) least(p *policy.Policy) int {
	n := len(d.first) + len(d.eol) + len(d.head) + len(d.tail) + len(d.license) + len(d.eol)
	longest := writer{eol: d.eol}
	for _, a := range p.Spec().Publish.Preambles {
		own := writer{eol: d.eol}
		if own.preamble(a.Text); len(own.text) > len(longest.text) {
			longest = own
		}
	}
	longest.preamble(d.theirs)
	n += len(longest.text)
	for _, doc := range d.documents {
		n += len(doc.field+": https://"+doc.path) + maxAuthority + len(d.eol)
	}
	return n
}

// varying holds the parts of the file that contain the host's name.
type varying struct {
	front    []byte // the part before all groups
	sitemaps []byte
}

// varies reports whether the files of a policy contain the host's name.
func varies(p *policy.Policy) bool {
	publish := &p.Spec().Publish
	return namesDocuments(publish) || slices.ContainsFunc(publish.Preambles, func(a policy.Preamble) bool { return a.Host != "" }) ||
		slices.ContainsFunc(p.Spec().Sitemaps, func(s policy.Sitemaps) bool {
			return s.Host != "" || slices.ContainsFunc(s.Addresses, func(a string) bool { return a[0] == '/' })
		})
}

// vary returns the parts that depend on the host, and problems with the sitemaps of a merged file.
func (d *drawing) vary(p *policy.Policy, host string, o Options) (varying, []policy.Problem) {
	if o.Scheme == "" {
		o.Scheme = "https"
	}
	w := writer{text: slices.Clone(d.first), eol: d.eol}
	w.preamble(p.Spec().Publish.PreambleOf(host))
	if d.theirs != "" {
		w.line(theirsComment + ":")
		w.preamble(d.theirs)
	}
	if d.license != "" {
		w.line(d.license) // must precede all groups; otherwise the line would only belong to the last group
	}
	for _, doc := range d.documents {
		if isAuthority(host) {
			w.line(doc.field + ": " + o.Scheme + "://" + strings.ToLower(host) + doc.path)
		}
	}
	if len(d.head) > 0 {
		w.blank()
	}
	v := varying{w.text, d.sitemaps(p, host, o)}
	var problems []policy.Problem
	if o.Below != nil {
		problems = addSitemaps(o.Below, d, &v, host, o)
	}
	d.addLines(p, o, &v)
	return v, problems
}

// addLines adds the lines outside groups, the lines of the policy first. It leaves out lines that do not fit.
func (d *drawing) addLines(p *policy.Policy, o Options, v *varying) {
	w := writer{eol: d.eol}
	there := map[string]bool{}
	room := robotstxt.MaxSize - len(v.front) - len(d.head) - len(d.tail) - len(v.sitemaps)
	add := func(lines []string, comment string) {
		for _, text := range lines {
			if there[text] || len(w.text)+len(comment)+len(text)+3*len(d.eol) > room {
				continue
			}
			w.blankOnce()
			if comment != "" {
				w.line(comment)
				comment = ""
			}
			there[text] = true
			w.line(text)
		}
	}
	add(p.Spec().Publish.Lines, "")
	if o.Below != nil {
		add(o.Below.OtherLines(), theirsComment)
	}
	v.sitemaps = append(v.sitemaps, w.text...)
}

// etag returns the entity tag of the complete file.
func (d *drawing) etag(v varying) string {
	h := sha256.New()
	h.Write(d.sum[:])
	h.Write(v.front)
	h.Write(v.sitemaps)
	return `"` + base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:12]) + `"`
}

// hidden reports whether search engines cannot find any page of a host, so that its sitemaps are useless. It returns
// true if no search engine and no unlisted client may both crawl and index a page.
func hidden(p *policy.Policy, host string) bool {
	classes := p.PublicClasses(host)
	return !slices.ContainsFunc(classes, func(c policy.Class) bool {
		searches := func(id policy.CrawlerID) bool { return p.CrawlerInfo(id).Category == "search" }
		return (len(c.Crawlers) == 0 || slices.ContainsFunc(c.Crawlers, searches)) && finds(p, &c, host)
	})
}

// finds reports whether a class may both crawl and index a page of a host.
func finds(p *policy.Policy, c *policy.Class, host string) bool {
	at := []pathpattern.Pattern{pathpattern.All}
	usages := []policy.Usage{policy.Crawl, policy.Index}
	for _, u := range usages {
		for _, a := range p.Statements(c, u, "") {
			if a.Statement.Allow {
				at = append(at, a.Statement.Pattern.Rooted()...)
			}
		}
	}
	return slices.ContainsFunc(at, func(pattern pathpattern.Pattern) bool {
		return !slices.ContainsFunc(usages, func(u policy.Usage) bool {
			return p.DecideAt(c.Query(host, u, ""), pattern).Verdict == policy.Disallowed
		}) && !tagged(p, c.Query(host, policy.Index, ""), pattern)
	})
}

// tagged reports whether a robots-tag of the policy sends noindex for the pages that match a pattern.
func tagged(p *policy.Policy, q policy.Query, at pathpattern.Pattern) bool {
	q.Path = at.Example()
	return slices.ContainsFunc([]string{"noindex", "none"}, func(name string) bool {
		rules, _, _ := p.EngineRule(q, name)
		return !rules.IsEmpty()
	})
}

// sitemaps returns the Sitemap lines for a host.
func (d *drawing) sitemaps(p *policy.Policy, host string, o Options) []byte {
	var w writer
	w.eol = d.eol
	if d.hidden {
		return nil
	}
	for _, s := range fullAddresses(p.Spec().SitemapsOf(host), host, o) {
		if len(w.text) == 0 {
			w.line("")
		}
		w.line("Sitemap: " + s)
	}
	return w.text
}

// fullAddresses adds the scheme and the host to paths. It leaves out paths if the host is not valid.
func fullAddresses(addresses []string, host string, o Options) (all []string) {
	for _, s := range addresses {
		if strings.HasPrefix(s, "/") {
			if !isAuthority(host) {
				continue
			}
			s = o.Scheme + "://" + strings.ToLower(host) + s
		}
		all = append(all, s)
	}
	return all
}

// maxAuthority is the maximum length of a host with its port, in bytes.
const maxAuthority = 261

// isAuthority reports whether a URL can contain host. The check is necessary because a client can send anything as
// Host.
func isAuthority(host string) bool {
	return host != "" && len(host) <= maxAuthority &&
		strings.Trim(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:[]") == ""
}

type writer struct {
	text     []byte
	eol      string
	pos      policy.Pos       // the place of the rule that the next lines come from
	problems []policy.Problem // problems with lines that are too long
}

func (w *writer) line(s string) {
	if strings.ContainsAny(s, "\r\n") {
		s = strings.NewReplacer("\r", " ", "\n", " ").Replace(s) // a caller's Spec may contain line breaks
	}
	if len(s) > maxLine {
		w.problems = append(w.problems, policy.NewProblem(policy.Error, "line-too-long", w.pos,
			"the line %q… of robots.txt has %d KiB, and crawlers read only the first %d KiB of a line. Shorten it, for example with a pattern for a directory",
			s[:40], (len(s)+1023)>>10, maxLine>>10))
	}
	w.text = append(append(w.text, s...), w.eol...)
}

func (w *writer) preamble(text string) {
	if text == "" {
		return
	}
	for line := range strings.SplitSeq(text, "\n") {
		w.line(strings.TrimRight("# "+commentText(line), " "))
	}
}

// blankOnce writes an empty line if nothing was written yet.
func (w *writer) blankOnce() {
	if len(w.text) == 0 {
		w.line("")
	}
}

func (w *writer) blank() {
	if len(w.text) > 0 {
		w.line("")
	}
}
