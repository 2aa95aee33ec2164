// SPDX-License-Identifier: Apache-2.0

package console

import (
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/activity/store"
	"github.com/robotspolicy/caddy-robots-policy/internal/cli/storecmd"
)

// Names that clients choose are escaped, even if they contain markup.
func TestBreakableNamesAreEscaped(t *testing.T) {
	for in, want := range map[string]string{
		"staging.example.com":    "staging.<wbr>example.<wbr>com",
		"PerplexityBot":          "Perplexity<wbr>Bot",
		"OAI-SearchBot":          "OAI-<wbr>Search<wbr>Bot",
		"GPTBot":                 "GPTBot",
		`<b>&"x'.aB`:             "&lt;b&gt;&amp;&#34;x&#39;.<wbr>a<wbr>B",
		"<img src=x onerror=aB>": "&lt;img src=x onerror=a<wbr>B&gt;",
	} {
		if got := breakable(in); string(got) != want {
			t.Errorf("%q becomes %s, want %s", in, got, want)
		}
	}
}

// If a crawler has not read the newest robots.txt of two hosts, the page counts this crawler only once.
func TestPublishedCountsCrawlers(t *testing.T) {
	dir := t.TempDir()
	if _, err := (storecmd.Demo{Name: "storage:robots/site.yaml", Text: testPolicy, Hosts: []string{"www.example.com", "news.example.com"}, Days: 30, Seed: 1, Share: 0.02, Now: time.Now()}).Fill(t.Context(), filepath.Join(dir, "activity")); err != nil {
		t.Fatal(err)
	}
	readsOldRobots(t, filepath.Join(dir, "activity"), "MojeekBot", "www.example.com", "news.example.com")
	s := startCaddyWith(t, testPolicy, dir)
	w := get(t, s, "published")
	text := w.Body.String()
	if w.Code != http.StatusOK || strings.Count(text, `<span class="tag warn">old</span>`) < 2 {
		t.Fatalf("status %d, and no crawler reads an old robots.txt of two hosts", w.Code)
	}
	rows := map[string]bool{}
	for _, m := range regexp.MustCompile(`crawler\?identity=[a-z]+&amp;name=([A-Za-z-]+)">[^<]*</a> <span[^>]*>[^<]*</span>(?:<span class="sub">[^<]*</span>)?</th><td><span class="tag warn">old`).FindAllStringSubmatch(text, -1) {
		rows[m[1]] = true
	}
	if want := plural(len(rows), "crawler has", "crawlers have") + " not read it yet"; len(rows) == 0 || !strings.Contains(text, want) {
		t.Errorf("the page does not say that %s", want)
	}
}

// readsOldRobots records that a crawler reads the oldest robots.txt of each host now.
func readsOldRobots(t *testing.T, dir, crawler string, hosts ...string) {
	t.Helper()
	r, err := store.OpenReader(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	st, err := store.Open(t.Context(), dir, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range hosts {
		documents, err := r.Documents(t.Context())
		versions := slices.DeleteFunc(documents, func(d store.Document) bool { return d.Host != host })
		if err != nil || len(versions) < 2 {
			t.Fatalf("%d versions of %s, %v", len(versions), host, err)
		}
		st.Record(activity.Request{
			Time: time.Now(), Host: host, Crawler: crawler, Category: "search", Identity: activity.Unverified, Decision: activity.Allowed,
			Path: "/robots.txt", RobotsTxt: true, Robots: versions[len(versions)-1].Version, Publication: versions[len(versions)-1].Publication, Number: "0.1",
		})
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
}

// The page about a crawler offers a rule that blocks violations only if some violations were not blocked.
func TestOfferToRefuse(t *testing.T) {
	s := startCaddy(t, testPolicy)
	const offer = "Draft a rule that blocks them"
	for _, name := range []string{"Bytespider", "PerplexityBot"} {
		text := get(t, s, "crawler?name="+name).Body.String()
		_, table, _ := strings.Cut(text, "Violations by day and rule")
		served := strings.Contains(table, ">Served<") || strings.Contains(table, ">Disallowed<") || strings.Contains(table, "Would be blocked")
		if strings.Contains(text, offer) != served {
			t.Errorf("%s: violations that were not blocked: %v, and the page offers a rule: %v", name, served, !served)
		}
	}
}
