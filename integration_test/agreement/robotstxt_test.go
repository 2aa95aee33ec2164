// SPDX-License-Identifier: Apache-2.0

package agreement

import (
	"fmt"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/dunglas/httpsfv"
	"github.com/temoto/robotstxt"

	"github.com/robotspolicy/caddy-robots-policy/internal/crawlertest"
	"github.com/robotspolicy/caddy-robots-policy/internal/policytest"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
)

// disagreement is where a channel says something else than the policy decides.
type disagreement struct {
	channel   string
	q         question
	got, want string
}

func (d disagreement) String() string {
	if d.q.reader != "" {
		return fmt.Sprintf("%s: %q for %q on %q, read by %q: it says %s, want %s", d.channel, d.q.path, d.q.token, d.q.host, d.q.reader, d.got, d.want)
	}
	return fmt.Sprintf("%s: %q for %q on %q: it says %s, want %s", d.channel, d.q.path, d.q.token, d.q.host, d.got, d.want)
}

// exam holds one policy on one site to what is asked.
type exam struct {
	*tally
	at       *running
	p        *loaded
	theirs   *merged // nil where nothing is merged
	parsers  map[string]*crawlertest.Process
	files    map[string]*robotsFile // by host
	disagree []disagreement
}

func (x *exam) differ(channel string, q question, got, want any) {
	x.disagree = append(x.disagree, disagreement{channel, q, fmt.Sprint(got), fmt.Sprint(want)})
}

// same counts an answer, and tells where it is not what it should be.
func same[T comparable](x *exam, channel string, q question, got, want T) {
	x.answer(channel, 1)
	if got != want {
		x.differ(channel, q, fmt.Sprintf("%v", got), fmt.Sprintf("%v", want))
	}
}

// robotsFile is a robots.txt as it was fetched, with what was told of it.
type robotsFile struct {
	host     string
	body     string
	read     *crawlertest.RobotsTxt
	own      *crawlertest.RobotsTxt // what the policy alone comes to
	losses   []robotsserve.Loss
	problems []policy.Problem
}

// robotsTxt fetches the file of a host and has its readers answer the
// questions.
func (x *exam) robotsTxt(host string, qs []question) error {
	first := qs[0]
	first.path = "/robots.txt"
	a, err := x.at.get(first)
	if err != nil {
		return err
	}
	if a.dropped || a.status != http.StatusOK || !strings.HasPrefix(a.header.Get("Content-Type"), "text/plain") {
		x.differ("robots.txt", qs[0], fmt.Sprintf("%+v", a), "a text with status 200")
		return nil
	}
	file := x.rendered(host)
	same(x, "robots.txt: as rendered here", qs[0], a.body, file.body)
	file.body, file.read = a.body, crawlertest.ReadRobotsTxt(a.body)
	x.files[host] = file
	if err := x.robotsAgain(first, a); err != nil {
		return err
	}
	x.wholeFile(file, first)
	qs = slices.DeleteFunc(slices.Clone(qs), func(q question) bool {
		return crawlertest.NormalPath(q.path) == "/robots.txt" // implied, RFC 9309 section 2.2.2
	})
	temoto, err := robotstxt.FromString(a.body)
	if err != nil {
		x.differ("robots.txt: temoto/robotstxt", question{host: host}, err, "a file that it can read")
		return nil
	}
	for i, q := range qs {
		if asksTwice(qs, i) {
			continue
		}
		if q.token == "" {
			q.token = "ZetaBot"
		}
		x.crawl(file, q, temoto)
		x.extensions(file, q)
	}
	x.purposes(file, qs)
	if err := x.otherParsers(file, qs); err != nil {
		return err
	}
	return x.acap(file, qs)
}

// rendered is the file of a host as it should be served, with what is told of it.
func (x *exam) rendered(host string) *robotsFile {
	o := robotsserve.Options{Scheme: "http"}
	f, problems := robotsserve.Render(x.p.site.Policy, host, o)
	own := crawlertest.ReadRobotsTxt(string(f.Body))
	if x.theirs != nil {
		f, problems, _ = robotsserve.Merge(x.p.site.Policy, host, robotsserve.ParseOther([]byte(x.p.theirs)), o)
	}
	return &robotsFile{host: host, body: string(f.Body), own: own, losses: f.Losses, problems: problems}
}

// mayCrawl is what robots.txt should say: it speaks to every client of a name,
// whoever it is, and knows no purposes but those of the catalogue. What the policy
// leaves open the site behind may close.
func (x *exam) mayCrawl(q question) bool {
	a := x.p.naive(x.asked(q, policy.Crawl))
	return a.Verdict == policy.Allowed || a.Verdict == policy.Unstated && x.theyAllow(q.token, crawlertest.NormalPath(q.path))
}

func (x *exam) asked(q question, u policy.Usage) policytest.Question {
	return policytest.Question{Token: q.token, Identity: policy.Verified, Host: q.host, Path: q.path, Usage: u}
}

// flattened reports whether the file is told to be stricter here: where it was
// rendered, and by lint.
func (x *exam) flattened(f *robotsFile, q question) bool {
	return slices.ContainsFunc(f.losses, func(l robotsserve.Loss) bool {
		named := slices.ContainsFunc(l.Crawlers, func(c string) bool {
			return strings.EqualFold(c, q.token) || c == "*" && slices.Equal(f.read.Group(q.token), f.read.Group("*"))
		})
		return named && l.Paths.Match(crawlertest.NormalPath(q.path)) && x.lossAt(f, l.Pos)
	})
}

func (x *exam) linted(code string, at policy.Pos) bool {
	for _, d := range x.p.told {
		if d.Code == code && d.Pos == at {
			return true
		}
	}
	return false
}

// crawl holds the readers of Allow and Disallow to the policy.
func (x *exam) crawl(f *robotsFile, q question, temoto *robotstxt.RobotsData) {
	want, path := x.mayCrawl(q), crawlertest.NormalPath(q.path)
	judge := func(reader string, got bool) {
		channel := "robots.txt: " + reader
		x.answer(channel, 1)
		switch {
		case got == want:
		case want && x.flattened(f, q):
			x.except(channel, "not-flattenable")
		default:
			x.differ(channel, q, got, want)
		}
	}
	naive := f.read.Allowed(q.token, path)
	judge("by RFC 9309", naive)
	if c, known := x.p.info(q.token); known && (len(c.Follows) > 0 || c.IgnoresStar) {
		judge("as the crawler's operator says", f.read.AllowedTo(append([]string{q.token}, c.Follows...), c.IgnoresStar, path))
	}
	if x.cutShort(f, q.token) {
		return
	}
	got := temoto.TestAgent(path, strings.ToLower(q.token))
	if name := crawlertest.TemotoException(f.read, q.token, path, got); got != naive && name != "" {
		x.answer("robots.txt: temoto/robotstxt", 1)
		x.except("robots.txt: temoto/robotstxt", "temoto: "+name)
		return
	}
	judge("temoto/robotstxt", got)
}

// cutShort reports whether nobody knows a crawler of which the file names the
// beginning: many readers take it for that one.
func (x *exam) cutShort(f *robotsFile, token string) bool {
	lower := strings.ToLower(token)
	if _, known := x.p.info(token); known || f.read.Groups[lower] != nil {
		return false
	}
	for name := range f.read.Groups {
		if strings.HasPrefix(lower, name) {
			x.count("robots.txt: a crawler that readers take for another")
			return true
		}
	}
	return false
}

// otherParsers asks parsers in other languages about what they claim to
// understand.
func (x *exam) otherParsers(f *robotsFile, qs []question) error {
	for i := range crawlertest.Parsers {
		parser := &crawlertest.Parsers[i]
		process := x.parsers[parser.Name]
		if process == nil || !parser.UnderstandsFile(f.body) {
			continue
		}
		var asks [][2]string
		var of []question
		for _, q := range qs {
			if q.token == "" || !parser.UnderstandsPath(q.path) || x.cutShort(f, q.token) {
				continue
			}
			asks, of = append(asks, [2]string{q.token, q.path}), append(of, q)
		}
		if len(asks) == 0 {
			continue
		}
		answers, err := process.Ask(f.body, asks)
		if err != nil {
			return fmt.Errorf("%s: %w", parser.Name, err)
		}
		channel := "robots.txt: " + parser.Name
		x.answer(channel, len(asks))
		for j, got := range answers {
			switch want := x.mayCrawl(of[j]); {
			case got == want:
			case want && x.flattened(f, of[j]):
				x.except(channel, "not-flattenable")
			default:
				x.differ(channel, of[j], got, want)
			}
		}
	}
	return nil
}

// extensions holds the lines beside Allow and Disallow to the policy.
func (x *exam) extensions(f *robotsFile, q question) {
	x.extensionsOf(f, f.read, q, x.asked(q, policy.Crawl))
	x.contentSignal(f, q)
}

// extensionsOf holds App-Directives, Content-Usage and Crawl-delay to what the policy
// answers to a question.
func (x *exam) extensionsOf(f *robotsFile, read *crawlertest.RobotsTxt, q question, asked policytest.Question) {
	path := crawlertest.NormalPath(q.path)
	got, _ := read.Extension("app-directives", q.token, path)
	want := x.directives(asked)
	if x.theirs != nil && !x.theirs.directives {
		want = membersOf(x.theirLine("app-directives", q.token, path))
	}
	same(x, "robots.txt: App-Directives", q, membersOf(got), want)
	delay, _ := read.Extension("crawl-delay", q.token, path)
	seconds := policytest.CrawlDelay(x.p.spec, asked).Seconds()
	if seconds == 0 {
		seconds = number(x.theirLine("crawl-delay", q.token, path))
	}
	same(x, "robots.txt: Crawl-delay", q, math.Round(number(delay)*1000), math.Round(seconds*1000))
	line, _ := read.Extension("content-usage", q.token, path)
	switch {
	case x.theirs != nil && !x.theirs.preferences:
		same(x, "robots.txt: Content-Usage", q, line, x.theirLine("content-usage", q.token, path))
	case x.p.spec.Publish.ContentUsage != policy.Off:
		x.contentUsage(f, line, q, asked)
	default:
		same(x, "robots.txt: Content-Usage", q, line, "")
	}
}

// number is a number of seconds, or 0.
func number(text string) float64 {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0
	}
	return n
}

// directives are the policy's application directives, as one text.
func (x *exam) directives(asked policytest.Question) string {
	var list httpsfv.List
	for _, app := range x.p.site.Policy.Apps() {
		if d := policytest.AppDirective(x.p.spec, asked, app); d != nil {
			list = append(list, d.Item)
		}
	}
	text, err := httpsfv.Marshal(list)
	if err != nil {
		panic(err) // it was read from the policy file
	}
	return membersOf(text)
}

// membersOf is a list with its members and their parameters in order.
func membersOf(list string) string {
	members := strings.Split(list, ", ")
	for i, m := range members {
		members[i] = canonical(m)
	}
	slices.Sort(members)
	return strings.Join(members, ", ")
}

// canonical is a member with its parameters in order.
func canonical(member string) string {
	parts := strings.Split(member, ";")
	slices.Sort(parts[1:])
	return strings.Join(parts, ";")
}

var preferences = []policy.Usage{policy.TrainAI, policy.AIUse, policy.Search}

func (x *exam) contentUsage(f *robotsFile, line string, q question, asked policytest.Question) {
	const channel = "robots.txt: Content-Usage"
	crossed := slices.ContainsFunc(f.problems, func(p policy.Problem) bool { return p.Code == "content-usage-cross" && x.linted(p.Code, p.Pos) })
	for _, u := range preferences {
		asked.Usage = u
		want := [...]string{"", "y", "n"}[x.p.naive(asked).Verdict]
		got := preference(line, u)
		x.answer(channel, 1)
		switch {
		case got == want:
		case crossed && (got == "n" || got == "" && want == "y"):
			x.except(channel, "content-usage-cross")
		default:
			x.differ(channel, q, u.String()+"="+got, u.String()+"="+want)
		}
	}
}

// preference is the value of a key of a Content-Usage dictionary.
func preference(line string, u policy.Usage) string {
	m := regexp.MustCompile(`(?:^|, )` + u.String() + `=([yn])(?:,|$)`).FindStringSubmatch(line)
	if m == nil {
		return ""
	}
	return m[1]
}
