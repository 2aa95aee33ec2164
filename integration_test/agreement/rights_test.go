// SPDX-License-Identifier: Apache-2.0

package agreement

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/html"

	"github.com/robotspolicy/caddy-robots-policy/channels"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/crawlertest"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/policytest"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/rights/tdmrep"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
)

// countRegisters counts how many decisions were compared under policies that publish a kind of rights document or
// signal. It adds t.visits to the count of each kind that p publishes.
func (t *tally) countRegisters(p *policy.Publish) {
	all := true
	for _, r := range []struct {
		name string
		on   bool
	}{
		{"controls", p.Controls != policy.Off},
		{"usage-tokens", p.UsageTokens != policy.UsageTokens{}},
		{"content-signal", p.ContentSignal == policy.On},
		{"content-usage", p.ContentUsage != policy.Off},
		{"noai", p.NoAI != policy.Off},
		{"rsl", p.RSL != ""},
		{"tdmrep", p.TDMRep == policy.On},
	} {
		if r.on {
			t.seen["decisions with "+r.name] += t.visits
		}
		all = all && r.on
	}
	if all {
		t.seen["decisions with every register"] += t.visits
	}
}

// controlsTraining reports whether a token controls the AI training of an operator, and the
// policy publishes its decision under the token.
func (x *exam) controlsTraining(token string) bool {
	return x.p.spec.Publish.Controls != policy.Off && slices.ContainsFunc(x.p.spec.Crawlers, func(c policy.Crawler) bool {
		return c.RobotsOnly && c.Category == "ai-training" && strings.EqualFold(c.Token, token)
	})
}

// everyone returns the verdict about a usage that rights documents must contain. It is "disallowed" if the policy
// disallows the usage for at least one client, and "allowed" if the policy allows it for everyone.
func (x *exam) everyone(host, path string, u policy.Usage) policy.Verdict {
	return x.everyoneReading(host, reading{path: path}, u)
}

// everyoneReading is like everyone, but returns the verdict for one reading of a path.
func (x *exam) everyoneReading(host string, at reading, u policy.Usage) policy.Verdict {
	key, spec := "everyone", x.p.site.File.Spec
	if at.anyCase {
		key = "everyone, in any case"
	}
	e := cached(x.p, key, func() *policytest.Everyone {
		if at.anyCase {
			spec = foldedSpec(spec)
		}
		return policytest.NewEveryone(spec)
	})
	return cached(x.p, key+" "+host+" "+at.path+" "+u.String(), func() policy.Verdict { return e.Verdict(host, at.path, u) })
}

// reservation returns the value of tdm-reservation that follows from the policy, or "" if there is none.
func (x *exam) reservation(host, path string) string {
	return x.reservationReading(host, reading{path: path})
}

func (x *exam) reservationReading(host string, at reading) string {
	train := x.everyoneReading(host, at, policy.TrainAI)
	switch {
	case train == policy.Disallowed, x.everyoneReading(host, at, policy.AIUse) == policy.Disallowed:
		return "1"
	case x.p.spec.Publish.TDMRep == policy.Off:
	case train == policy.Allowed:
		return "0"
	}
	return ""
}

// servedReservation returns the value of tdm-reservation that a response must have. It is the strictest value of all
// readings of the path. A reading that ignores letter case is used only if it reserves the rights.
func (x *exam) servedReservation(q question) (want string) {
	for _, at := range x.readings(q.path) {
		if says := x.reservationReading(q.host, at); !at.anyCase || says == "1" {
			want = max(want, says)
		}
	}
	if want == "1" && !slices.ContainsFunc(crawlertest.ServedPaths(q.path), func(path string) bool { return x.reservation(q.host, path) == "1" }) {
		x.count("TDMRep: reserved in another letter case")
	}
	return want
}

// rslDocument returns the path of the RSL document of a host, or "" if there is none.
func (x *exam) rslDocument(host string) string {
	states := cached(x.p, "states "+host, func() bool {
		return slices.ContainsFunc(x.everywhere(), func(path string) bool {
			return slices.ContainsFunc(preferences, func(u policy.Usage) bool { return x.everyone(host, path, u) != policy.Unstated })
		})
	})
	if !states {
		return ""
	}
	return x.p.spec.Publish.RSL
}

// licenseLine returns the address in the License line of a host's robots.txt.
func (x *exam) licenseLine(host string) string {
	if path := x.rslDocument(host); path != "" && host != "" {
		return "http://" + strings.ToLower(host) + path
	}
	return x.p.spec.Publish.License
}

// theirTDMRep is the tdmrep.json of every upstream that has a robots.txt.
const theirTDMRep = `[{"location": "/a", "tdm-reservation": 1, "tdm-policy": "https://upstream.example/tdm"}, {"location": "/news/*.html", "tdm-reservation": "1"}, {"location": "/", "tdm-reservation": 0}]`

// registers fetches the rights documents of a host, lets independent parsers read them, and compares the results with
// the policy. It uses only a few paths of each host, because more would take too long.
func (x *exam) registers(host string, qs []question) error {
	var paths []string
	for _, q := range qs {
		if path := crawlertest.NormalPath(q.path); !slices.Contains(paths, path) && len(paths) < 4 {
			paths = append(paths, path)
		}
	}
	q := qs[0]
	if err := x.tdmrep(host, q, paths); err != nil {
		return err
	}
	if err := x.rsl(host, q, paths); err != nil {
		return err
	}
	x.usageTokens(host, q, paths)
	return nil
}

// document fetches a rights document with GET, with If-None-Match and with HEAD, and compares the responses. kind is
// the media type of the document. ok is false if the host does not have the document.
func (x *exam) document(q question, path, kind string) (body string, ok bool, err error) {
	q.path, q.coding, q.http2 = path, "identity", false
	a, err := x.at.get(q)
	if err != nil || a.status != http.StatusOK || a.header.Get("Content-Type") != kind || isUpstreamsPage(a.body) {
		return "", false, err
	}
	tag := a.header.Get("Etag")
	again, err := x.at.ask(http.MethodGet, q, [2]string{"If-None-Match", tag})
	if err != nil {
		return "", false, err
	}
	same(x, "registers: 304", q, again.status, http.StatusNotModified)
	head, err := x.at.ask(http.MethodHead, q)
	if err != nil {
		return "", false, err
	}
	same(x, "registers: HEAD", q, head.header.Get("Content-Length")+" "+head.header.Get("Etag"), strconv.Itoa(len(a.body))+" "+tag)
	return a.body, true, nil
}

// isUpstreamsPage reports whether a body is the upstream's JSON page. The upstream serves this page for every path
// where the policy has no document.
func isUpstreamsPage(body string) bool { return strings.HasPrefix(body, `{"a":`) }

func (x *exam) tdmrep(host string, q question, paths []string) error {
	const channel = "TDMRep: tdmrep.json"
	body, ok, err := x.document(q, "/.well-known/tdmrep.json", "application/json")
	if err != nil {
		return err
	}
	if x.p.spec.Publish.TDMRep == policy.Off {
		same(x, channel, q, ok && strings.Contains(body, "tdm-reservation"), false)
		return nil
	}
	read := crawlertest.TDMRep{}
	if ok {
		if read, err = crawlertest.ReadTDMRep(body); err != nil {
			x.differ(channel, q, err, "a file as the report asks for: "+body)
			return nil
		}
	}
	theirs := crawlertest.TDMRep{}
	if ok && x.at.merges && x.p.theirs != "" {
		if theirs, err = crawlertest.ReadTDMRep(strings.ReplaceAll(theirTDMRep, `"1"`, "1")); err != nil {
			return err
		}
		x.count("TDMRep: merged with the upstream's")
	}
	for _, path := range paths {
		want := x.reservation(host, path)
		if t, _ := theirs.At(path); t > want {
			want = t
		}
		got, link := read.At(path)
		if got == "1" && want == "" {
			x.answer(channel, 1)
			x.count("TDMRep: unset within what is reserved")
			continue
		}
		if got == "1" && want == "0" && x.mergeCrosses(host) {
			x.answer(channel, 1)
			x.count("TDMRep: exceptions left out where locations cross")
			continue
		}
		same(x, channel, q.at(path), got, want)
		if want == "1" && x.reservation(host, path) == "1" && link != "https://upstream.example/tdm" {
			same(x, "TDMRep: policy", q.at(path), link, x.p.spec.Rights.TDMPolicy)
		}
	}
	return nil
}

// mergeCrosses reports whether a rights document has to reserve more than the policy does, because two of its patterns
// cross. Two patterns cross if they overlap, but neither includes the other, such as /a* and /*b. Both patterns can
// come from the policy, or one of them can be a location in the upstream's document.
func (x *exam) mergeCrosses(host string) bool {
	if x.reported("rights-crossed") {
		return true
	}
	ours := x.p.site.Document(channels.At(&x.p.spec.Publish, tdmrep.Path), host)
	if ours == nil || !x.at.merges || x.p.theirs == "" {
		return false
	}
	theirs, _, err := tdmrep.Parse([]byte(theirTDMRep))
	if err != nil {
		return false
	}
	_, exact := theirs.MergeInto(ours)
	return !exact
}

func (q question) at(path string) question {
	q.path = path
	return q
}

func (x *exam) rsl(host string, q question, paths []string) error {
	const channel = "RSL: document"
	where := x.rslDocument(host)
	if where == "" {
		return nil
	}
	body, ok, err := x.document(q, where, "application/rsl+xml")
	if err != nil || !ok {
		same(x, channel, q, ok, true)
		return err
	}
	doc, err := crawlertest.ReadRSL(body)
	if err != nil {
		x.differ(channel, q, err, "a document as RSL 1.0 asks for: "+body)
		return nil
	}
	for _, path := range paths {
		silent := !slices.ContainsFunc(preferences, func(u policy.Usage) bool { return x.everyone(host, path, u) != policy.Unstated })
		for _, u := range preferences {
			want := ""
			switch x.everyone(host, path, u) {
			case policy.Allowed:
				want = "yes"
			case policy.Disallowed:
				want = "no"
				if slices.ContainsFunc(x.p.spec.Rights.Offers, func(o policy.Offer) bool { return o.Usage == u }) {
					want = "license"
				}
			}
			got := doc.At(path, signals[u]) // RSL uses the same words as Content-Signal
			if silent && got != "yes" && got != want {
				x.answer(channel, 1)
				x.count("RSL: unset within what is prohibited")
				continue
			}
			closed := func(word string) bool { return word == "no" || word == "license" }
			if closed(got) && !closed(want) && x.reported("rights-crossed") {
				x.answer(channel, 1)
				x.count("RSL: closed where paths cross")
				continue
			}
			same(x, channel, q.at(path), u.String()+" "+got, u.String()+" "+want)
		}
	}
	return nil
}

// usageTokens compares the groups of usage tokens with the policy.
func (x *exam) usageTokens(host string, q question, paths []string) {
	const channel = "robots.txt: usage tokens"
	f := x.files[host]
	for i, u := range policy.RightsUsages() {
		token := x.p.spec.Publish.UsageTokens[i]
		if token == "" {
			continue
		}
		named := strings.Contains(f.body, "User-agent: "+token)
		for _, path := range paths {
			want := x.everyone(host, path, u) != policy.Disallowed
			if !named {
				same(x, channel, q.at(path), "no group", map[bool]string{true: "no group", false: "a group"}[want])
				continue
			}
			if path == "/robots.txt" {
				continue // crawlers may always fetch it
			}
			got := f.read.Allowed(token, path)
			if got != want && !got && lostAt(f, token, path) {
				x.answer(channel, 1)
				x.except(channel, "not-flattenable")
				continue
			}
			if want && !got && x.reported("rights-crossed") {
				x.answer(channel, 1)
				x.count("usage tokens: closed where paths cross")
				continue
			}
			same(x, channel, q.at(path), got, want)
		}
	}
}

// rightsFields compares the header fields about rights with the policy and with the fields that the upstream has sent.
func (x *exam) rightsFields(q question, a answer, page *page) {
	want := x.servedReservation(q)
	theirs := page.header.Get("Tdm-Reservation")
	if x.p.spec.Publish.TDMRep == policy.Off && theirs == "" {
		want = "" // an unpublished reservation only makes the upstream's reservation stricter
	} else if x.p.spec.Publish.TDMRep == policy.Off && want > theirs {
		x.count("TDMRep: an unpublished reservation that the upstream contradicts")
	}
	if theirs > want {
		x.count("TDMRep: a header that is stricter by the upstream")
	}
	same(x, "TDMRep: header", q, a.header.Get("Tdm-Reservation"), max(want, theirs))
	if want == "1" {
		link := x.p.spec.Rights.TDMPolicy
		if x.p.spec.Publish.TDMRep == policy.Off {
			link = ""
		}
		same(x, "TDMRep: header, policy", q, a.header.Get("Tdm-Policy"), link)
	}
	link := x.p.spec.Publish.License
	if path := x.rslDocument(q.host); path != "" {
		link = path
	}
	got := ""
	for _, l := range a.header.Values("Link") {
		if target, ok := strings.CutSuffix(l, `>; rel="license"; type="application/rsl+xml"`); ok {
			got = strings.TrimPrefix(target, "<")
		}
	}
	same(x, "RSL: Link", q, got, link)
}

// rightsElements checks the meta tags of TDMRep.
func (x *exam) rightsElements(q question, a answer, page *page, why *explanation) {
	want := x.servedReservation(q)
	before := tdmElements(page.body)
	if len(before) == 0 && x.p.spec.Publish.TDMRep == policy.Off {
		want = ""
	}
	if x.at.meta != "replace" || want == "" || !why.elements() {
		for _, v := range before {
			want = max(want, v)
		}
	}
	got := tdmElements(a.body)
	if want == "" {
		same(x, "TDMRep: meta", q, len(got), 0)
		return
	}
	if len(before) > 0 {
		x.count("TDMRep: a page with an element of its own")
	}
	same(x, "TDMRep: meta", q, strings.Join(got, " "), want)
}

// tdmElements returns the values of tdm-reservation in the head of a page.
func tdmElements(page string) (values []string) {
	doc, err := html.Parse(strings.NewReader(page))
	if err != nil {
		return []string{err.Error()}
	}
	for n := range doc.Descendants() {
		if n.Type != html.ElementNode || n.Data != "meta" || n.Parent.Data != "head" {
			continue
		}
		at := map[string]string{}
		for _, a := range n.Attr {
			at[a.Key] = a.Val
		}
		if strings.EqualFold(at["name"], "tdm-reservation") {
			values = append(values, at["content"])
		}
	}
	return values
}

// lostAt reports whether a Loss says that the group of a token is stricter than the policy at a path.
func lostAt(f *robotsFile, token, path string) bool {
	return slices.ContainsFunc(f.losses, func(l robotsserve.Loss) bool {
		return slices.Contains(l.Crawlers, token) && l.Paths.Match(path)
	})
}
