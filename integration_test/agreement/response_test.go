// SPDX-License-Identifier: Apache-2.0

package agreement

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/net/html"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/crawlertest"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/policytest"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

// visit sends the request of a question, and compares the answer and its explanation with the policy.
func (x *exam) visit(q question) error {
	x.visits++
	x.model(q)
	why, err := x.explanation(q)
	if err != nil {
		return err
	}
	a, err := x.at.get(q)
	if err != nil {
		return err
	}
	if q.http2 {
		x.count("HTTP/2")
	}
	x.explained(q, why)
	if crawlertest.NormalPath(strings.SplitN(q.path, "?", 2)[0]) == "/robots.txt" {
		same(x, "edge: status", q, statusOf(a), http.StatusOK)
		return nil
	}
	if name, _, _ := strings.Cut(q.path, "?"); x.rslDocument(q.host) != "" && crawlertest.NormalPath(name) == x.p.spec.Publish.RSL {
		x.count("RSL: the document is visited")
		same(x, "edge: status", q, statusOf(a), http.StatusOK)
		return nil
	}
	refusal := x.edge(q, q.client.identity)
	same(x, "explain: edge", q, refusedBy(why), refusal)
	if q.client.at(x.at) != q.client.identity {
		refusal = x.edge(q, q.client.at(x.at)) // explain uses the identity that the server knows, but this site does not look up host names
	}
	if x.at.maxMode != policy.ModeBlock {
		refusal = "" // the site limits the mode, but explain describes the policy
	}
	if refusal != "" {
		x.refused(q, a, refusal)
		if refusal != "close" && q.again == askHead {
			return x.head(q, a, nil)
		}
		return nil
	}
	page := &pages[q.page]
	same(x, "edge: status", q, statusOf(a), page.status)
	if a.dropped || a.status != page.status {
		return nil
	}
	if c, _ := x.p.info(q.token); c.RobotsOnly { // explain shows no page for a control token, which never fetches pages
		anyone := q
		anyone.token, anyone.agent = "", "unheard-of/1.0"
		if why, err = x.explanation(anyone); err != nil {
			return err
		}
	}
	x.headers(q, a, page, why)
	x.elements(q, a, page, why)
	x.sameHeaders(q, a, page, why)
	return x.twice(q, a, page, why)
}

func statusOf(a answer) int {
	if a.dropped {
		return 0
	}
	return a.status
}

// model compares the result of Decide with the result of the naive evaluator.
func (x *exam) model(q question) {
	for _, u := range policy.Usages() {
		asked := policytest.Question{Token: q.token, Identity: policytest.Identities[(x.visits+int(u))%3], Purposes: q.purposes, Host: q.host, Path: q.path, Usage: u}
		same(x, "Decide: naive evaluation", q, x.p.decide(asked).Verdict, x.p.naive(asked).Verdict)
	}
}

// edge returns what the server must do with a request of a client with the identity in who. The result is "" if the
// server must not block the request, and "close" if it must close the connection. In all other cases, it is the status
// of the block as text.
func (x *exam) edge(q question, who policy.Identity) string {
	visitor := x.p.visitor(q.token)
	if visitor == "" || x.open(q.host, crawlertest.ServedPaths(q.path)) {
		return ""
	}
	mode := policy.ModeOff
	for i, at := range x.readings(q.path) {
		if who == policy.Verified && x.p.site.Policy.DemandsIdentity() {
			x.count("edge: a verified client under rules that ask for it")
		}
		a := policytest.Decide(at.spec, policytest.Question{Token: visitor, Identity: who, Purposes: q.purposes, Host: q.host, Path: at.path, Usage: policy.Crawl, Now: x.p.now})
		if a.Verdict != policy.Disallowed {
			continue
		}
		if i > 0 && mode == policy.ModeOff {
			x.count("edge: disallowed as a server may read the path")
		}
		mode = max(mode, a.Mode)
	}
	e := x.p.spec.Enforcement
	if who == policy.Impostor && e.Impostors > max(mode, policy.ModeOff) {
		x.count("edge: an impostor under a rule for impostors")
		mode = e.Impostors
	}
	switch {
	case mode != policy.ModeBlock:
		if mode == policy.ModeLog {
			x.count("edge: would be blocked")
		}
		return ""
	case e.Close:
		return "close"
	case e.Status == 0:
		return "403"
	}
	return fmt.Sprint(e.Status)
}

// open reports whether a request for a path must never be blocked. Servers may interpret a path in several ways, and
// paths lists these interpretations. The result is true only if each of them is a path that is never blocked, such as
// /robots.txt. See "Which requests are blocked" in docs/concepts/asking-and-blocking.md.
func (x *exam) open(host string, paths []string) bool {
	return !slices.ContainsFunc(paths, func(path string) bool {
		name, _, _ := strings.Cut(path, "?")
		license := x.p.spec.Publish.License == "https://"+policy.NormalizeHost(host)+name && name != "/"
		return name != "/robots.txt" && !strings.HasPrefix(name, "/.well-known/") && !license && (name != x.p.spec.Publish.RSL || name == "")
	})
}

// refused compares a block with its description in docs/concepts/asking-and-blocking.md.
func (x *exam) refused(q question, a answer, want string) {
	x.count("edge: blocked")
	if want == "close" {
		same(x, "edge: status", q, statusOf(a), 0)
		return
	}
	same(x, "edge: status", q, fmt.Sprint(statusOf(a)), want)
	if a.dropped {
		return
	}
	same(x, "edge: not to be stored", q, a.header.Get("Cache-Control"), "no-store")
	for _, field := range x.at.fields {
		switch field {
		case "Robots-Tag":
			r, err := crawlertest.EvaluateTag(a.header.Values(field), strings.ToLower(q.token))
			same(x, "edge: the block is not to be indexed", q, fmt.Sprint(r.Index, err), "false <nil>")
		case "X-Robots-Tag":
			same(x, "edge: the block is not to be indexed", q, crawlertest.EvaluateX(a.header.Values(field), strings.ToLower(q.token)).Index, false)
		}
	}
}

// rights returns what the policy allows a crawler to do with a page. For each reading of the path, it combines the
// rules for this crawler with the rules for everyone. If alone is true, it leaves out the rules for everyone.
func (x *exam) rights(q question, token string, alone bool) crawlertest.Rights {
	return cached(x.p, fmt.Sprint("rights ", token, " ", q.host, " ", q.path, alone), func() crawlertest.Rights {
		r := crawlertest.AllRights()
		for _, at := range x.readings(q.path) {
			r = r.And(policytest.Rights(at.spec, policytest.Question{Token: token, Host: q.host, Path: at.path, Now: x.p.now}))
			if !alone {
				r = r.And(policytest.Rights(at.spec, policytest.Question{Host: q.host, Path: at.path, Now: x.p.now}))
			}
		}
		return r
	})
}

func (x *exam) rightsAt(token, host, path string) crawlertest.Rights {
	return cached(x.p, fmt.Sprint("at ", token, " ", host, " ", path), func() crawlertest.Rights {
		return policytest.Rights(x.p.spec, policytest.Question{Token: token, Host: host, Path: path, Now: x.p.now})
	})
}

// readers returns the crawlers that may read a page. If a site tailors its pages, each page is made only for the
// crawler that requests it, so this crawler is its only reader.
func (x *exam) readers(q question) []string {
	if x.at.tailored {
		return []string{x.p.visitor(q.token)}
	}
	readers := []string{"unheard-of"}
	for _, t := range x.p.tokens {
		if c, _ := x.p.info(t); !c.RobotsOnly {
			readers = append(readers, t)
		}
	}
	return readers
}

// headers compares the header fields of a response with the policy and with the fields that the upstream has sent.
func (x *exam) headers(q question, a answer, page *page, why *explanation) {
	read := fieldRules(x, q, a.header)
	theirs := fieldRules(x, q, page.header)
	for field := range theirs {
		theirs[field] = x.lifted(q, theirs[field])
	}
	for _, token := range x.readers(q) {
		stated, name := x.rights(q, token, x.at.tailored), strings.ToLower(token)
		x.meet(q, token, stated)
		for _, field := range x.at.fields {
			if !strings.HasSuffix(field, "Robots-Tag") {
				continue
			}
			want := stated.And(crawlertest.EvaluateFor(theirs[field], name))
			if field == "Robots-Tag" && x.speaks(q, token, why, a, page) {
				// Robots-Tag must also have the rules of the upstream's X-Robots-Tag, because a crawler that reads
				// Robots-Tag may ignore X-Robots-Tag.
				want = want.And(crawlertest.EvaluateFor(theirs["X-Robots-Tag"], name))
			}
			if want != stated {
				x.count("headers: stricter by the upstream")
			}
			got := crawlertest.EvaluateFor(read[field], name)
			if got != want && got == got.And(want) && x.reported("many-meta-tags") {
				x.count("headers: too long, so said to everyone")
				want = got
			}
			same(x, "headers: "+field, q.of(token), got, want)
		}
	}
	if slices.Contains(x.at.fields, "Content-Usage") {
		x.contentUsageHeader(q, a, page)
	}
	if slices.Contains(x.at.fields, "Content-Signal") {
		x.contentSignalHeader(q, a, page)
	}
	if slices.Contains(x.at.fields, "X-Robots-Tag") {
		says := func(word string, h http.Header) bool {
			return slices.Contains(crawlertest.XRules(h["X-Robots-Tag"])["*"], [2]string{word, ""})
		}
		for _, word := range []string{"noai", "noimageai"} {
			same(x, "headers: "+word, q, says(word, a.header), x.noAI(q) || says(word, page.header))
		}
	}
	if len(x.at.fields) > 0 {
		x.rightsFields(q, a, page)
	}
	if x.at.tailored {
		same(x, "headers: Vary", q, strings.Contains(strings.Join(a.header.Values("Vary"), ","), "User-Agent"), true)
	}
}

// speaks reports whether the header Robots-Tag of a page must contain a rule from the policy. The result is false if
// the policy only lifts rules of the upstream. A tailored page contains only rules for the crawler visitor. Such a rule
// can have no effect, for example max-video-preview:-1. So for tailored pages, speaks also compares the rules in the
// response with the upstream's rules.
func (x *exam) speaks(q question, visitor string, why *explanation, a answer, page *page) bool {
	if !x.at.tailored {
		_, line := why.channel(site.ChannelHeaders).line("Robots-Tag")
		return line
	}
	if x.rights(q, visitor, true) != crawlertest.AllRights() {
		return true
	}
	sent, theirs := fieldRules(x, q, a.header)["Robots-Tag"], x.lifted(q, fieldRules(x, q, page.header)["Robots-Tag"])
	return !maps.EqualFunc(sent, theirs, slices.Equal)
}

// reported reports whether checking the policy file gives a diagnostic with the code.
func (x *exam) reported(code string) bool {
	return slices.ContainsFunc(x.p.diagnostics, func(d policyfile.Diagnostic) bool { return d.Code == code })
}

// fieldRules parses the fields of a header. It returns the rules by name of the field and by audience.
func fieldRules(x *exam, q question, h http.Header) map[string]map[string][][2]string {
	tag, err := crawlertest.TagRules(h.Values("Robots-Tag"))
	if err != nil {
		x.differ("headers: Robots-Tag", q, err, "what three readers read alike")
	}
	return map[string]map[string][][2]string{"Robots-Tag": tag, "X-Robots-Tag": crawlertest.XRules(h.Values("X-Robots-Tag"))}
}

// meet counts the cases in which a page restricts a crawler more than the policy's own decision for the crawler.
func (x *exam) meet(q question, token string, stated crawlertest.Rights) {
	own := x.rightsAt(token, q.host, crawlertest.NormalPath(q.path))
	switch {
	case own == stated:
	case x.rights(q, token, true) == stated:
		x.count("headers: stricter as a server may read the path")
	default:
		x.count("headers: what is said to everyone holds for one exempted")
	}
	if stated != crawlertest.AllRights() {
		x.count("headers: something restricts the reader")
	}
}

func (x *exam) contentUsageHeader(q question, a answer, page *page) {
	line := strings.Join(a.header.Values("Content-Usage"), ", ")
	theirs := strings.Join(page.header["Content-Usage"], ", ")
	for _, u := range preferences {
		want := x.preferred(q, u, x.p.spec.Publish.ContentUsage, theirs, preference(theirs, u))
		same(x, "headers: Content-Usage", q, u.String()+"="+preference(line, u), u.String()+"="+want)
	}
}

// noAI reports whether a page should have noai. This is the case if the policy publishes noai and disallows train-ai.
// On a page made for a single crawler, the policy's rules for this crawler decide; on other pages, the rules for
// everyone decide.
func (x *exam) noAI(q question) bool {
	says := x.preferred(q, policy.TrainAI, x.p.spec.Publish.NoAI, "", "") == "n"
	if says {
		x.count("headers: noai")
	}
	return says
}

// preferred returns the preference that a header must state for the usage u. It combines the policy's preference with
// the preference in theirs, which the upstream sends. If a response is made for a single crawler, the policy's
// preference for this crawler counts. In all other responses, the preference for everyone counts. If the policy does
// not publish this header, the upstream's header is sent. The policy can make it stricter, but not laxer.
func (x *exam) preferred(q question, u policy.Usage, published policy.Switch, field, theirs string) string {
	want := theirs
	for _, at := range x.readings(q.path) {
		asked := policytest.Question{Host: q.host, Path: at.path, Now: x.p.now}
		if x.at.tailored {
			asked.Token = x.p.visitor(q.token)
		}
		_, says, _ := strings.Cut(policytest.Preference(at.spec, asked, u), "=")
		switch {
		case at.anyCase && says != "n": // if the path is read in another letter case, the rules can only restrict
		case published != policy.Off:
			want = stricter(want, says)
		case field != "" && says == "n":
			x.count("headers: an unpublished preference that the upstream states")
			want = says
		}
	}
	return want
}

// stricter returns the stricter of two preferences. The order is n, y, none, the strictest first (AIPREF vocabulary
// section 5.1).
func stricter(a, b string) string {
	for _, v := range []string{"n", "y"} {
		if a == v || b == v {
			return v
		}
	}
	return ""
}

// elements compares the robots meta tags of a page with the policy and with the tags that the upstream's page had.
func (x *exam) elements(q question, a answer, page *page, why *explanation) {
	if !page.html() || x.at.meta == "off" {
		same(x, "page: as it was", q, a.body, page.body)
		return
	}
	if c := a.header.Get("Content-Encoding"); c != "" && a.body != page.body {
		x.count("page: elements in " + c)
	}
	got, err := crawlertest.Elements(a.body)
	if err != nil {
		x.differ("page: elements", q, err, "a page")
		return
	}
	before, err := crawlertest.Elements(page.body)
	if err != nil {
		panic(err)
	}
	all := before
	before = x.lifted(q, before)
	for _, token := range x.readers(q) {
		reads := x.readsElements(token)
		want := x.rights(q, "unheard-of", false)
		if reads || x.at.tailored {
			want = x.rights(q, token, x.at.tailored)
		} else {
			x.count("page: elements for a crawler that reads none with its name")
		}
		if x.at.meta != "replace" || !why.elements() {
			want = want.And(before.To(token))
			if !reads {
				want = want.And(crawlertest.Evaluate(all[strings.ToLower(token)]))
			}
		} else if !reads {
			// This crawler does not read meta tags with its name, so the server leaves the upstream's tags for this
			// crawler in the page.
			want = want.And(crawlertest.Evaluate(all[strings.ToLower(token)]))
		}
		same(x, "page: elements", q.of(token), got.To(token), want)
	}
	for _, word := range [][2]string{{"noai"}, {"noimageai"}} {
		same(x, "page: "+word[0], q, slices.Contains(got["robots"], word), x.noAI(q))
	}
	x.rightsElements(q, a, page, why)
	same(x, "page: its text", q, textOf(a.body), textOf(page.body))
}

// readsElements reports whether a crawler is documented, in the catalog or the policy,
// to read robots meta tags with its name.
func (x *exam) readsElements(token string) bool {
	row, known := x.p.site.File.Catalog.Lookup(token)
	return known && row.ReadsMeta
}

// textOf returns the complete text that a person sees on a page.
func textOf(page string) string {
	doc, err := html.Parse(strings.NewReader(page))
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	for n := range doc.Descendants() {
		if n.Type == html.TextNode || n.Type == html.CommentNode {
			b.WriteString(n.Data)
		}
	}
	return b.String()
}

// A reading is one way in which a server may interpret a path. Some servers decode more characters than others, and
// some ignore letter case. path is the interpreted path, and anyCase is true if letter case is ignored.
type reading struct {
	spec    *policy.Spec
	path    string
	anyCase bool
}

// readings returns the readings of a path in a request.
func (x *exam) readings(sent string) (all []reading) {
	folded := cached(x.p, "folded", func() *policy.Spec { return foldedSpec(x.p.spec) })
	for _, path := range crawlertest.ServedPaths(sent) {
		all = append(all, reading{x.p.spec, path, false}, reading{folded, crawlertest.NormalPath(strings.ToLower(path)), true})
	}
	return all
}

// foldedSpec returns a policy with all patterns in lower case.
func foldedSpec(spec *policy.Spec) *policy.Spec {
	folded := *spec
	folded.Rules = slices.Clone(spec.Rules)
	for i := range folded.Rules {
		r := &folded.Rules[i]
		r.Statements, r.EngineRules = slices.Clone(r.Statements), slices.Clone(r.EngineRules)
		for j := range r.Statements {
			r.Statements[j].Pattern = pathpattern.MustParse(strings.ToLower(r.Statements[j].Pattern.String()))
		}
		for j := range r.EngineRules {
			r.EngineRules[j].Pattern = pathpattern.MustParse(strings.ToLower(r.EngineRules[j].Pattern.String()))
		}
	}
	return &folded
}
