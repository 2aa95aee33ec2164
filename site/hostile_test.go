// SPDX-License-Identifier: Apache-2.0

package site_test

import (
	"bytes"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	"golang.org/x/net/html"
	"golang.org/x/net/http/httpguts"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
	"github.com/robotspolicy/caddy-robots-policy/robotstag"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

// hostileTexts are texts that would break out of their place in a channel if they were not escaped: a line, a comment,
// a header field, an attribute or an element.
var hostileTexts = []string{
	"x\r\nDisallow: /\r\n", "x\nUser-agent: *\nAllow: /", "x\rAllow: /", "x\x00y", "x\u0085y", "x\u2028y", "x\ty", "\ufeffx",
	`"><script>alert(1)</script>`, "'><b", "</head><body>", "-->", "# Disallow: /", "/a#b", "/a b", "/a?b#c",
	`/"><script>`, "/x%0D%0AAllow:%20/", "/a, googlebot: none", `/a;b="c`, "/ü*$", `app;x="#"`, `app;x="\""`, "noindex, nofollow\u00a0",
	"googlebot: none", "x, none", "x;y=?0, *;noindex", `x";y="z`, "\ufffd", "é", "*", "$", "/*", "https://a.example/\r\nX: y", "https://a.example/ x",
}

// fieldNames are the names of all fields in generated robots.txt files.
var fieldNames = []string{"user-agent", "user-agent-purpose", "allow", "disallow", "crawl-delay", "app-directives", "content-usage", "content-signal", "sitemap", "license"}

// A policy file with a hostile text either has an error, or produces only lines, header fields and elements of the
// expected kinds.
func TestTextsStayInTheirPlaces(t *testing.T) {
	data, err := os.ReadFile("../policyfile/testdata/good/everything.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var document yaml.Node
	if err := yaml.Unmarshal(data, &document); err != nil {
		t.Fatal(err)
	}
	scalars, spread := scalarsOf(&document), 30
	if testkit.Long() {
		spread = 1
	}
	loaded, refused := 0, 0
	for i, n := range scalars {
		before := *n
		for j, text := range hostileTexts {
			if (i+j)%spread != 0 {
				continue
			}
			n.Value, n.Tag, n.Style = text, "!!str", yaml.DoubleQuotedStyle
			changed, err := yaml.Marshal(&document)
			if err != nil {
				t.Fatal(err)
			}
			s, _ := site.Load("policy.yaml", changed)
			if s == nil {
				refused++
				continue
			}
			loaded++
			checkPlaces(t, s)
			if t.Failed() {
				t.Fatalf("with %q in place of %q (line %d)", text, before.Value, before.Line)
			}
		}
		*n = before
	}
	t.Logf("%d files loaded, %d were blocked", loaded, refused)
	if loaded < 250/spread || refused < 6000/spread {
		t.Errorf("%d files loaded, %d were blocked", loaded, refused)
	}
}

func scalarsOf(n *yaml.Node) (scalars []*yaml.Node) {
	if n.Kind == yaml.ScalarNode {
		return []*yaml.Node{n}
	}
	for _, c := range n.Content {
		scalars = append(scalars, scalarsOf(c)...)
	}
	return scalars
}

func checkPlaces(t *testing.T, s *site.Site) {
	t.Helper()
	f, _ := robotsserve.Render(s.Policy, "www.example.com", robotsserve.Options{})
	checkLines(t, f.Body)
	for _, path := range []string{"/", "/news/x", "/premium/a.html", "/admin/x", "/images/a.jpg"} {
		page := s.Page("www.example.com", path, june)
		if page.Values != nil {
			header := http.Header{}
			robotstag.Apply(header, page.Values, 0)
			for name, values := range header {
				for _, v := range values {
					if !slices.Contains([]string{"Robots-Tag", "X-Robots-Tag", "Content-Usage"}, name) || !httpguts.ValidHeaderFieldValue(v) || v == "" {
						t.Errorf("header %s: %q", name, v)
					}
				}
			}
		}
		if page.Elements != nil {
			checkElements(t, page.Elements.HTML())
		}
	}
	if m := s.File.Spec.Enforcement.Message; !httpguts.ValidHeaderFieldValue(m) {
		t.Errorf("message %q", m)
	}
}

func checkLines(t *testing.T, body []byte) {
	t.Helper()
	for line := range bytes.Lines(body) {
		text := strings.TrimSuffix(strings.TrimSuffix(string(line), "\n"), "\r")
		if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f || r == 0x85 || r == 0x2028 }) {
			t.Errorf("robots.txt: %q", line)
		}
		field, value, ok := strings.Cut(text, ": ")
		known := ok && value != "" && slices.Contains(fieldNames, strings.ToLower(field)) && !strings.Contains(value, "#")
		acap := strings.HasPrefix(text, "ACAP-") && !strings.Contains(text, "#")
		if text != "" && text[0] != '#' && !known && !acap {
			t.Errorf("robots.txt: %q", line)
		}
	}
}

// checkElements parses elements in the same way as a browser. It fails if there are other elements than robots meta
// tags.
func checkElements(t *testing.T, text string) {
	t.Helper()
	z := html.NewTokenizer(strings.NewReader(text))
	for z.Next() != html.ErrorToken {
		token := z.Token()
		if token.Type != html.StartTagToken || token.Data != "meta" || len(token.Attr) != 2 || token.Attr[0].Key != "name" || token.Attr[1].Key != "content" {
			t.Errorf("element %v of %q", token, text)
		}
	}
}
