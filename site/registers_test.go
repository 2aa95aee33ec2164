// SPDX-License-Identifier: Apache-2.0

package site

import (
	"net/url"
	"strings"
	"testing"
)

func TestExplainRights(t *testing.T) {
	t.Parallel()
	s, ds := Load("p.yaml", []byte(`version: 1
rules:
  - for: everyone
    disallow: {train-ai: /archive/}
    allow: {search: /}
publish: {tdmrep: on, rsl: on, content-signal: reference, usage-tokens: {train-ai: No-Training}}
`))
	if s == nil {
		t.Fatal(ds.Text())
	}
	u, _ := url.Parse("https://www.example.com/archive/x")
	var b strings.Builder
	if err := s.Explain(Question{Agent: "Googlebot", URL: u}).WriteText(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"Google-Extended in robots.txt", "User-agent: No-Training, it may not be used for train-ai",
		"search=yes, ai-train=no, use=reference", "train-ai=n, search=y", "tdm-reservation: 1", "permits usage search, prohibits usage ai-train in /license.xml",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in\n%s", want, b.String())
		}
	}
}

func TestRegisterDiagnostics(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, rules, publish, want string }{
		{"nothing", "{for: everyone, disallow: {train-ai: /a/}}", "{tdmrep: on}", ""},
		{"one crawler may not", "{for: GPTBot, disallow: {train-ai: /a/}}", "{tdmrep: on}", `p.yaml:3`},
		{"one crawler may", "{for: everyone, disallow: {train-ai: /a/}}\n  - {for: CCBot, allow: {train-ai: /a/}}", "{rsl: on}", `p.yaml:4`},
		{"registers off", "{for: GPTBot, disallow: {train-ai: /a/}}", "{acap: off}", ""},
		{"use=full", "{for: everyone, disallow: {ai-use: /a/}}", "{content-signal: full}", "[rights-differ]"},
		{"use=immediate", "{for: everyone, allow: {search: /}}", "{content-signal: immediate}", "[rights-differ]"},
		{"use=reference", "{for: everyone, disallow: {ai-use: /a/}, allow: {search: /}}", "{content-signal: reference}", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, ds := Load("p.yaml", []byte("version: 1\nrules:\n  - "+c.rules+"\npublish: "+c.publish+"\n"))
			var said []string
			for _, d := range ds {
				if strings.HasPrefix(d.Code, "rights-") {
					said = append(said, d.String())
				}
			}
			text := strings.Join(said, "\n")
			if (text == "") != (c.want == "") || !strings.Contains(text, c.want) || len(said) > 1 {
				t.Errorf("%q, want %q\n%s", text, c.want, ds.Text())
			}
		})
	}
}
