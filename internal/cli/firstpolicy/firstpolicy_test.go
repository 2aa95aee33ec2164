// SPDX-License-Identifier: Apache-2.0

package firstpolicy

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/robotspolicy/caddy-robots-policy/handler"
	"github.com/robotspolicy/caddy-robots-policy/internal/rfc9309"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/site"
	"github.com/robotspolicy/caddy-robots-policy/source"
)

// answered returns all combinations of answers. It omits answers to questions that would not be asked.
func answered() (all []Answers) {
	for bits := range 1 << topicCount {
		a := Answers{Host: "example.com"}
		asked := true
		for t := range Topics {
			if a.To[t] = No; bits>>t&1 == 0 {
				a.To[t] = Yes
			}
		}
		for t, topic := range Topics {
			if topic.After != Topic(t) && a.To[topic.After] == Yes {
				asked = asked && a.To[t] == Yes
				a.To[t] = Unanswered
			}
		}
		if asked {
			all = append(all, a)
		}
	}
	return all
}

// TestPolicyMeansTheAnswers tries every combination of answers. Each policy must load without a diagnostic. The
// explanations, the generated robots.txt, the HTTP responses and the table that init prints must agree with the
// answers.
func TestPolicyMeansTheAnswers(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	all := answered()
	if len(all) != 144 {
		t.Errorf("%d combinations", len(all))
	}
	places := [][2]string{{"", ""}, {"/a/", "stage.example.com"}, {"/a/, *.pdf$", "*.preview.example.com"}}
	for i, a := range all {
		some := places[i%len(places):][:1]
		if testkit.Long() {
			some = places
		}
		for _, place := range some {
			if a.Closed, a.Staging = nil, nil; a.AddClosed(place[0]) != nil || a.AddStaging(place[1]) != nil {
				t.Fatal("answers were not accepted")
			}
			b, err := Build(a)
			if err != nil || len(b.Contradictions) > 0 {
				t.Fatalf("%v: %v", a, err)
			}
			if _, ds := site.Load("p.yaml", b.Text); len(ds) > 0 {
				t.Errorf("%v: %s\n%s", a, ds.Text(), b.Text)
			}
			meansTheAnswers(t, b, place)
			if t.Failed() {
				t.Fatalf("%v\n%s", a, b.Text)
			}
		}
	}
}

func meansTheAnswers(t *testing.T, b *Built, place [2]string) {
	t.Helper()
	to := b.answers.To
	snapshot, err := source.Compile("p.yaml", b.Text)
	if err != nil {
		t.Fatal(err)
	}
	h := handler.New(handler.Options{Policies: source.Static(snapshot), Metrics: handler.NewMetrics(), Logger: zap.NewNop()})
	server := h.Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<html><head></head><body></body></html>")
	}))
	get := func(agent, url string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, url, nil)
		r.Header.Set("User-Agent", "Mozilla/5.0 (compatible; "+agent+"/1.0)")
		w := httptest.NewRecorder()
		server.ServeHTTP(w, r)
		return w
	}
	robots := rfc9309.Parse(get("x", "http://example.com/robots.txt").Body.Bytes(), func(name string) bool { return b.Site.Policy.Crawler(name) != 0 })
	const open, asked, refused = "open", "closed in robots.txt", "403"
	if2 := func(closed bool, how string) string {
		if closed {
			return how
		}
		return open
	}
	answers := to[AIAnswers] == No
	for agent, want := range map[string]string{
		"Googlebot": open, "Bingbot": open, "Applebot": open, "NobodyKnows": open, "AhrefsBot": open,
		"GPTBot": if2(to[Training] == No, refused), "CCBot": if2(to[Training] == No, refused),
		"ChatGPT-User": if2(answers, refused), "PerplexityBot": if2(answers && to[AISearch] == No, refused), "OAI-SearchBot": if2(answers && to[AISearch] == No, refused),
		"ManusBot":        if2(to[Training] == No && answers && to[AISearch] == No, refused), // an agent belongs only to category:ai
		"Googlebot-Image": if2(to[Images] == No, asked), "archive.org_bot": if2(to[Archives] == No, refused), "facebookexternalhit": if2(to[Previews] == No, refused),
	} {
		e := b.Site.Explain(site.Question{Agent: agent, URL: &url.URL{Scheme: "http", Host: "example.com", Path: "/x"}})
		if e.MayCrawl != (want == open) {
			t.Errorf("explain: %s may crawl: %v, want %s", agent, e.MayCrawl, want)
		}
		if status := get(agent, "http://example.com/x").Code; (status == http.StatusForbidden) != (want == refused) {
			t.Errorf("HTTP: %s gets %d, want %s", agent, status, want)
		}
		info := b.Site.Policy.CrawlerInfo(b.Site.Policy.Crawler(agent))
		c := rfc9309.Crawler{Names: append([]string{agent}, info.Follows...)}
		if info.Rare && want == refused { // robots.txt does not list rare crawlers that the server blocks
			continue
		}
		if agent != "facebookexternalhit" && robots.Ask(c, "/x").Allowed != (want == open) { // facebookexternalhit ignores the group of *
			t.Errorf("robots.txt lets %s in: want %s", agent, want)
		}
		for i, closed := range []string{"/a/b", "/x.pdf"} {
			if shut := want != open || len(b.answers.Closed) > i; robots.Ask(c, closed).Allowed == shut && agent != "facebookexternalhit" {
				t.Errorf("robots.txt: %s, %s: want closed %v", agent, closed, shut)
			}
		}
	}
	header := func(host, name, part string, want bool) {
		if got := get("Googlebot", "http://"+host+"/x").Header().Get(name); strings.Contains(got, part) != want {
			t.Errorf("%s of %s is %q; %q in it: want %v", name, host, got, part, want)
		}
	}
	header("example.com", "X-Robots-Tag", "noindex", to[Search] == No)
	header("example.com", "X-Robots-Tag", "max-image-preview:none", to[Images] == No)
	header("example.com", "Content-Usage", "train-ai=n", to[Training] == No)
	header("example.com", "Content-Usage", "ai-use=n", answers)
	header("example.com", "Tdm-Reservation", "1", to[Rights] == Yes)
	if place[1] != "" {
		header(strings.Replace(place[1], "*", "x", 1), "X-Robots-Tag", "noindex", true)
	}
	var out bytes.Buffer
	if err := b.WriteMeaning(&out, time.Now()); err != nil {
		t.Fatal(err)
	}
	for row, want := range map[string]string{
		"crawlers for AI training may read": if2(to[Training] == No, "no (403)"), "AI assistants may read": if2(answers, "no (403)"),
		"search engines may list": if2(to[Search] == No, "no"), "Googlebot-Image may read": if2(to[Images] == No, "no"),
		"archives may read": if2(to[Archives] == No, "no (403)"), "link previews may read": if2(to[Previews] == No, "no (403)"),
	} {
		want = strings.Replace(want, open, "yes", 1)
		if !regexp.MustCompile(`(?m)^` + row + ` +` + regexp.QuoteMeta(want) + `( |$)`).MatchString(out.String()) {
			t.Errorf("%q is not %q in\n%s", row, want, out.String())
		}
	}
}

// Some questions are asked only after the answer "no" to another question. If a flag answers only the dependent
// question, Build assumes "no" for the question that it depends on. If a second flag answers that question with "yes",
// the two answers contradict each other.
func TestDependentAnswers(t *testing.T) {
	t.Parallel()
	for flag, of := range map[Topic]Topic{AISearch: AIAnswers, Rights: Training} {
		var a Answers
		if a.To[flag] = Yes; flag == AISearch {
			a.To[flag] = No
		}
		b, err := Build(a)
		if err != nil || b.answers.To[of] != No {
			t.Errorf("%s: %v", Topics[flag].Flag, err)
		}
		a.To[of] = Yes
		if _, err := Build(a); !errors.Is(err, ErrContradictory) {
			t.Errorf("%s and %s: %v", Topics[flag].Flag, Topics[of].Flag, err)
		}
	}
}

// TestAnswerEngines disallows AI answers. Search engines of AI products, such as PerplexityBot, are blocked only if the
// answer AISearch is "no". With every other answer, they may still read the site, and the output names them.
func TestAnswerEngines(t *testing.T) {
	t.Parallel()
	for answer, may := range map[Answer]bool{Unanswered: true, Yes: true, No: false} {
		a := Answers{Host: "example.com", To: [topicCount]Answer{AIAnswers: No, AISearch: answer}}
		b, err := Build(a)
		if err != nil {
			t.Fatal(err)
		}
		s := b.Site
		for _, token := range []string{"PerplexityBot", "OAI-SearchBot", "Claude-SearchBot"} {
			d := s.Policy.Decide(policy.Query{Crawler: s.Policy.Crawler(token), Host: "example.com", Path: "/", Usage: policy.Crawl})
			if (d.Verdict != policy.Disallowed) != may || !may && s.Policy.Mode(d) != policy.ModeBlock {
				t.Errorf("%s with answer %d: %v", token, answer, d.Verdict)
			}
		}
		if d := s.Policy.Decide(policy.Query{Crawler: s.Policy.Crawler("Googlebot"), Host: "example.com", Path: "/", Usage: policy.Crawl}); d.Verdict == policy.Disallowed {
			t.Errorf("Googlebot is blocked with answer %d", answer)
		}
		var out bytes.Buffer
		if err := b.WriteMeaning(&out, time.Now()); err != nil {
			t.Fatal(err)
		}
		if named := strings.Contains(out.String(), "PerplexityBot, OAI-SearchBot, Claude-SearchBot and"); named != may {
			t.Errorf("answer %d:\n%s", answer, out.String())
		}
	}
}

// TestQuestions enters different spellings of the answers.
func TestQuestions(t *testing.T) {
	t.Parallel()
	const robots = "User-agent: *\nDisallow: /x/\n"
	open := func(name string) ([]byte, error) {
		switch name {
		case "robots.txt", "https://www.example.com/robots.txt":
			return []byte(robots), nil
		case "https://none.example.com/robots.txt":
			return nil, nil
		}
		return nil, errors.New("cannot be reached")
	}
	for name, tt := range map[string]struct {
		lines string // after these lines, the user presses Enter for all further questions
		want  string
	}{
		"enter":                       {"", "from= host= to= closed=[] staging=[]"},
		"words":                       {"none\nyes\nno\nno\nYes\nyes\nyes\nyes\nnone\nnone\n", "from= host= to=yes no no yes  yes yes yes closed=[] staging=[]"},
		"letters":                     {"n\ny\nN\ny\nn\nn\nn\nn\nn\n", "from= host= to=yes no yes no no no no no closed=[] staging=[]"},
		"spaces and full stops":       {"  \n Yes. \n nope\n\n  ok \n", "from= host= to=yes no  yes     closed=[] staging=[]"},
		"not asked about":             {"\n\nyes\nyes\nno\n", "from= host= to= yes  yes  no   closed=[] staging=[]"},
		"a wrong answer first":        {"\nmaybe\ny\n", "from= host= to=yes closed=[] staging=[]"},
		"yes is no robots.txt":        {"yes\nrobots.txt\n", "from=robots.txt host= to= closed=[] staging=[]"},
		"unreachable, then reachable": {"nowhere.example.com\nwww.example.com\n", "from=https://www.example.com/robots.txt host=www.example.com to= closed=[] staging=[]"},
		"a site without one":          {"none.example.com\n", "from= host=none.example.com to= closed=[] staging=[]"},
		"robots.txt by URL":           {"https://www.example.com/\n", "from=https://www.example.com/robots.txt host=www.example.com to= closed=[] staging=[]"},
		"back":                        {"\nno\nback\nyes\nyes\nback\n<\n\n", "from= host= to=yes yes closed=[] staging=[]"},
		"back over what is not asked": {"\n\nyes\nback\nno\nyes\nback\nback\nyes\n", "from= host= to= yes closed=[] staging=[]"},
		"back from the end":           {strings.Repeat("\n", 10) + "back\nstage.example.com\nyes\n", "from= host= to= closed=[] staging=[stage.example.com]"},
		"paths without slashes":       {strings.Repeat("\n", 8) + "members, premium/\n", "from= host= to= closed=[/members /premium/] staging=[]"},
		"a path as a URL":             {strings.Repeat("\n", 8) + "https://www.example.com/paid/?x=1 /a/\n", "from= host= to= closed=[/paid/?x=1 /a/] staging=[]"},
		"the whole site, then a part": {strings.Repeat("\n", 8) + "/\n/a/\n", "from= host= to= closed=[/a/] staging=[]"},
		"the home page, then none":    {strings.Repeat("\n", 8) + "/$\n\nyes\nback\nback\nnone\n", "from= host= to= closed=[] staging=[]"},
		"staging as URLs":             {strings.Repeat("\n", 9) + "https://staging.example.com/ *.preview.example.com\n", "from= host= to= closed=[] staging=[staging.example.com *.preview.example.com]"},
		"a host that is none":         {strings.Repeat("\n", 9) + "http://\nstage.example.com\n", "from= host= to= closed=[] staging=[stage.example.com]"},
		"staging that has the site":   {"www.example.com\n" + strings.Repeat("\n", 7) + "*.example.com\nstage.example.com\n", "from=https://www.example.com/robots.txt host=www.example.com to= closed=[] staging=[stage.example.com]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			show := func(a Answers) error {
				_, err := Build(a)
				return err
			}
			a, err := Ask(t.Context(), Terminal{In: strings.NewReader(tt.lines + strings.Repeat("\n", 20)), Out: &out, Open: open, Show: show, File: "p.yaml"})
			if err != nil {
				t.Fatal(err, out.String())
			}
			to := strings.TrimRight(strings.Trim(fmt.Sprint(a.To), "[]"), " ")
			if got, want := fmt.Sprintf("from=%s host=%s to=%s closed=%v staging=%v", a.From, a.Host, to, a.Closed, a.Staging), tt.want; strings.Join(strings.Fields(got), " ") != strings.Join(strings.Fields(want), " ") {
				t.Errorf("got  %s\nwant %s\n%s", got, want, out.String())
			}
		})
	}
	for lines, want := range map[string]string{"\n\n": "the input ended", strings.Repeat("\n", 10) + "no\n": "nothing was written", "\n\nQuit\n": "nothing was written"} {
		_, err := Ask(t.Context(), Terminal{In: strings.NewReader(lines), Out: new(bytes.Buffer), Show: func(Answers) error { return nil }})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Error(err)
		}
	}
}

// TestContradictions checks contradictory answers. If answers contradict each other, Build returns an error. If an
// answer contradicts an existing robots.txt, Build returns a policy and a Contradiction, which says which of the two
// applies.
func TestContradictions(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		answers Answers
		closed  string
		staging string
		robots  string
		want    []Contradiction
		err     string
	}{
		"staging is the site":           {Answers{Host: "www.example.com"}, "", "www.example.com", "", nil, `the staging host "www.example.com" includes the site itself, www.example.com`},
		"staging has the site":          {Answers{Host: "www.example.com"}, "", "*.example.com", "", nil, `the staging host "*.example.com" includes the site itself`},
		"staging beside the site":       {Answers{Host: "www.example.com"}, "", "*.www.example.com", "", nil, ""},
		"staging of an unknown site":    {Answers{}, "", "*.example.com", "", nil, ""},
		"the home page is disallowed":   {Answers{To: [topicCount]Answer{Search: Yes}}, "/$", "", "", nil, `a policy with all these answers fails its test "category:search may crawl /"`},
		"robots.txt disallows the site": {Answers{From: "robots.txt", Host: "www.example.com", To: [topicCount]Answer{Search: Yes}}, "", "", "User-agent: Bingbot\nDisallow: /\n", []Contradiction{{"category:search may crawl https://www.example.com/", "", true}}, ""},
		"an answer disallows the home":  {Answers{From: "robots.txt", Host: "www.example.com"}, "/$", "", "User-agent: *\nDisallow: /x/\n", []Contradiction{{"Bingbot may crawl /", "", false}, {"Googlebot may crawl /", "", false}}, ""},
		"robots.txt lets a crawler in":  {Answers{From: "robots.txt", To: [topicCount]Answer{Training: No}}, "", "", "User-agent: GPTBot\nAllow: /\n", []Contradiction{{"category:ai-training may not crawl /", "", true}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := tt.answers
			if err := errors.Join(a.AddClosed(tt.closed), a.AddStaging(tt.staging)); err != nil {
				t.Fatal(err)
			}
			if tt.robots != "" {
				a.Robots = []byte(tt.robots)
			}
			b, err := Build(a)
			if b == nil {
				b = new(Built)
			}
			got, text := b.Contradictions, b.Text
			if tt.err != "" {
				got = nil
			}
			if (err == nil) != (tt.err == "") || err != nil && (!errors.Is(err, ErrContradictory) || !strings.Contains(err.Error(), tt.err)) {
				t.Fatalf("%v\n%s", err, text)
			}
			for i := range got {
				if !strings.Contains(got[i].Instead, "of line") {
					t.Errorf("%s: what holds instead is %q", got[i].Test, got[i].Instead)
				}
				got[i].Instead = ""
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %v, want %v\n%s", got, tt.want, text)
			}
		})
	}
}

func FuzzAnswers(f *testing.F) {
	f.Add("members", "staging.example.com")
	f.Add("https://example.com/a?b", "*.example.com")
	f.Add("/*?x=$", "http://[::1]/")
	f.Fuzz(func(t *testing.T, path, host string) {
		var a Answers
		if a.AddClosed(path) != nil || a.AddStaging(host) != nil || len(a.Closed) > 20 || len(a.Staging) > 20 {
			return
		}
		if _, err := Build(a); err != nil && !errors.Is(err, ErrContradictory) {
			t.Errorf("closed %q, staging %q: %v", path, host, err)
		}
	})
}
