// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/crawlertest"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// Everything is disallowed for purpose a, and allowed for purpose b. Crawlers that have both purposes combine the
// groups of a and b, so the group of b must not have an Allow line for /admin/. A crawler that has only purpose b may
// still fetch /admin/, because the group of b does not disallow it. A warning says that the Allow line is missing
// because of purpose a.
func TestPurposeBesideAnotherThatIsDisallowedEverything(t *testing.T) {
	crawl := func(path string, allow bool) policy.Statement {
		return policy.Statement{Usage: policy.Crawl, Pattern: pathpattern.MustParse(path), Allow: allow}
	}
	p := compile(t, &policy.Spec{
		Publish: policy.Publish{UserAgentPurpose: policy.On},
		Rules: []policy.Rule{
			{For: []policy.Audience{{Kind: policy.ForPurpose, Name: "a"}}, Statements: []policy.Statement{crawl("/", false)}},
			{For: []policy.Audience{{}}, Statements: []policy.Statement{crawl("/admin/", false)}},
			{For: []policy.Audience{{Kind: policy.ForPurpose, Name: "b"}}, Statements: []policy.Statement{crawl("/", true), crawl("/admin/", true)}},
		},
	})
	f, problems := Render(p, "", Options{})
	read := crawlertest.ReadRobotsTxt(string(f.Body))
	for token, open := range map[string]bool{"purpose-a": false, "purpose-b": true, "SomeBot": false} {
		if read.Allowed(token, "/admin/") != open {
			t.Errorf("%s: /admin/ is open: %v in\n%s", token, !open, f.Body)
		}
	}
	if len(problems) == 0 || !strings.Contains(problems[0].Message, "the rules for crawlers with another purpose disallow") {
		t.Errorf("%+v", problems)
	}
}
