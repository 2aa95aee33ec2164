// SPDX-License-Identifier: Apache-2.0

package crawlers

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func ptr[T any](v T) *T { return &v }

func TestMergeAdds(t *testing.T) {
	c := defaultCatalog(t)
	before := c.Len()
	m, err := c.Merge(
		Row{Token: "PartnerBot", Operator: "Partner Ltd", Category: CategoryFeed, UserAgent: "PartnerFetcher", Purposes: []string{"news"}, Follows: []string{"googlebot", "OtherBot"}},
		Row{Token: "OtherBot", RobotsOnly: ptr(true)},
		Row{Token: "Bare"},
	)
	if err != nil {
		t.Fatal(err)
	}
	if m.Len() != before+3 || c.Len() != before {
		t.Errorf("%d and %d crawlers", m.Len(), c.Len())
	}
	p, _ := m.Lookup("partnerbot")
	want := &Crawler{
		Token: "PartnerBot", Operator: "Partner Ltd", Category: CategoryFeed, UserAgents: []string{"PartnerFetcher"},
		Purposes: []string{"news"}, Follows: []string{"googlebot", "OtherBot"}, Honors: HonorsUnknown, FromPolicy: true,
	}
	if !reflect.DeepEqual(p, want) {
		t.Errorf("got %+v", p)
	}
	r := NewRecognizer(m.Patterns())
	for ua, token := range map[string]string{"PartnerFetcher/1": "PartnerBot", "PartnerBot/1": "", "OtherBot/1": "", "Bare/1": "Bare", "GPTBot/1": "GPTBot"} {
		got := ""
		if i, ok := r.Recognize(ua); ok {
			got = m.At(i).Token
		}
		if got != token {
			t.Errorf("%s: got %q, want %q", ua, got, token)
		}
	}
	if bare, _ := m.Lookup("Bare"); bare.Category != "" || slices.Contains(m.OfCategory(""), bare) != true {
		t.Errorf("a crawler without a category: %+v", bare)
	}
}

func TestMergeOverrides(t *testing.T) {
	c := defaultCatalog(t)
	m, err := c.Merge(
		Row{Token: "bingBOT", Category: CategoryAITraining},
		Row{Token: "AdsBot-Google", IgnoresStar: ptr(false), Follows: []string{"Googlebot"}},
		Row{Token: "Slackbot", RobotsOnly: ptr(true)},
		Row{Token: "Applebot", Follows: []string{}},
	)
	if err != nil {
		t.Fatal(err)
	}
	old, _ := c.Lookup("Bingbot")
	a, _ := m.Lookup("Bingbot")
	if a.Token != "Bingbot" || a.Category != CategoryAITraining || slices.Contains(a.Further, CategoryAITraining) || !slices.Contains(a.Further, CategoryAIInput) ||
		a.Operator != "Microsoft" || !reflect.DeepEqual(a.Verification, old.Verification) || !a.FromPolicy {
		t.Errorf("%+v", a)
	}
	if old.Category != CategorySearch || !slices.Contains(old.Further, CategoryAITraining) || old.FromPolicy {
		t.Errorf("Merge has changed the original catalog: %+v", old)
	}
	if ads, _ := m.Lookup("AdsBot-Google"); ads.IgnoresStar || !slices.Equal(ads.Follows, []string{"Googlebot"}) {
		t.Errorf("%+v", ads)
	}
	if s, _ := m.Lookup("Slackbot"); len(s.Patterns()) != 0 {
		t.Errorf("%+v", s)
	}
	if s, _ := m.Lookup("Applebot"); len(s.Follows) != 0 {
		t.Errorf("%+v", s)
	}
}

// If a crawler of the policy file has the same user-agent string as a crawler of the catalog, the crawler of the policy
// file is recognized, whatever the order of their tokens.
func TestMergeTakesOverAString(t *testing.T) {
	for _, token := range []string{"AAA", "ZZZ"} {
		m, err := defaultCatalog(t).Merge(Row{Token: token, UserAgent: "gptBOT"})
		if err != nil {
			t.Fatal(err)
		}
		if i, ok := NewRecognizer(m.Patterns()).Recognize("GPTBot/1.0"); !ok || m.At(i).Token != token {
			t.Errorf("recognized as %s", m.At(i).Token)
		}
	}
}

func TestMergeErrors(t *testing.T) {
	tests := []struct {
		name  string
		row   Row
		field string
		want  string
	}{
		{"no token", Row{}, "token", "is empty"},
		{"odd token", Row{Token: "(x"}, "token", "begins with"},
		{"category", Row{Token: "Xa", Category: "robot"}, "category", `"robot" does not exist`},
		{"user-agent", Row{Token: "Xa", UserAgent: "http://x"}, "user-agent", "URL"},
		{"long user-agent", Row{Token: "Xa", UserAgent: strings.Repeat("x", maxPattern+1)}, "user-agent", "longer than 128 bytes"},
		{"robots-only with user-agent", Row{Token: "Xa", UserAgent: "Y", RobotsOnly: ptr(true)}, "robots-only", "exclude each other"},
		{"user-agent of a control token", Row{Token: "Google-Extended", UserAgent: "Y"}, "robots-only", "exclude each other"},
		{"follows itself", Row{Token: "Xa", Follows: []string{"xa"}}, "follows", "must not name the crawler itself"},
		{"follows nobody", Row{Token: "Xa", Follows: []string{"Gogglebot"}}, "follows", `not "Gogglebot"`},
		{"purpose", Row{Token: "Xa", Purposes: []string{"a b"}}, "purposes", `"a b"`},
	}
	c := defaultCatalog(t)
	for _, tt := range tests {
		m, err := c.Merge(tt.row)
		var re *RowError
		if m != nil || !errors.As(err, &re) || re.Field != tt.field || re.Token != tt.row.Token || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, %v", tt.name, m, err)
		}
	}
	_, err := c.Merge(Row{Token: "Xa", Category: "a"}, Row{Token: "xa"}, Row{Token: "Y", Category: "b"})
	if joined, ok := err.(interface{ Unwrap() []error }); !ok || len(joined.Unwrap()) != 3 {
		t.Errorf("not every problem is reported: %v", err)
	}
	if m, err := c.Merge(); err != nil || m.Len() != c.Len() {
		t.Errorf("merging nothing: %v", err)
	}
}
