// SPDX-License-Identifier: Apache-2.0

package acap_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/acap"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
)

// TestWrite has policies with the expected records and problems.
func TestWrite(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, publish, rules, want string }{
		{"nothing that groups cannot say", "{acap: auto}", `
  - for: everyone
    disallow: {crawl: /a/}`, ""},
		{"a whole policy of which nothing holds on the host", "{acap: full}", `
  - for: everyone
    hosts: other.example
    disallow: {crawl: /a/}`, `
ACAP-ignore-conventional-records

ACAP-crawler: *
ACAP-allow-crawl: /
`},
		{"where patterns cross, the prohibition is made narrower", "{acap: auto}", `
  - for: everyone
    disallow: {index: /*/drafts/}
    allow: {index: /news/}`, `
ACAP-crawler: *
ACAP-disallow-index: /*/drafts/
ACAP-disallow-index: /news/*/drafts/
ACAP-disallow-index: /news/drafts/
ACAP-allow-index: /news/
`},
		{"a prohibition that is narrower already", "{acap: auto}", `
  - for: everyone
    disallow: {index: /news/}
  - for: CCBot
    allow: {index: /*.html}`, `
ACAP-crawler: *
ACAP-disallow-index: /news/

ACAP-crawler: CCBot
ACAP-disallow-index: /news/
ACAP-allow-index: /*.html
`},
		{"a named crawler gets the statements for everyone too", "{acap: auto}", `
  - for: everyone
    disallow: {index: /a/, follow: /b/}
  - for: CCBot
    disallow: {index: /c/}`, `
ACAP-crawler: *
ACAP-disallow-index: /a/
ACAP-disallow-follow: /b/

ACAP-crawler: CCBot
ACAP-disallow-index: /a/
ACAP-disallow-index: /c/
`},
		{"a permission that overrides a prohibition", "{acap: auto}", `
  - for: everyone
    disallow: {index: [/a/, /b/]}
  - for: CCBot
    allow: {index: /a/}`, `
ACAP-crawler: *
ACAP-disallow-index: /a/
ACAP-disallow-index: /b/

ACAP-crawler: CCBot
ACAP-disallow-index: /b/
ACAP-allow-index: /a/
`},
		{"a prohibition of one audience that another may not override", "{acap: auto}", `
  - for: everyone
    disallow: {index: /a/b/}
  - for: everyone
    allow: {index: /a/}`, `
ACAP-crawler: *
ACAP-disallow-index: /a/b/
ACAP-allow-index: /a/
`},
		{"permissions whose qualifiers unite", "{acap: auto}", `
  - for: everyone
    allow:
      preserve: {paths: /a*c, time-limit: 3-days}
  - for: CCBot
    allow:
      preserve: {paths: /*b, time-limit: 5-days}`, `
ACAP-crawler: *
ACAP-allow-preserve: /a*c time-limit=3-days

ACAP-crawler: CCBot
ACAP-allow-preserve: /a*c time-limit=3-days
ACAP-allow-preserve: /*b time-limit=5-days
`},
		{"qualifiers of the narrower permission", "{acap: auto}", `
  - for: everyone
    allow: {present-snippet: {paths: /, max-length: 200-chars}}
  - for: everyone
    allow: {present-snippet: {paths: /a/, max-length: 100-chars}}`, `
ACAP-crawler: *
ACAP-allow-present-snippet: / max-length=200-chars
ACAP-allow-present-snippet: /a/ max-length=100-chars
`},
		{"other prohibits what is not permitted", "{acap: auto}", `
  - for: everyone
    disallow: {other: /a/}
    allow: {index: /a/}`, `
ACAP-crawler: *
ACAP-allow-crawl: /
ACAP-disallow-other: /a/
ACAP-allow-index: /a/
`},
		{"a rule for a usage purpose", "{acap: auto}", `
  - for: everyone
    disallow: {index: /a/}
  - for: everyone
    usage-purposes: [News, sports]
    allow: {index: /b/}
    disallow: {index: /c/}`, `
ACAP-crawler: *
ACAP-disallow-index: /a/
ACAP-usage-purpose: news
ACAP-usage-purpose: sports
ACAP-allow-index: /b/
ACAP-disallow-index: /c/
`},
		{"a purpose cannot override what is said for all", "{acap: auto}", `
  - for: everyone
    disallow: {index: /a/}
  - for: 'purpose:news'
    allow: {index: /a/}`, `
ACAP-crawler: *
ACAP-disallow-index: /a/
ACAP-usage-purpose: news
ACAP-allow-index: /a/
warning acap-purpose 7
`},
		{"a purpose that two patterns match", "{acap: auto}", `
  - for: everyone
    usage-purposes: 'n*'
    allow: {index: /a}
  - for: everyone
    usage-purposes: '*s'
    disallow: {index: /*b}`, `
ACAP-crawler: *
ACAP-usage-purpose: *s
ACAP-disallow-index: /*b
ACAP-usage-purpose: n*
ACAP-allow-index: /a
ACAP-usage-purpose: n*s
ACAP-disallow-index: /a*b
`},
		{"three patterns of which two decide together", "{acap: auto}", `
  - for: everyone
    hosts: '*.example.com'
    allow: {index: /*/}
    disallow: {index: /}
  - for: CCBot
    allow: {index: /*b}
    disallow: {index: /a}`, `
ACAP-crawler: *
ACAP-allow-index: /*/
ACAP-disallow-index: /

ACAP-crawler: CCBot
ACAP-allow-index: /*/
ACAP-disallow-index: /
ACAP-allow-index: /a*/*b
ACAP-allow-index: /a*b*/
ACAP-disallow-index: /a
`},
		{"a permission that depends on another with an earlier date", "{acap: auto}", `
  - for: everyone
    disallow: {present-snippet: /}
  - for: CCBot
    allow:
      present: {paths: /a, time-limit: until-2026-06-15}
  - for: everyone
    allow:
      present-snippet: {paths: /, time-limit: until-2026-06-14}
  - for: everyone-else
    hosts: '*.example.com'
    allow: {present-snippet: /}`, `
ACAP-crawler: *
ACAP-disallow-present-snippet: /

ACAP-crawler: CCBot
ACAP-allow-present: /a time-limit=until-2026-06-15
ACAP-disallow-present-snippet: /a
ACAP-disallow-present-snippet: /
warning acap-undecidable 14
warning acap-undecidable 8
`},
		{"two prohibitions of which the narrower is overridden where a third pattern crosses", "{acap: auto}", `
  - for: everyone
    hosts: www.example.com
    allow: {index: /a*a}
    disallow: {index: /*/}
  - for: everyone
    allow: {index: /*/}
  - for: everyone
    disallow: {index: /aa}`, `
ACAP-crawler: *
ACAP-allow-index: /a*a
ACAP-allow-index: /aa*/
ACAP-disallow-index: /*/
ACAP-disallow-index: /aa
`},
		{"a permission of a purpose that only applies where another permission does", "{acap: auto}", `
  - for: everyone
    usage-purposes: '*s'
    allow: {index: /*/}
    disallow: {index: /*b}
  - for: everyone
    allow: {index: /*a*b}
  - for: everyone
    disallow: {index: /*b}`, `
ACAP-crawler: *
ACAP-allow-index: /*a*b
ACAP-allow-index: /*b*/*a*b
ACAP-allow-index: /*b*a*/*b
ACAP-disallow-index: /*b
ACAP-usage-purpose: *s
ACAP-allow-index: /*/
ACAP-allow-index: /*b*/
ACAP-disallow-index: /*b
warning acap-undecidable 9
warning acap-purpose 9
warning acap-purpose 6
`},
		{"a permission of which ACAP cannot take out what one purpose may not do", "{acap: auto}", `
  - for: everyone
    allow: {index: /a*b*c*d}
  - for: 'purpose:sport'
    disallow: {index: '/*w*x*y*z'}`, `
ACAP-crawler: *
ACAP-allow-index: /a*b*c*d
ACAP-usage-purpose: sport
ACAP-disallow-index: /a*b*c*d
ACAP-disallow-index: /*w*x*y*z
warning acap-purpose 5
`},
		{"a permission of which ACAP cannot take out what is disallowed", "{acap: auto}", `
  - for: everyone
    disallow: {index: '/*w*x*y*z'}
  - for: CCBot
    allow: {index: {paths: /a*b*c*d, time-limit: 3-days}}`, `
ACAP-crawler: *
ACAP-disallow-index: /*w*x*y*z

ACAP-crawler: CCBot
ACAP-disallow-index: /*w*x*y*z
ACAP-disallow-index: /a*b*c*d
warning acap-undecidable 7
`},
		{"qualifiers that are not ready", "{acap: auto}", `
  - for: everyone
    allow:
      present: {paths: /a/, must-use-resource: /credit.txt}`, `
ACAP-crawler: *
ACAP-disallow-present: /a/
warning acap-not-ready 6
`},
		{"qualifiers that are ready for readers one knows", "{acap: auto, action-requests: on}", `
  - for: everyone
    allow:
      present: {paths: /a/, must-use-resource: /credit.txt}
  - for: CCBot
    requests: {take-down: /old}`, `
ACAP-crawler: *
ACAP-allow-present: /a/ must-use-resource=/credit.txt

ACAP-crawler: CCBot
ACAP-request-take-down: /old
`},
		{"a present-usage is spelled out where a rule speaks of it", "{acap: auto}", `
  - for: everyone
    allow: {present: /}
    disallow: {present-thumbnail: /a/}
  - for: CCBot
    disallow: {present: /b/}`, `
ACAP-crawler: *
ACAP-allow-present: /
ACAP-allow-present-thumbnail: /
ACAP-disallow-present-thumbnail: /a/

ACAP-crawler: CCBot
ACAP-allow-present: /
ACAP-allow-present-thumbnail: /
ACAP-disallow-present-thumbnail: /a/
ACAP-disallow-present: /b/
ACAP-disallow-present-thumbnail: /b/
`},
		{"references, of which one is circular", "{acap: auto}", `
  - for: everyone
    permissions-reference: /robots.txt
  - for: [CCBot, Bingbot]
    permissions-reference: /more.txt`, `
ACAP-crawler: Bingbot
ACAP-crawler: CCBot
ACAP-permissions-reference: /more.txt
error acap-circular 4
`},
		{"two permissions of which each opens what the other does not", "{acap: auto}", `
  - for: everyone
    disallow: {index: [/*a, /*b]}
  - for: CCBot
    allow: {index: ['/*a*c', '/*b*c']}`, `
ACAP-crawler: *
ACAP-disallow-index: /*a
ACAP-disallow-index: /*b

ACAP-crawler: CCBot
ACAP-disallow-index: /*a
ACAP-disallow-index: /*b
ACAP-allow-index: /*a*c
ACAP-allow-index: /*b*c
warning acap-undecidable 7
warning acap-undecidable 7
`},
		{"a prohibition beside a permission that is narrower", "{acap: auto}", `
  - for: everyone
    disallow: {index: /}
    allow: {index: '*/a'}
  - for: CCBot
    allow: {index: /*x*y}
    disallow: {index: /*z*w*q}`, `
ACAP-crawler: *
ACAP-disallow-index: /
ACAP-allow-index: /*/a
ACAP-allow-index: /a

ACAP-crawler: CCBot
ACAP-disallow-index: /
ACAP-allow-index: /*/a
ACAP-allow-index: /a
ACAP-allow-index: /*x*y
ACAP-disallow-index: /*z*w*q
ACAP-disallow-index: /a*z*w*q
`},
		{"a set and a usage with names", "{acap: auto}", `
  - for: everyone
    disallow: {index: free}
    allow: {teaser: free}
resources:
  free: [/a/, /b/]
usages:
  teaser: {usage: present-snippet, max-length: 50-words}`, `
ACAP-resource-set: free /a/ /b/
ACAP-qualified-usage: teaser present-snippet max-length=50-words

ACAP-crawler: *
ACAP-disallow-index: the-acap:resource-set:free
ACAP-allow-(teaser): the-acap:resource-set:free
`},
		{"a resource that crawlers may not fetch", "{acap: auto, action-requests: on}", `
  - for: everyone
    disallow: {crawl: /closed/}
    allow:
      present: {paths: /a/, must-use-resource: /closed/credit.txt}`, `
ACAP-crawler: *
ACAP-allow-present: /a/ must-use-resource=/closed/credit.txt
warning acap-resource-disallowed 7
`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			file, diagnostics := policyfile.Load("test.yaml", []byte("version: 1\npublish: "+c.publish+"\nrules:"+c.rules+"\n"))
			if file == nil {
				t.Fatal(diagnostics)
			}
			lines, problems := acap.NewWriter(file.Policy).Write("www.example.com")
			var got strings.Builder
			for _, l := range lines {
				got.WriteString(l.Text + "\n")
			}
			for _, p := range problems {
				fmt.Fprintf(&got, "%v %s %d\n", p.Severity, p.Code, p.Pos.Line)
			}
			if want := strings.TrimPrefix(c.want, "\n"); got.String() != want {
				t.Errorf("got\n%s\nwant\n%s", got.String(), want)
			}
		})
	}
}

// Some readers treat a permission of "present" as a permission of each presentation, such as "present-oldcopy". For
// such a reader, the permission of "present" for /photos/ would win over the prohibition of "present-oldcopy" for /
// (sections 2.4.5 and 2.5.5). Therefore the records repeat the prohibition for /photos/.
func TestProhibitionIsRepeatedWherePresentIsAllowed(t *testing.T) {
	statement := func(path string, allow bool, u policy.Usage) policy.Statement {
		return policy.Statement{Usage: u, Pattern: pathpattern.MustParse(path), Allow: allow}
	}
	p := policy.Compile(&policy.Spec{Publish: policy.Publish{ACAP: policy.Auto}, Rules: []policy.Rule{{For: []policy.Audience{{}}, Statements: []policy.Statement{
		statement("/photos/", true, policy.Present), statement("/", false, policy.PresentOldCopy), statement("/photos/new/", true, policy.PresentOldCopy),
	}}}})
	lines, problems := acap.NewWriter(p).Write("")
	var text string
	for _, l := range lines {
		text += l.Text + "\n"
	}
	for _, want := range []string{"ACAP-allow-present: /photos/\n", "ACAP-disallow-present-oldcopy: /\n", "ACAP-disallow-present-oldcopy: /photos/\n", "ACAP-allow-present-oldcopy: /photos/new/\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q, %v in\n%s", want, problems, text)
		}
	}
	read := acap.Parse([]byte(text))
	for path, allowed := range map[string]bool{"/": false, "/photos/a": false, "/photos/new/a": true} {
		if got := read.Decide(acap.Query{Crawler: "SomeBot", Path: path, Usage: policy.PresentOldCopy}).Verdict; (got != policy.Disallowed) != allowed {
			t.Errorf("present-oldcopy of %s is %v in\n%s", path, got, text)
		}
	}
}

// The grammar of section 3 allows only the characters that RFC 3986 allows in paths, without the apostrophe. So the
// records contain brackets, braces and apostrophes in encoded form.
func TestBracketsAreEncoded(t *testing.T) {
	p := policy.Compile(&policy.Spec{Publish: policy.Publish{ACAP: policy.Auto}, Rules: []policy.Rule{{For: []policy.Audience{{}}, Statements: []policy.Statement{
		{Usage: policy.Index, Pattern: pathpattern.MustParse("/a[b]/it's/{x}")},
	}}}})
	lines, _ := acap.NewWriter(p).Write("")
	var text string
	for _, l := range lines {
		text += l.Text + "\n"
	}
	if !strings.Contains(text, "ACAP-disallow-index: /a%5Bb%5D/it%27s/%7Bx%7D\n") {
		t.Error(text)
	}
	if got := acap.Parse([]byte(text)).Decide(acap.Query{Path: "/a[b]/it's/{x}", Usage: policy.Index}).Verdict; got != policy.Disallowed {
		t.Errorf("%v in\n%s", got, text)
	}
}
