// SPDX-License-Identifier: Apache-2.0

package rsl_test

import (
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/crawlertest"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
	"github.com/robotspolicy/caddy-robots-policy/rights"
	"github.com/robotspolicy/caddy-robots-policy/rights/rsl"
)

func document(t *testing.T, text string) string {
	t.Helper()
	f, ds := policyfile.Load("policy.yaml", []byte("version: 1\n"+text))
	if f == nil {
		t.Fatal(ds.Text())
	}
	d, exact := rsl.New(rights.NewView(f.Policy, "www.example.com"), &f.Spec.Rights)
	if !exact {
		t.Error("it is stricter than the policy")
	}
	if d == nil {
		return ""
	}
	return string(d.Body)
}

const owner = `rights:
  copyright: Example <Media> & Co
  contact: mailto:rights@example.com
  terms: https://www.example.com/terms?a=1&b=2
`

func TestDocument(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text string
		want       map[string]string // maps "PATH USAGE" to the decision of the document
	}{
		{
			"all open", "rules:\n- for: everyone\n  allow: {train-ai: /, ai-use: /, search: /}\n",
			map[string]string{"/ ai-train": "yes", "/x ai-input": "yes", "/x search": "yes"},
		},
		{
			"training closed everywhere", "rules:\n- for: everyone\n  disallow: {train-ai: /}\n",
			map[string]string{"/ ai-train": "no", "/x ai-input": "", "/x search": ""},
		},
		{
			"closed in one section", "rules:\n- for: everyone\n  allow: {train-ai: /}\n  disallow: {train-ai: /archive/}\n",
			map[string]string{"/ ai-train": "yes", "/archive/x ai-train": "no"},
		},
		{
			"open in one section", "rules:\n- for: everyone\n  disallow: {train-ai: /}\n  allow: {train-ai: /press/}\n",
			map[string]string{"/ ai-train": "no", "/press/x ai-train": "yes"},
		},
		{
			"one crawler may not", "rules:\n- for: everyone\n  allow: {train-ai: /}\n- for: GPTBot\n  disallow: {train-ai: /}\n",
			map[string]string{"/ ai-train": "no"},
		},
		{
			"one crawler may", "rules:\n- for: everyone\n  disallow: {train-ai: /}\n- for: GPTBot\n  allow: {train-ai: /}\n",
			map[string]string{"/ ai-train": "no"},
		},
		{
			"another host", "rules:\n- for: everyone\n  hosts: other.example.com\n  disallow: {train-ai: /}\n- for: everyone\n  allow: {train-ai: /}\n",
			map[string]string{"/ ai-train": "yes"},
		},
		{
			"only verified clients may", "rules:\n- for: everyone\n  disallow: {train-ai: /}\n- for: GPTBot\n  identity: verified\n  allow: {train-ai: /}\n",
			map[string]string{"/ ai-train": "no"},
		},
		{
			"patterns that cross", "rules:\n- for: everyone\n  disallow: {train-ai: '/*.pdf'}\n  allow: {train-ai: /, ai-use: '/open/'}\n",
			map[string]string{"/a.pdf ai-train": "no", "/open/a.pdf ai-train": "no", "/open/a.pdf ai-input": "yes", "/open/a ai-train": "yes", "/x ai-input": ""},
		},
		{
			"offered", "rules:\n- for: everyone\n  disallow: {train-ai: /, ai-use: /}\n  allow: {search: /}\nrights: {offers: {usage: train-ai, payment: crawl, url: 'https://example.com/buy', amount: 0.01, currency: EUR, users: commercial}}\n",
			map[string]string{"/ ai-train": "license", "/ ai-input": "no", "/ search": "yes"},
		},
		{
			"offered, and nothing permitted", "rules:\n- for: everyone\n  disallow: {train-ai: /}\nrights: {offers: {usage: train-ai, payment: crawl, url: 'https://example.com/buy'}}\n",
			map[string]string{"/ ai-train": "license", "/ ai-input": "", "/ search": ""},
		},
		{
			"an offer of what is allowed", "rules:\n- for: everyone\n  allow: {train-ai: /}\nrights: {offers: {usage: train-ai, payment: crawl, url: 'https://example.com/buy'}}\n",
			map[string]string{"/ ai-train": "yes"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			text := c.text
			if !strings.Contains(text, "rights:") {
				text += owner
			}
			body := document(t, text)
			doc, err := crawlertest.ReadRSL(body)
			if err != nil {
				t.Fatalf("%v\n%s", err, body)
			}
			for place, want := range c.want {
				path, usage, _ := strings.Cut(place, " ")
				if got := doc.At(path, usage); got != want {
					t.Errorf("%s: %q, want %q\n%s", place, got, want, body)
				}
			}
			if o := doc.Contents[0]; strings.Contains(text, "copyright") && (o.Owner != "Example <Media> & Co" || o.Email != "rights@example.com" || o.Terms != "https://www.example.com/terms?a=1&b=2") {
				t.Errorf("%+v", o)
			}
		})
	}
	if body := document(t, "rules:\n- for: everyone\n  disallow: {crawl: /}\n"); body != "" {
		t.Errorf("a policy without rights has a document:\n%s", body)
	}
}

// A parser in another language accepts the document as well-formed XML.
func TestWellFormed(t *testing.T) {
	t.Parallel()
	body := document(t, "rules:\n- for: everyone\n  disallow: {train-ai: ['/*.pdf$', '/a?b=\"<>&x']}\n"+owner)
	tool, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed")
	}
	cmd := exec.Command(tool, "-c", "import sys, xml.etree.ElementTree as e; r = e.fromstring(sys.stdin.buffer.read()); print(r.tag, len(r.findall('{*}content/{*}license/{*}prohibits')))")
	cmd.Stdin = strings.NewReader(body)
	out, err := cmd.CombinedOutput()
	if err != nil || string(out) != "{https://rslstandard.org/rsl}rsl 2\n" {
		t.Errorf("%s %v\n%s", out, err, body)
	}
}

func TestApplyLink(t *testing.T) {
	t.Parallel()
	link := rsl.Link("/license.xml")
	if link != `</license.xml>; rel="license"; type="application/rsl+xml"` {
		t.Error(link)
	}
	h := http.Header{"Link": {`</style.css>; rel=preload`}}
	link.Apply(h)
	link.Apply(h)
	if got := h["Link"]; len(got) != 2 || got[1] != string(link) {
		t.Errorf("%q", got)
	}
}
