// SPDX-License-Identifier: Apache-2.0

package firstpolicy

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/internal/cli/policyinput"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

// TestPolicyMeansTheAnswers tries every combination of answers: the policy loads without
// a diagnostic, and says what was answered.
func TestPolicyMeansTheAnswers(t *testing.T) {
	t.Parallel()
	words := []string{"yes", "no"}
	for _, closed := range []string{"", "/a/", "/a/, *.pdf$"} {
		for _, staging := range []string{"", "stage.example.com", "*.preview.example.com"} {
			for i := range 8 {
				search, training, answers := words[i&1], words[i>>1&1], words[i>>2&1]
				name := strings.Join([]string{"search " + search, "training " + training, "answers " + answers, closed, staging}, ", ")
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					a := Answers{Host: "example.com"}
					for to, word := range map[*Answer]string{&a.Search: search, &a.Training: training, &a.AIAnswers: answers} {
						*to, _ = ParseAnswer(word)
					}
					if a.AddClosed(closed) != nil || a.AddStaging(staging) != nil {
						t.Fatal("answers were not accepted")
					}
					text, s, contradicted, err := Build(a, nil)
					if err != nil || len(contradicted) > 0 {
						t.Fatalf("%v %v\n%s", err, contradicted, text)
					}
					if _, ds := site.Load("p.yaml", text); len(ds) > 0 {
						t.Errorf("%s\n%s", ds.Text(), text)
					}
					may := func(agent, host, path string, u policy.Usage) bool {
						q := policy.Query{Crawler: s.Policy.Crawler(agent), Host: host, Path: path, Usage: u}
						return s.Policy.Decide(q).Verdict != policy.Disallowed
					}
					for _, tt := range []struct {
						agent, host, path string
						usage             policy.Usage
						want              bool
					}{
						{"Googlebot", "example.com", "/", policy.Crawl, true},
						{"Googlebot", "example.com", "/", policy.Index, search == "yes"},
						{"GPTBot", "example.com", "/", policy.Crawl, training == "yes"},
						{"", "example.com", "/", policy.TrainAI, training == "yes"},
						{"ChatGPT-User", "example.com", "/", policy.Crawl, answers == "yes"},
						{"Googlebot", "example.com", "/a/b", policy.Crawl, closed == ""},
						{"Googlebot", "example.com", "/x.pdf", policy.Crawl, closed == "" || closed == "/a/"},
						{"Googlebot", "stage.example.com", "/", policy.Index, search == "yes" && staging != "stage.example.com"},
						{"Googlebot", "x.preview.example.com", "/", policy.Index, search == "yes" && staging != "*.preview.example.com"},
					} {
						if got := may(tt.agent, tt.host, tt.path, tt.usage); got != tt.want {
							t.Errorf("%s may %v %s%s: %v, want %v\n%s", tt.agent, tt.usage, tt.host, tt.path, got, tt.want, text)
						}
					}
				})
			}
		}
	}
}

// TestAnswerEngines: search engines that feed AI answers are named where they may read a
// site that wants no such answers, and refused on request.
func TestAnswerEngines(t *testing.T) {
	t.Parallel()
	for answer, may := range map[Answer]bool{Unanswered: true, Yes: true, No: false} {
		a := Answers{Host: "example.com", AIAnswers: No, AISearch: answer}
		text, s, contradicted, err := Build(a, nil)
		if err != nil || len(contradicted) > 0 {
			t.Fatalf("%v %v\n%s", err, contradicted, text)
		}
		if _, ds := site.Load("p.yaml", text); len(ds) > 0 {
			t.Errorf("%s\n%s", ds.Text(), text)
		}
		for _, token := range []string{"PerplexityBot", "OAI-SearchBot", "Claude-SearchBot"} {
			d := s.Policy.Decide(policy.Query{Crawler: s.Policy.Crawler(token), Host: "example.com", Path: "/", Usage: policy.Crawl})
			if (d.Verdict != policy.Disallowed) != may || !may && s.Policy.Mode(d) != policy.ModeBlock {
				t.Errorf("%s with answer %d: %v", token, answer, d.Verdict)
			}
		}
		if d := s.Policy.Decide(policy.Query{Crawler: s.Policy.Crawler("Googlebot"), Host: "example.com", Path: "/", Usage: policy.Crawl}); d.Verdict == policy.Disallowed {
			t.Errorf("Googlebot is refused with answer %d", answer)
		}
		var out bytes.Buffer
		if err := WriteMeaning(&out, s, a, time.Now()); err != nil {
			t.Fatal(err)
		}
		if named := strings.Contains(out.String(), "PerplexityBot, OAI-SearchBot, Claude-SearchBot and"); named != may {
			t.Errorf("answer %d:\n%s", answer, out.String())
		}
		if !may {
			continue
		}
		_, rule, _ := strings.Cut(out.String(), "add to the rules:\n")
		rule, _, _ = strings.Cut(rule, "To refuse all")
		closed, ds := site.Load("p.yaml", []byte(strings.Replace(string(text), "rules:\n", "rules:\n"+rule, 1)))
		if closed == nil || strings.Contains(ds.Text(), "refuses-search") {
			t.Errorf("the rule to add does not load: %s", ds.Text())
		}
	}
}

// TestQuestions types what people type.
func TestQuestions(t *testing.T) {
	dir := t.TempDir()
	robots := filepath.Join(dir, "robots.txt")
	if err := os.WriteFile(robots, []byte("User-agent: *\nDisallow: /x/\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		lines string
		want  string
	}{
		"enter six times":             {"\n\n\n\n\n\n", "from= host= search=0 training=0 answers=0 closed=[] staging=[]"},
		"words":                       {"none\nyes\nno\nYes\nnone\nnone\n", "from= host= search=1 training=2 answers=1 closed=[] staging=[]"},
		"letters":                     {"n\ny\nN\nn\nn\nn\nn\n", "from= host= search=1 training=2 answers=2 closed=[] staging=[] aisearch=2"},
		"spaces and full stops":       {"  \n Yes. \n nope\n  ok \n\n\n", "from= host= search=1 training=2 answers=1 closed=[] staging=[]"},
		"a wrong answer first":        {"\nmaybe\ny\n\n\n\n\n", "from= host= search=1 training=0 answers=0 closed=[] staging=[]"},
		"paths without slashes":       {"\n\n\n\nmembers, premium/\n\n", "from= host= search=0 training=0 answers=0 closed=[/members /premium/] staging=[]"},
		"a path as a URL":             {"\n\n\n\nhttps://www.example.com/paid/?x=1 /a/\n\n", "from= host= search=0 training=0 answers=0 closed=[/paid/?x=1 /a/] staging=[]"},
		"the whole site, then a part": {"\n\n\n\n/\n/a/\n\n", "from= host= search=0 training=0 answers=0 closed=[/a/] staging=[]"},
		"staging as URLs":             {"\n\n\n\n\nhttps://staging.example.com/ *.preview.example.com\n", "from= host= search=0 training=0 answers=0 closed=[] staging=[staging.example.com *.preview.example.com]"},
		"a host that is none":         {"\n\n\n\n\nhttp://\nstage.example.com\n", "from= host= search=0 training=0 answers=0 closed=[] staging=[stage.example.com]"},
		"staging that has the site":   {"www.example.com\n\n\n\n\n*.example.com\nstage.example.com\n", "from=https://www.example.com/robots.txt host=www.example.com search=0 training=0 answers=0 closed=[] staging=[stage.example.com]"},
		"robots.txt file":             {robots + "\n\n\n\n\n\n", "from=" + robots + " host= search=0 training=0 answers=0 closed=[] staging=[]"},
		"robots.txt by URL":           {"https://www.example.com/robots.txt\n\n\n\n\n\n", "from=https://www.example.com/robots.txt host=www.example.com search=0 training=0 answers=0 closed=[] staging=[]"},
		"robots.txt by site":          {"www.example.com\n\n\n\n\n\n", "from=https://www.example.com/robots.txt host=www.example.com search=0 training=0 answers=0 closed=[] staging=[]"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			a, err := Ask(t.Context(), strings.NewReader(tt.lines), &out)
			if err != nil {
				t.Fatal(err, out.String())
			}
			got := fmt.Sprintf("from=%s host=%s search=%d training=%d answers=%d closed=%v staging=%v", a.From, a.Host, a.Search, a.Training, a.AIAnswers, a.Closed, a.Staging)
			if a.AISearch != Unanswered {
				got += fmt.Sprintf(" aisearch=%d", a.AISearch)
			}
			if got != tt.want {
				t.Errorf("got  %s\nwant %s\n%s", got, tt.want, out.String())
			}
		})
	}
	t.Run("input ends", func(t *testing.T) {
		if _, err := Ask(t.Context(), strings.NewReader("\n\n"), new(bytes.Buffer)); err == nil || !strings.Contains(err.Error(), "nothing was written") {
			t.Error(err)
		}
	})
}

// TestContradictions: answers that contradict each other are an error, and where they contradict
// a robots.txt, it is said which of the two holds.
func TestContradictions(t *testing.T) {
	t.Parallel()
	imported := func(text string) *robotstxt.Imported {
		c, err := policyinput.Convert("robots.txt", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return c.Imported
	}
	for name, tt := range map[string]struct {
		answers Answers
		closed  string
		staging string
		robots  string
		want    []Contradiction
		err     string
	}{
		"staging is the site":          {Answers{Host: "www.example.com"}, "", "www.example.com", "", nil, `the staging host "www.example.com" includes the site's own, www.example.com`},
		"staging has the site":         {Answers{Host: "www.example.com"}, "", "*.example.com", "", nil, `the staging host "*.example.com" includes the site's own`},
		"staging beside the site":      {Answers{Host: "www.example.com"}, "", "*.www.example.com", "", nil, ""},
		"staging of an unknown site":   {Answers{}, "", "*.example.com", "", nil, ""},
		"the home page is closed":      {Answers{Search: Yes}, "/$", "", "", nil, "this does not hold: category:search may crawl /"},
		"robots.txt closes the site":   {Answers{From: "robots.txt", Host: "www.example.com", Search: Yes}, "", "", "User-agent: Bingbot\nDisallow: /\n", []Contradiction{{"category:search may crawl https://www.example.com/", "", true}}, ""},
		"an answer closes the home":    {Answers{From: "robots.txt", Host: "www.example.com"}, "/$", "", "User-agent: *\nDisallow: /x/\n", []Contradiction{{"Bingbot may crawl /", "", false}, {"Googlebot may crawl /", "", false}}, ""},
		"robots.txt lets a crawler in": {Answers{From: "robots.txt", Training: No}, "", "", "User-agent: GPTBot\nAllow: /\n", []Contradiction{{"category:ai-training may not crawl /", "", true}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := tt.answers
			if err := errors.Join(a.AddClosed(tt.closed), a.AddStaging(tt.staging)); err != nil {
				t.Fatal(err)
			}
			var robots *robotstxt.Imported
			if tt.robots != "" {
				robots = imported(tt.robots)
			}
			text, _, got, err := Build(a, robots)
			if (err == nil) != (tt.err == "") || err != nil && (!errors.Is(err, ErrContradictory) || !strings.Contains(err.Error(), tt.err)) {
				t.Fatalf("%v\n%s", err, text)
			}
			for i := range got {
				if !strings.Contains(got[i].Instead, "by line") {
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
		text, s, _, err := Build(a, nil)
		if errors.Is(err, ErrContradictory) {
			return
		}
		if err != nil || s == nil {
			t.Errorf("closed %q, staging %q: %v\n%s", path, host, err, text)
		}
	})
}
