// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
)

// If the site's file disallows a usage for all paths, every line of preferences in the merged file also disallows it,
// because the line with the longest path replaces the others.
func TestMergePreferencesToTheStricter(t *testing.T) {
	searching := func(usage policy.Usage, path string, allow bool) policy.Statement {
		return policy.Statement{Usage: usage, Pattern: pathpattern.MustParse(path), Allow: allow}
	}
	for name, tt := range map[string]struct {
		ours   []policy.Statement
		theirs string
		want   []string
		not    string
	}{
		"other usages": {
			[]policy.Statement{searching(policy.Search, "/a/", false)},
			"Content-Usage: train-ai=n\nContent-Signal: ai-train=no",
			[]string{"Content-Usage: /a/ search=n, train-ai=n", "Content-Usage: train-ai=n", "Content-Signal: ai-train=no"},
			"",
		},
		"the same usage": {
			[]policy.Statement{searching(policy.TrainAI, "/", true)},
			"Content-Usage: train-ai=n;x=1, search=y",
			[]string{"Content-Usage: train-ai=n"},
			"train-ai=y",
		},
		"only permissions": {
			[]policy.Statement{searching(policy.TrainAI, "/", false)},
			"Content-Usage: train-ai=y\nContent-Usage: /x search=n",
			[]string{"Content-Usage: train-ai=n"},
			"=y",
		},
		"no names": {
			[]policy.Statement{searching(policy.TrainAI, "/", false)},
			"Content-Usage: a b=n, \u00e9=n, =n, n",
			[]string{"Content-Usage: train-ai=n"},
			"b=n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			spec := &policy.Spec{Publish: policy.Publish{ContentUsage: policy.On}, Rules: []policy.Rule{{For: []policy.Audience{{Kind: policy.ForEveryone}}, Statements: tt.ours}}}
			other := robotstxt.Parse([]byte("User-agent: *\nAllow: /\n" + tt.theirs + "\n"))
			f, problems, notes := Merge(compile(t, spec), "www.example.com", other, Options{})
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			lines := strings.Split(string(f.Body), "\n")
			for _, w := range tt.want {
				n := 0
				for _, l := range lines {
					if l == w || strings.HasPrefix(l, w+", ") {
						n++
					}
				}
				if n != 1 {
					t.Errorf("%q is in the file %d times\n%s", w, n, f.Body)
				}
			}
			if tt.not != "" && strings.Contains(string(f.Body), tt.not) {
				t.Errorf("%q is in the file\n%s", tt.not, f.Body)
			}
			if name == "other usages" && len(notes) > 0 {
				t.Errorf("notes about lines left out: %+v", notes)
			}
		})
	}
}
