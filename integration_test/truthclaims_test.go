// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/activity/evidence"
	"github.com/robotspolicy/caddy-robots-policy/claim"
)

// saidClaims compares the claims that pages and commands state with the facts that follow from the requests sent by the
// test.
type saidClaims struct {
	t      *testing.T
	counts map[string]int // counts, keyed by the claim and its outcome
	health string         // the text of the page Health, which is later compared with the evidence log of the stopped server
}

// judged checks that an output states the correct outcome of a claim, and contains a sentence with the correct number.
func (s *saidClaims) judged(where, name string, got, want claim.Outcome, text, sentence string) {
	s.t.Helper()
	how := "right: " + want.String()
	switch {
	case got == want:
	case got == claim.Holds:
		how = "falsely green"
	case got == claim.Fails:
		how = "falsely red"
	default:
		how = "not judged"
	}
	s.counts[name+", "+how]++
	if got != want || !strings.Contains(text, sentence) {
		s.t.Errorf("%s: %s: %v, want %v and %q in %.600s", where, name, got, want, sentence, text)
	}
}

// outcomeOf returns the outcome of a claim that a text states. holds is a pattern for sentences about a true claim, and
// fails is a pattern for sentences about a false claim. A text that matches neither says that the claim cannot be
// judged.
func outcomeOf(text, holds, fails string) claim.Outcome {
	switch {
	case regexp.MustCompile(fails).MatchString(text):
		return claim.Fails
	case regexp.MustCompile(holds).MatchString(text):
		return claim.Holds
	}
	return claim.CannotBeJudged
}

// checkClaims reads the claims on the pages of the console and in the admin API.
func (tr *truth) checkClaims(s *saidClaims, console, admin string, had map[string]int) {
	newest := len(truthPolicies) - 1
	behind, judged, violations := map[string]bool{}, map[string]bool{}, map[string]int64{}
	for key, version := range had {
		_, who, _ := strings.Cut(key, " ")
		judged[who] = true
		if version != newest {
			behind[who] = true
		}
	}
	for key, n := range tr.violating {
		parts := strings.Split(key, " ")
		violations[parts[1]+" "+parts[2]] += n
	}
	page := adminGet(s.t, console, "/published")
	want, sentence := claim.Holds, "Every crawler that reads robots.txt has read the newest"
	if n := len(behind); n > 0 {
		want, sentence = claim.Fails, fmt.Sprintf("%d %s not read it yet", n, map[bool]string{true: "crawler has", false: "crawlers have"}[n == 1])
	}
	s.judged("Published", "has-read", outcomeOf(page, "Every crawler that reads", `\d crawlers? ha(s|ve) not read it yet`), want, page, sentence)
	for _, c := range truthCrawlers {
		who := fmt.Sprint(c.name, " ", c.identity)
		page := adminGet(s.t, console, fmt.Sprintf("/crawler?days=7&name=%s&identity=%s", c.name, c.identity))
		want, sentence := claim.CannotBeJudged, "Whether it obeyed robots.txt cannot be judged"
		switch n := violations[who]; {
		case n > 0 && tr.blocked[who] == n:
			want, sentence = claim.Fails, fmt.Sprintf("It requests disallowed pages: %s violation", english(n))
		case n > 0:
			want, sentence = claim.Fails, fmt.Sprintf("It fetches disallowed pages: %s violations, %s of them blocked", english(n), english(tr.blocked[who]))
		case judged[who]:
			want, sentence = claim.Holds, "It obeyed every robots.txt that it had read"
		}
		s.judged("the page of "+who, "obeyed", outcomeOf(page, `It obeyed every robots.txt that it had read\.`, "It (requests|fetches) disallowed pages"), want, page, sentence)
	}
	overview := adminGet(s.t, console, "/")
	s.health = adminGet(s.t, console, "/health")
	blocked := tr.by["a.example Googlebot verified blocked"] + tr.by["b.example Googlebot verified blocked"]
	s.judged("Overview", "none-blocked-unmeant", outcomeOf(overview, "None was blocked, except", `requests? of verified Googlebot (was|were) blocked`), claim.Fails, overview, english(blocked)+" requests of verified Googlebot were blocked")
	s.judged("Overview", "no-alarm", outcomeOf(overview, "No alert and no warning", `\d+ (alert|warning)|is being blocked`), claim.Fails, overview, "")
	s.judged("Overview", "in-force", outcomeOf(overview, "v3 of policy.yaml has been in force since", "No policy is in force"), claim.Holds, overview, "v3")
	for _, c := range truthCrawlers[:4] {
		for _, section := range []string{"/", "/news/", "/private/", "/quiet/"} {
			want := claim.Holds
			for _, name := range []string{"", c.name} {
				if slices.ContainsFunc(truthPolicies[newest].closed[name], func(begins string) bool { return strings.HasPrefix(section+"1", begins) }) {
					want = claim.Fails
				}
			}
			q := url.Values{"agent": {c.name}, "url": {"https://a.example" + section + "1"}}.Encode()
			page := adminGet(s.t, console, "/ask?"+q)
			s.judged("Ask about "+q, "may-crawl", outcomeOf(page, `Yes, it may\.`, `No, (and the server blocks it|the policy disallows it)`), want, page, c.name)
			var api struct {
				May struct{ Outcome string }
			}
			answer := adminGet(s.t, admin, "/robots_policy/explain?"+q)
			if err := json.Unmarshal([]byte(answer), &api); err != nil {
				s.t.Fatal(err)
			}
			s.judged("the API about "+q, "may-crawl", outcomeOf(api.May.Outcome, "^holds$", "^fails$"), want, answer, c.name)
		}
	}
}

// checkCommands reads the claims of commands about the stopped server's database and evidence.
func (tr *truth) checkCommands(s *saidClaims, dir string, write func(name, text string)) {
	base := truthBase + truthPolicies[2].rules
	write("same.yaml", base)
	write("loses.yaml", base+"  - {for: Googlebot, disallow: {crawl: /news/}}\n")
	for name, want := range map[string]claim.Outcome{"same.yaml": claim.Holds, "loses.yaml": claim.Fails} {
		out, _ := asCaddyCommand(dir, "robots-policy", "replay", filepath.Join(dir, name), "--against", filepath.Join(dir, "policy.yaml"), "--database", filepath.Join(dir, "activity"), "--json").CombinedOutput()
		var r struct {
			Search struct{ Outcome, Text string }
			Loss   struct{ Requests int64 } `json:"search_loss"`
		}
		if i := strings.IndexByte(string(out), '{'); i < 0 || json.NewDecoder(strings.NewReader(string(out[i:]))).Decode(&r) != nil {
			s.t.Errorf("replay: %s", out)
			continue
		}
		sentence := "none of their requests"
		if want == claim.Fails {
			sentence = "Search engines lose " + english(tr.news) + " requests"
		}
		s.judged("replay of "+name, "search-keeps", outcomeOf(r.Search.Outcome, "^holds$", "^fails$"), want, r.Search.Text, sentence)
	}
	a, err := evidence.Ask(filepath.Join(dir, "evidence"), evidence.Question{})
	if err != nil {
		s.t.Fatal(err)
	}
	none, missing := claim.Holds, "No request is missing"
	if a.Omitted > 0 { // the evidence log has room for a limited number of events of an unverified crawler each day
		none, missing = claim.Fails, english(a.Omitted)+" requests were not recorded by evidence"
	}
	s.judged("Health", "none-unrecorded", outcomeOf(s.health, "No request is missing", `not recorded by \w+`), none, s.health, missing)
	out, _ := asCaddyCommand(dir, "robots-policy", "verify-evidence", filepath.Join(dir, "evidence"), "--json").CombinedOutput()
	s.judged("verify-evidence", "evidence-whole", outcomeOf(string(out), `"claim": "evidence-whole",\s*"outcome": "holds"`, `"claim": "evidence-whole",\s*"outcome": "fails"`), claim.CannotBeJudged, string(out), "not signed")
	for _, how := range slices.Sorted(maps.Keys(s.counts)) {
		s.t.Logf("%4d claims: %s", s.counts[how], how)
	}
}
