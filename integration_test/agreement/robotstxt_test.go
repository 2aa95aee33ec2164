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

	temoto "github.com/temoto/robotstxt"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/crawlertest"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/policytest"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
)

// disagreement is a place where a channel differs from the policy's decision.
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

// exam is the examination of one policy on one site.
type exam struct {
	*tally
	at       *running
	p        *loaded
	theirs   *merged // nil if nothing is merged
	parsers  map[string]*crawlertest.Process
	files    map[string]*robotsFile // keyed by host
	disagree []disagreement
}

func (x *exam) differ(channel string, q question, got, want any) {
	x.disagree = append(x.disagree, disagreement{channel, q, fmt.Sprint(got), fmt.Sprint(want)})
}

// same counts an answer, and records a disagreement if the answer differs from want.
func same[T comparable](x *exam, channel string, q question, got, want T) {
	x.answer(channel, 1)
	if got != want {
		x.differ(channel, q, fmt.Sprintf("%v", got), fmt.Sprintf("%v", want))
	}
}

// robotsFile is a fetched robots.txt, with the losses and problems that rendering reports for it.
type robotsFile struct {
	host     string
	body     string
	read     *crawlertest.RobotsTxt
	losses   []robotsserve.Loss
	problems []policy.Problem
}

// robotsTxt fetches the robots.txt of a host, and compares the answers of independent parsers with the policy.
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
		return crawlertest.NormalPath(q.path) == "/robots.txt" // always allowed (RFC 9309 section 2.2.2)
	})
	theirs, err := temoto.FromString(a.body)
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
		as, reached := x.readsAs(file, q.token)
		if !reached {
			if info, _ := x.p.info(q.token); info.IgnoresStar {
				x.count("robots.txt: a crawler that ignores * is not addressed")
			}
			continue
		}
		x.crawl(file, q, as, theirs)
		x.extensions(file, q, as)
	}
	x.purposes(file, qs)
	if err := x.otherParsers(file, qs); err != nil {
		return err
	}
	return x.acap(file, qs)
}

// rendered returns the robots.txt that should be served for a host, with the losses and problems that rendering
// reports.
func (x *exam) rendered(host string) *robotsFile {
	o := robotsserve.Options{Scheme: "http"}
	f, problems := robotsserve.Render(x.p.site.Policy, host, o)
	if x.theirs != nil {
		f, problems, _ = robotsserve.Merge(x.p.site.Policy, host, robotstxt.Parse([]byte(x.p.theirs)), o)
	}
	return &robotsFile{host: host, body: string(f.Body), losses: f.Losses, problems: problems}
}

// mayCrawl reports whether robots.txt must allow the crawler of q to crawl the path. In robots.txt, a group is for all
// clients that use the crawler's name, verified or not. The rules for a purpose apply if the catalog lists this purpose
// for the crawler, whatever purposes a request states. If the policy does not state anything about a path, the
// upstream's robots.txt may disallow it.
func (x *exam) mayCrawl(q question) bool {
	a := x.p.naive(x.asked(q, policy.Crawl))
	if x.controlsTraining(q.token) && !x.mayTrain(q) {
		x.count("robots.txt: a control token that is disallowed for training")
		return false
	}
	return a.Verdict == policy.Allowed || a.Verdict == policy.Unstated && x.theyAllow(q.token, crawlertest.NormalPath(q.path))
}

func (x *exam) mayTrain(q question) bool {
	asked := x.asked(q, policy.TrainAI)
	asked.Now = x.p.now
	return policytest.MayTrain(x.p.spec, asked)
}

func (x *exam) asked(q question, u policy.Usage) policytest.Question {
	return policytest.Question{Token: q.token, Identity: policy.Verified, Host: q.host, Path: q.path, Usage: u}
}

// readsAs returns the name of the group in robots.txt that a crawler follows. This is the crawler's own token or, if
// its operator documents this, the token of another crawler. If no such token has a group, readsAs returns the
// crawler's own token, which leads to the group of "*". The bool result is false if the crawler does not follow any
// group.
func (x *exam) readsAs(f *robotsFile, token string) (string, bool) {
	info, _ := x.p.info(token)
	for _, t := range append([]string{token}, info.Follows...) {
		if f.read.Groups[strings.ToLower(t)] != nil {
			return t, true
		}
	}
	if info.NoToken { // no User-agent line can contain this name
		x.count("robots.txt: a crawler whose name is no product token is not addressed")
		return token, false
	}
	return token, !info.IgnoresStar
}

// ofAnotherFamily reports whether a crawler follows a group that is for a crawler of another operator. token is the
// crawler, and as is the name of the group. In this case, robots.txt has an additional group for the crawler only if
// the followed group would allow more than the policy. So robots.txt may be stricter than the policy.
func (x *exam) ofAnotherFamily(token, as string) bool {
	c, _ := x.p.info(token)
	head, _ := x.p.info(as)
	return !strings.EqualFold(token, as) && !strings.EqualFold(c.Operator, head.Operator)
}

// leftOut reports whether robots.txt may omit the crawler of a question. This is the case if no document says that the
// crawler reads robots.txt, and if rules with "enforce: block" disallow the path for the crawler, whether its identity
// is verified or not.
func (x *exam) leftOut(f *robotsFile, q question) bool {
	info, _ := x.p.info(q.token)
	if !info.Rare || f.read.Groups[strings.ToLower(q.token)] != nil {
		return false
	}
	asked := x.asked(q, policy.Crawl)
	for _, asked.Identity = range []policy.Identity{policy.Unknown, policy.Verified, policy.Impostor} {
		if a := x.p.naive(asked); a.Verdict != policy.Disallowed || x.p.ruleOf(a.Statement).Enforce != policy.ModeBlock {
			return false
		}
	}
	return true
}

// flattened reports whether robots.txt may be stricter than the policy about the path of q. This is the case if the
// renderer of robots.txt has reported a robotsserve.Loss for this crawler and path, and lint has reported a diagnostic
// about this Loss.
func (x *exam) flattened(f *robotsFile, q question) bool {
	as, _ := x.readsAs(f, q.token)
	return slices.ContainsFunc(f.losses, func(l robotsserve.Loss) bool {
		named := slices.ContainsFunc(l.Crawlers, func(c string) bool {
			return strings.EqualFold(c, q.token) || strings.EqualFold(c, as) || c == "*" && slices.Equal(f.read.Group(as), f.read.Group("*"))
		})
		return named && l.Paths.Match(crawlertest.NormalPath(q.path)) && x.lossAt(f, l.Pos)
	})
}

func (x *exam) linted(code string, at policy.Pos) bool {
	for _, d := range x.p.diagnostics {
		if d.Code == code && (d.Pos == at || sumsUp(d.Message)) {
			return true
		}
	}
	return false
}

// sumsUp reports whether a message is about several lines. Such a message does not name the position of each of them.
func sumsUp(message string) bool {
	return strings.Contains(message, " more like this, down to line ") || strings.Contains(message, " other paths in only one spelling. ")
}

// crawl asks several parsers whether the Allow and Disallow lines allow the path of q, and compares the answers with
// the policy. The parsers look for the group whose name readsAs has returned (as).
func (x *exam) crawl(f *robotsFile, q question, as string, theirs *temoto.RobotsData) {
	want, path := x.mayCrawl(q), crawlertest.NormalPath(q.path)
	judge := func(reader string, got bool) {
		channel := "robots.txt: " + reader
		x.answer(channel, 1)
		switch {
		case got == want:
		case got && x.leftOut(f, q):
			x.count("robots.txt: a crawler that it leaves out is blocked")
		case want && x.flattened(f, q):
			x.except(channel, "not-flattenable")
		case want && x.ofAnotherFamily(q.token, as):
			x.except(channel, "another operator's group")
		default:
			x.differ(channel, q, got, want)
		}
	}
	naive := f.read.Allowed(as, path)
	judge("by RFC 9309", naive)
	if x.cutShort(f, as) {
		return
	}
	got := theirs.TestAgent(path, strings.ToLower(as))
	if name := crawlertest.TemotoException(f.read, as, path, got); got != naive && name != "" {
		x.answer("robots.txt: temoto/robotstxt", 1)
		x.except("robots.txt: temoto/robotstxt", "temoto: "+name)
		return
	}
	judge("temoto/robotstxt", got)
}

// cutShort reports whether robots.txt has no group for a token such as "googlebot-news", but a group for its beginning,
// such as "googlebot". Many parsers then use the group of the shorter token.
func (x *exam) cutShort(f *robotsFile, token string) bool {
	lower := strings.ToLower(token)
	if f.read.Groups[lower] != nil {
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

// otherParsers compares the answers of parsers in other programming languages with the policy. It leaves out files and
// paths that a parser does not support.
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
			as, reached := x.readsAs(f, q.token)
			if q.token == "" || !reached || !parser.UnderstandsPath(q.path) || x.cutShort(f, as) {
				continue
			}
			q.reader = as
			asks, of = append(asks, [2]string{as, q.path}), append(of, q)
		}
		if len(asks) == 0 {
			continue
		}
		answers, err := process.Ask(f.body, asks)
		if err != nil {
			return fmt.Errorf("%s: %w", parser.Name, err)
		}
		if parser.TimedOnly {
			continue
		}
		channel := "robots.txt: " + parser.Name
		x.answer(channel, len(asks))
		for j, got := range answers {
			switch want := x.mayCrawl(of[j]); {
			case got == want:
			case got && x.leftOut(f, of[j]):
			case want && x.flattened(f, of[j]):
				x.except(channel, "not-flattenable")
			case want && x.ofAnotherFamily(of[j].token, of[j].reader):
				x.except(channel, "another operator's group")
			default:
				x.differ(channel, of[j], got, want)
			}
		}
	}
	return nil
}

// extensions compares the lines of a group, except Allow and Disallow lines, with the policy.
func (x *exam) extensions(f *robotsFile, q question, as string) {
	if x.ofAnotherFamily(q.token, as) || x.leftOut(f, q) {
		return
	}
	x.extensionsOf(f, f.read, q, as, x.asked(q, policy.Crawl))
	x.contentSignal(f, q, as)
}

// extensionsOf compares App-Directives, Content-Usage and Crawl-delay with the policy's answer to a question.
func (x *exam) extensionsOf(f *robotsFile, read *crawlertest.RobotsTxt, q question, as string, asked policytest.Question) {
	path := crawlertest.NormalPath(q.path)
	got, _ := read.Extension("app-directives", as, path)
	want := x.directives(asked)
	if x.theirs != nil && !x.theirs.directives {
		want = membersOf(x.theirLine("app-directives", q.token, path))
	}
	if membersOf(got) != want && len(asked.Purposes) > 1 && x.purposesDiffer(f) {
		x.answer("robots.txt: App-Directives", 1)
		x.except("robots.txt: App-Directives", "purpose-groups-differ")
	} else {
		same(x, "robots.txt: App-Directives", q, membersOf(got), want)
	}
	delay, _ := read.Extension("crawl-delay", as, path)
	seconds := policytest.CrawlDelay(x.p.spec, asked).Seconds()
	if seconds == 0 {
		seconds = number(x.theirLine("crawl-delay", q.token, path))
	}
	if number(delay) > seconds && len(asked.Purposes) > 1 && x.purposesDiffer(f) {
		x.answer("robots.txt: Crawl-delay", 1)
		x.except("robots.txt: Crawl-delay", "purpose-groups-differ")
	} else {
		same(x, "robots.txt: Crawl-delay", q, math.Round(number(delay)*1000), math.Round(seconds*1000))
	}
	line, _ := read.Extension("content-usage", as, path)
	switch {
	case x.theirs != nil && !x.theirs.preferences:
		same(x, "robots.txt: Content-Usage", q, line, x.theirLine("content-usage", q.token, path))
	case x.p.spec.Publish.ContentUsage != policy.Off:
		x.contentUsage(f, read.Extensions("content-usage", as, path), q, asked)
	default:
		var want []string
		for _, u := range preferences {
			if no := u.String() + "=n"; x.theyRefuse("content-usage", q.token, no) {
				want = append(want, no)
			}
		}
		same(x, "robots.txt: Content-Usage", q, membersOf(line), membersOf(strings.Join(want, ", ")))
	}
}

// number parses a number of seconds. It returns 0 if the text is not a number.
func number(text string) float64 {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0
	}
	return n
}

// directives returns the policy's application directives as one text.
func (x *exam) directives(asked policytest.Question) string {
	var members []string
	for _, app := range x.p.site.Policy.Apps() {
		if d := policytest.AppDirective(x.p.spec, asked, app); d != nil {
			members = append(members, d.Text)
		}
	}
	return membersOf(strings.Join(members, ", "))
}

// membersOf sorts the members of a list, and the parameters of each member.
func membersOf(list string) string {
	members := strings.Split(list, ", ")
	for i, m := range members {
		members[i] = canonical(m)
	}
	slices.Sort(members)
	return strings.Join(members, ", ")
}

// canonical returns a member of a list with its parameters in alphabetical order.
func canonical(member string) string {
	parts := strings.Split(member, ";")
	slices.Sort(parts[1:])
	return strings.Join(parts, ";")
}

var preferences = []policy.Usage{policy.TrainAI, policy.AIUse, policy.Search}

// contentUsage compares lines with the policy. lines are the values of the Content-Usage lines that robots.txt has for
// the path of q. If they contradict each other, "n" applies.
func (x *exam) contentUsage(f *robotsFile, lines []string, q question, asked policytest.Question) {
	const channel = "robots.txt: Content-Usage"
	crossed := slices.ContainsFunc(f.problems, func(p policy.Problem) bool { return p.Code == "content-usage-cross" && x.linted(p.Code, p.Pos) })
	differ := asked.Purposes != nil && x.purposesDiffer(f)
	for _, u := range preferences {
		asked.Usage = u
		want := [...]string{"", "y", "n"}[x.p.naive(asked).Verdict]
		if x.theyRefuse("content-usage", q.token, u.String()+"=n") {
			want = "n"
		}
		got := ""
		for _, line := range lines {
			if says := preference(line, u); says != "" && got != "n" {
				got = says
			}
		}
		x.answer(channel, 1)
		switch {
		case got == want:
		case crossed && (got == "n" || got == "" && want == "y"):
			x.except(channel, "content-usage-cross")
		case differ && (got == "n" || got == "" && want == "y"):
			x.except(channel, "purpose-groups-differ")
			x.count("robots.txt: purposes whose groups would differ")
		default:
			x.differ(channel, q, u.String()+"="+got, u.String()+"="+want)
		}
	}
}

// purposesDiffer reports whether lint says that the groups of several purposes would have different lines besides Allow
// and Disallow.
func (x *exam) purposesDiffer(f *robotsFile) bool {
	return slices.ContainsFunc(f.problems, func(p policy.Problem) bool {
		return p.Code == "purpose-groups-differ" && (x.theirs != nil || x.linted(p.Code, p.Pos))
	})
}

// preference returns the value of a key in a Content-Usage dictionary.
func preference(line string, u policy.Usage) string {
	m := regexp.MustCompile(`(?:^|, )` + u.String() + `=([yn])(?:,|$)`).FindStringSubmatch(line)
	if m == nil {
		return ""
	}
	return m[1]
}
