// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// TestChannelsPage checks the table in docs/reference/channels.md, which lists the channels for each usage. It lets a
// server apply a policy that disallows the usage for everyone on all paths. The table must list the channels that then
// state this.
func TestChannelsPage(t *testing.T) {
	const name, head = "../docs/reference/channels.md", "| usage | robots.txt | headers | meta tag | rights documents | blocked |\n|---|---|---|---|---|---|\n"
	page, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(page), head)
	_, after, found := strings.Cut(rest, "\n\n")
	if !ok || !found {
		t.Fatalf("%s has no table", name)
	}
	var rows strings.Builder
	for _, usage := range policy.Usages() {
		fmt.Fprintf(&rows, "| `%s` | %s |\n", usage, strings.Join(channelsOf(t, usage.String()), " | "))
	}
	want := before + head + rows.String() + "\n" + after
	if string(page) == want {
		return
	}
	if !*update {
		t.Fatalf("%s is out of date: go test ./integration_test -run TestChannelsPage -update", name)
	}
	if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

// channelsOf returns what each channel contains if a policy disallows a usage for everyone.
func channelsOf(t *testing.T, usage string) []string {
	t.Helper()
	enforce := ""
	if usage == "crawl" {
		enforce = ", enforce: block"
	}
	s := newServer(t, t.TempDir(), "version: 1\nrules:\n  - {for: everyone, disallow: {"+usage+": /}, intended: true"+enforce+"}\npublish: {tdmrep: on, content-signal: on, noai: on}\n", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<!doctype html><html><head><title>x</title></head></html>"))
	}))
	s.run(s.caddyfile("admin off", map[string]string{"": "robots_policy POLICY\nreverse_proxy UPSTREAM"}))
	code := func(lines []string) string {
		if len(lines) == 0 {
			return "–"
		}
		return "`" + strings.Join(lines, "`, `") + "`"
	}
	var robots, headers, rights []string
	body := strings.ReplaceAll(s.get("/robots.txt").body, "\r\n", "\n")
	everyone, _, _ := strings.Cut(body[strings.Index(body, "User-agent: *"):], "\n\n")
	for line := range strings.Lines(everyone) {
		line = strings.TrimSpace(line)
		if regexp.MustCompile(`^(Disallow: /|Content-|ACAP-)`).MatchString(line) && !strings.HasPrefix(line, "ACAP-crawler") {
			robots = append(robots, line)
		}
	}
	if strings.Contains(body, "User-agent: Google-Extended") && usage != "crawl" {
		robots = append(robots, "Disallow: / for Google-Extended, Applebot-Extended")
	}
	r := s.get("/", "User-Agent", someBrowser)
	for _, field := range []string{"X-Robots-Tag", "Content-Usage", "Content-Signal"} {
		for _, value := range r.Header[field] {
			headers = append(headers, field+": "+value)
		}
	}
	var meta []string
	if m := regexp.MustCompile(`name="robots" content="([^"]*)"`).FindStringSubmatch(r.body); m != nil {
		meta = append(meta, m[1])
	}
	if strings.Contains(s.get("/.well-known/tdmrep.json").body, `"tdm-reservation":1`) {
		rights = append(rights, "tdm-reservation: 1")
	}
	blocked := "no"
	if s.get("/", "User-Agent", "GPTBot/1.2").StatusCode == http.StatusForbidden {
		blocked = "yes, with `enforce: block`"
	}
	return []string{code(robots), code(headers), code(meta), code(rights), blocked}
}
