// SPDX-License-Identifier: Apache-2.0

package publiclist

import (
	"slices"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
)

const (
	userAgentsList = `[
		{"pattern": "GPTBot", "tags": ["ai-crawler"], "instances": ["GPTBot/1.0", "Unheard/1.0"]},
		{"pattern": "curl", "tags": ["http-library"], "instances": ["curl/8.0"]},
		{"pattern": "Nobody", "tags": ["seo", "made-up"], "instances": ["Nobody-Knows/1"]}
	]`
	wellKnownList = `[
		{"id": "google-crawler", "categories": ["google", "search-engine"], "pattern": {"accepted": ["Googlebot"]}, "instances": {"accepted": ["Googlebot/2.1"]}},
		{"id": "none", "categories": ["unknown"], "pattern": {}, "instances": {"accepted": ["Unheard/2.0"]}}
	]`
	aiList = `{
		"GPTBot": {"operator": "OpenAI", "respect": "Yes", "function": "Training"},
		"Google-Extended": {"respect": "Yes", "function": "Training"},
		"UnheardBot": {"respect": "No", "function": "?"}
	}`
)

func TestCompare(t *testing.T) {
	t.Parallel()
	c, err := crawlers.Default()
	if err != nil {
		t.Fatal(err)
	}
	r := crawlers.NewRecognizer(c.Patterns())
	var reports []Report
	for _, tt := range []struct {
		data, format string
		all          Count
		missing      []string
	}{
		{userAgentsList, FormatUserAgents, Count{1, 3}, []string{"GPTBot", "Nobody"}},
		{wellKnownList, FormatWellKnown, Count{1, 2}, []string{"none"}},
		{aiList, FormatAI, Count{2, 3}, []string{"UnheardBot"}}, // no header contains Google-Extended, but the catalog has this token
	} {
		list, err := Parse([]byte(tt.data))
		if err != nil {
			t.Fatal(err)
		}
		report := list.Compare(c, r)
		var missing []string
		for _, m := range report.Missing {
			missing = append(missing, m.Name)
		}
		if report.Format != tt.format || report.All != tt.all || !slices.Equal(missing, tt.missing) {
			t.Errorf("%s: %+v", tt.format, report)
		}
		reports = append(reports, report)
	}
	var out strings.Builder
	if err := WriteTable(&out, reports); err != nil {
		t.Fatal(err)
	}
	want := `
       category  crawler-user-agents  well-known-bots  ai.robots.txt
             ai        1 of 2, 50.0%                -  2 of 3, 66.7%
         search                    -   1 of 1, 100.0%              -
            seo         0 of 1, 0.0%                -              -
         (none)                    -     0 of 1, 0.0%              -
           tool         0 of 1, 0.0%                -              -
  all but tools        1 of 3, 33.3%    1 of 2, 50.0%  2 of 3, 66.7%
`
	if got := "\n" + out.String(); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

func TestParseErrors(t *testing.T) {
	t.Parallel()
	for name, data := range map[string]string{
		"empty":              "",
		"no JSON":            "User-agent: *",
		"empty array":        "[]",
		"empty object":       "{}",
		"another object":     `{"a": {"b": 1}}`,
		"another array":      `[1, 2]`,
		"no instances":       `[{"pattern": "a"}]`,
		"no pattern":         `[{"instances": ["a"]}]`,
		"a broken end":       userAgentsList[:100],
		"instances of shape": `[{"id": "a", "instances": ["a"]}]`,
	} {
		if list, err := Parse([]byte(data)); err == nil || !strings.Contains(err.Error(), "expected") {
			t.Errorf("%s: %+v, %v", name, list, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(userAgentsList))
	f.Add([]byte(wellKnownList))
	f.Add([]byte(aiList))
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := Parse(data)
		if err == nil && (len(list.Entries) == 0 || list.Format == "") {
			t.Errorf("%+v", list)
		}
	})
}
