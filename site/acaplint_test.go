// SPDX-License-Identifier: Apache-2.0

package site_test

import (
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

// The specification of a channel, such as robots.txt or a header, may not allow some statements of a policy. Loading the
// policy reports the places of these statements.
func TestChannelsReportWhatTheyCannotSay(t *testing.T) {
	for _, c := range []struct {
		name, section string
		policy        string
		want          string // the place, code and the beginning of the message
		not           string // a text that no line of robots.txt contains
	}{
		{
			"must-include-resource of a presentation", "ACAP 2.5.5.2.5",
			"  - for: everyone\n    allow:\n      present: {paths: /news/, must-include-resource: /credit.html}\n",
			`5:24: warning: according to ACAP 1.0, the must-… qualifiers of present are not ready`, "must-include-resource",
		},
		{
			"must-use-resource of a presentation", "ACAP 2.5.5.2.2",
			"  - for: everyone\n    allow:\n      present-thumbnail: {paths: /book/, must-use-resource: /book/cover.jpg}\n",
			`5:34: warning: according to ACAP 1.0, the must-… qualifiers of present-thumbnail are not ready`, "must-use-resource",
		},
		{
			"the role link", "ACAP 2.5.5.2.5",
			"  - for: everyone\n    allow:\n      present: {paths: /news/, must-include-resource: \"the-acap:link:/terms.html\"}\n",
			`5:24: warning: according to ACAP 1.0, the must-… qualifiers of present are not ready`, "the-acap:link",
		},
		{
			"a purpose without the time limit of everyone", "ACAP 2.3.2",
			"  - for: 'purpose:research'\n    allow: {present-oldsnippet: /}\n  - for: everyone\n    allow:\n      present-oldsnippet: {paths: /, time-limit: 3-days}\n",
			`4:33: warning: the ACAP records allow present-oldsnippet for paths that match "/" only with time-limit=3-days, although the entry for "/" does not require this. For these paths`, "time-limit=4",
		},
		{
			"a file that has references itself", "ACAP 2.3.2",
			"  - for: GPTBot\n    hosts: www.example.com\n    permissions-reference: https://www.example.com/robots.txt\n",
			`3:5: error: the permissions-reference "https://www.example.com/robots.txt" leads back to a robots.txt of this policy`, "",
		},
		{
			"a file of another host of the policy that has references itself", "ACAP 2.3.2",
			"  - for: GPTBot\n    hosts: [www.example.com, \"*.press.example.com\"]\n    permissions-reference: https://a.press.example.com/robots.txt\n",
			`3:5: error: the permissions-reference "https://a.press.example.com/robots.txt" leads back to a robots.txt of this policy`, "",
		},
		{
			"a resource that may not be crawled", "ACAP 2.5.3.2",
			"  - for: everyone\n    disallow:\n      crawl: /private/\n    allow:\n      index: {paths: /news/, must-use-resource: /private/summary.html}\n",
			`7:22: warning: to obey this entry, crawlers must be able to fetch "/private/summary.html"`, "",
		},
		{
			"a resource to include, by its role, that may not be crawled", "ACAP 2.5.5.2.5",
			"  - for: everyone\n    disallow:\n      crawl: /private/\n    allow:\n      present: {paths: /news/, must-include-resource: \"the-acap:credit:/private/credit.html\"}\n",
			`7:24: warning: to obey this entry, crawlers must be able to fetch "the-acap:credit:/private/credit.html"`, "",
		},
		{
			"a resource that this crawler may not crawl", "ACAP 2.5.3.2",
			"  - for: GPTBot\n    disallow:\n      crawl: /private/\n    allow:\n      index: {paths: /news/, must-use-resource: /private/summary.html}\n",
			`7:22: warning: to obey this entry, crawlers must be able to fetch "/private/summary.html"`, "",
		},
		{
			"a modification that a narrower usage does not know", "ACAP 2.5.5.2.4",
			"  - for: everyone\n    allow:\n      present: {paths: /, prohibited-modification: translation}\n      present-thumbnail: /\n",
			`5:24: warning: ACAP defines prohibited-modification for present, but not for present-thumbnail`, "",
		},
		{
			"directives in a named group only", "draft-nottingham-plan-b, Interaction with the User-Agent Line",
			"  - for: GPTBot\n    app-directives: example;x\n",
			`4:21: hint: these app-directives are only in robots.txt groups for named crawlers`, "",
		},
		{
			"a name that Robots-Tag cannot have", "RFC 9651 section 3.3.4",
			"  - for: _odd\n    disallow:\n      index: /\n",
			`5:14: hint: Robots-Tag cannot name "_odd"`, "",
		},
		{
			"a name that no header can have", "RFC 9651 section 3.3.4",
			"  - for: Kangaroo Bot\n    disallow:\n      index: /\n",
			`5:14: hint: neither Robots-Tag nor X-Robots-Tag can name "Kangaroo Bot"`, "",
		},
		{
			"headers for each crawler of a category", "RFC 9110 section 5.4",
			"  - for: category:seo\n    disallow:\n      index: /\n",
			`or write "headers tailored" in the Caddyfile`, "",
		},
	} {
		t.Run(c.name+", "+c.section, func(t *testing.T) {
			s, ds := site.Load("policy.yaml", []byte("version: 1\nrules:\n"+c.policy+"crawlers:\n  _odd: {operator: Odd}\npublish: {acap: full}\n"))
			if !strings.Contains(ds.Text(), c.want) {
				t.Errorf("want %s in\n%s", c.want, ds.Text())
			}
			if c.not == "" {
				return
			}
			if s == nil {
				t.Fatal(ds.Text())
			}
			f, _ := robotsserve.Render(s.Policy, "www.example.com", robotsserve.Options{})
			if strings.Contains(string(f.Body), c.not) {
				t.Errorf("%q is in\n%s", c.not, f.Body)
			}
		})
	}
}

// ACAP describes some qualifiers as "not ready". If the policy switches action-requests on, these qualifiers are
// published without a warning.
func TestUnreadyQualifiersWhereAsked(t *testing.T) {
	s, ds := site.Load("policy.yaml", []byte("version: 1\nrules:\n  - for: everyone\n    allow:\n      present: {paths: /news/, must-include-resource: /credit.html}\n"+
		"publish: {acap: full, action-requests: on}\n"))
	if s == nil || strings.Contains(ds.Text(), "not ready") {
		t.Fatal(ds.Text())
	}
	if f, _ := robotsserve.Render(s.Policy, "", robotsserve.Options{}); !strings.Contains(string(f.Body), "ACAP-allow-present: /news/ must-include-resource=/credit.html") {
		t.Errorf("%s", f.Body)
	}
}
