// SPDX-License-Identifier: Apache-2.0

package acap_test

import (
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/acap"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// The name of a crawler must start with a letter (ACAP 1.0 section 3).
func TestNamesOfCrawlersStartWithALetter(t *testing.T) {
	for name, want := range map[string]int{"SpiderBot": 0, "360Spider": 1} {
		p := policy.Compile(&policy.Spec{
			Publish: policy.Publish{ACAP: policy.Full},
			Rules: []policy.Rule{{
				For:        []policy.Audience{policy.ParseAudience(name)},
				Statements: []policy.Statement{{Usage: policy.Index, Pattern: pathpattern.All}},
			}},
		})
		_, problems := acap.NewWriter(p).Write("")
		if len(problems) != want || want > 0 && problems[0].Code != "acap-crawler-name" {
			t.Errorf("%s: %+v", name, problems)
		}
	}
}

// The URIs of qualifiers may begin with "the-acap:". In must-use-resource, "extract:id:", "extract:class:" or
// "extract:meta:" may follow (section 2.5.3.2). In must-include-resource, "credit:" or "link:" may follow (section
// 2.5.5.2.5).
func TestURIsOfACAPsOwnScheme(t *testing.T) {
	for _, c := range []struct {
		usage policy.Usage
		name  policy.QualifierName
		value string
		ok    bool
	}{
		{policy.Index, policy.QualifierMustUseResource, "the-acap:extract:id:abstract", true},
		{policy.Index, policy.QualifierMustUseResource, "THE-ACAP:extract:class:abstract", true},
		{policy.Index, policy.QualifierMustUseResource, "the-acap:extract:meta:description", true},
		{policy.Index, policy.QualifierMustUseResource, "the-acap:extract:xpath:a", false},
		{policy.Index, policy.QualifierMustUseResource, "the-acap:credit:/c.html", false},
		{policy.Index, policy.QualifierMustUseResource, "the-acap:extract:id:", false},
		{policy.Index, policy.QualifierMustUseResource, "/abstract.html", true},
		{policy.Present, policy.QualifierMustIncludeResource, "the-acap:credit:/c.html", true},
		{policy.Present, policy.QualifierMustIncludeResource, "the-acap:link:https://www.example.com/terms", true},
		{policy.Present, policy.QualifierMustIncludeResource, "the-acap:banner:/b.html", false},
		{policy.Present, policy.QualifierMustIncludeResource, "https://www.example.com/terms", true},
	} {
		var q policy.Qualifiers
		if err := q.SetQualifier(c.usage, c.name, c.value); (err == nil) != c.ok {
			t.Errorf("%s=%s: %v", c.name, c.value, err)
		}
		f := acap.Parse([]byte("##ACAP version=1.0\nACAP-crawler: *\nACAP-allow-" + c.usage.String() + ": /a/ " + string(c.name) + "=" + c.value + "\n"))
		if (len(f.Problems) == 0) != c.ok {
			t.Errorf("%s=%s as a record: %+v", c.name, c.value, f.Problems)
		}
	}
}
