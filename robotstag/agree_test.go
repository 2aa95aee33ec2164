// SPDX-License-Identifier: Apache-2.0

package robotstag

import (
	"flag"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/crawlertest"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/policytest"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotsrule"
)

var (
	agreements = flag.Int("agreements", testkit.Rounds(400, 800), "pages whose headers are compared with the policy")
	seed       = flag.Uint64("seed", 1, "seed of the random policies")
)

// For each crawler, the headers have the strictest combination of the policy's decisions for this crawler and for
// everyone.
func TestHeadersAgreeWithPolicy(t *testing.T) {
	n := *agreements
	if testing.Short() {
		n /= 2 // only a few pages make an exception for a crawler
	}
	t.Logf("seed %d, %d pages", *seed, n)
	r := rand.New(rand.NewPCG(*seed, 0))
	checked, exempt := 0, 0
	for range n {
		spec := policytest.Random(r, policytest.Options{})
		spec.Publish.ContentUsage = policy.On
		spec.Crawlers = slices.Clone(spec.Crawlers)
		spec.Crawlers[2].Control = &policy.Control{Rules: robotsrule.Of("noarchive"), Takes: []policy.Usage{policy.TrainAI}}
		spec.Crawlers[4].Control = &policy.Control{Rules: robotsrule.Of("noarchive"), Takes: []policy.Usage{policy.TrainAI, policy.AIUse}}
		spec.Publish.Controls = policy.Auto
		if choice := r.IntN(3); choice > 0 {
			spec.Publish.ControlChoices = []policy.ControlChoice{{Crawler: spec.Crawlers[4].Token, Value: []string{"", "noarchive", policy.NoControl}[choice]}}
		}
		p := policy.Compile(spec)
		q := policytest.Question{Host: policytest.Hosts[r.IntN(len(policytest.Hosts))], Path: policytest.Path(r), Now: policytest.Now}
		ask := policy.Query{Host: q.Host, Path: q.Path, Now: q.Now}
		members, _ := Members(p, ask)
		verdicts, _ := Preferences(p, ask)
		v, problems := Build(members, Usage{verdicts.Verdicts(), &spec.Publish}, q.Now)
		if len(problems) > 0 {
			t.Fatalf("%v", problems)
		}
		h := http.Header{}
		Apply(h, v, AllChannels)
		everyone := policytest.Rights(spec, q)
		for _, q.Token = range policytest.Tokens {
			if strings.HasSuffix(q.Token, "-Extended") {
				continue // this token does not read pages
			}
			own := policytest.Rights(spec, q)
			want := own.And(everyone)
			agent := strings.ToLower(q.Token)
			if got := evaluateTag(t, h[RobotsTagField], agent); got != want {
				t.Fatalf("%q tells %q %+v, want %+v; %+v of %+v", h[RobotsTagField], agent, got, want, q, spec.Rules)
			}
			if got := crawlertest.EvaluateX(h[XRobotsTagField], agent); got != want {
				t.Fatalf("%q tells %q %+v, want %+v; %+v of %+v", h[XRobotsTagField], agent, got, want, q, spec.Rules)
			}
			checked++
			if own != want {
				exempt++
			}
		}
		q.Token = "" // this field does not have audiences
		var prefs []string
		for _, u := range []policy.Usage{policy.TrainAI, policy.AIUse, policy.Search} {
			if s := policytest.Preference(spec, q, u); s != "" {
				prefs = append(prefs, s)
			}
		}
		if got := strings.Join(h[contentUsageField], "|"); got != strings.Join(prefs, ", ") {
			t.Fatalf("Content-Usage %q, want %q: %+v of %+v", got, prefs, q, spec.Rules)
		}
	}
	t.Logf("%d crawlers asked; %d were exempted from what holds for everyone, which no header can say", checked, exempt)
	if exempt == 0 || exempt*2 > checked {
		t.Error("the generator makes too few or too many exemptions to prove anything")
	}
}

func tagRules(t *testing.T, lines []string) map[string][][2]string {
	t.Helper()
	rules, err := crawlertest.TagRules(lines)
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

func evaluateTag(t *testing.T, lines []string, agent string) crawlertest.Rights {
	t.Helper()
	r, err := crawlertest.EvaluateTag(lines, agent)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
