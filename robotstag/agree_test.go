// SPDX-License-Identifier: Apache-2.0

package robotstag

import (
	"flag"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/internal/policytest"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

var (
	agreements = flag.Int("agreements", 5_000, "pages whose headers are compared with the policy")
	seed       = flag.Uint64("seed", 1, "seed of the random policies")
)

// decided is what the policy itself, asked usage by usage, leaves a crawler with.
// A header cannot know who a client really is, so the strictest answer counts.
func decided(spec *policy.Spec, q policytest.Question) rights {
	r := allRights()
	for _, q.Identity = range []policy.Identity{policy.Unknown, policy.Impostor, policy.Verified} {
		for _, u := range policy.Usages() {
			q.Usage = u
			a := policytest.Decide(spec, q)
			no := a.Verdict == policy.Disallowed
			switch u {
			case policy.Index:
				if no {
					r.index, r.embed = false, false
				} else if s := a.Statement; s != nil && s.Qualifiers != nil && s.Qualifiers.TimeLimit.Kind == policy.UntilDate {
					r.until = min(r.until, s.Qualifiers.TimeLimit.Last.Unix())
				}
			case policy.PresentLink:
				if no {
					r.index, r.embed = false, false
				}
			case policy.Follow:
				r.follow = r.follow && !no
			case policy.Preserve, policy.PresentCurrentCopy, policy.PresentOldCopy, policy.PresentOldSnippet, policy.PresentOldThumbnail:
				r.archive = r.archive && !no
			case policy.PresentSnippet:
				if no {
					r.snippet = 0
				}
			case policy.PresentThumbnail:
				if no {
					r.image, r.video = 0, 0
				}
			}
		}
	}
	return r
}

// preferred is what the policy says to everyone about an AIPREF usage.
func preferred(spec *policy.Spec, q policytest.Question, u policy.Usage) string {
	q.Token, q.Usage = "", u
	no, silent := false, false
	for _, q.Identity = range []policy.Identity{policy.Unknown, policy.Impostor, policy.Verified} {
		switch policytest.Decide(spec, q).Verdict {
		case policy.Disallowed:
			no = true
		case policy.Unstated:
			silent = true
		}
	}
	switch {
	case no:
		return u.String() + "=n"
	case silent:
		return ""
	}
	return u.String() + "=y"
}

// What the headers say to a crawler is what the policy decides for it and for
// everyone, together.
func TestHeadersAgreeWithPolicy(t *testing.T) {
	n := *agreements
	if testing.Short() {
		n /= 10
	}
	t.Logf("seed %d, %d pages", *seed, n)
	r := rand.New(rand.NewPCG(*seed, 0))
	checked, exempt := 0, 0
	for range n {
		spec := policytest.Random(r, policytest.Options{})
		p, err := policy.Compile(spec)
		if err != nil {
			t.Fatal(err)
		}
		q := policytest.Question{Host: policytest.Hosts[r.IntN(len(policytest.Hosts))], Path: policytest.Path(r), Now: policytest.Now}
		ask := policy.Query{Host: q.Host, Path: q.Path, Now: q.Now}
		members, _ := Members(p, ask)
		usage, _ := Preferences(p, ask)
		v, problems := Build(members, usage, q.Now)
		if len(problems) > 0 {
			t.Fatalf("%v", problems)
		}
		h := http.Header{}
		Apply(h, v, Options{Channels: AllChannels})
		everyone := decided(spec, q)
		for _, q.Token = range policytest.Tokens {
			if strings.HasSuffix(q.Token, "-Extended") {
				continue // reads no page
			}
			own := decided(spec, q)
			want := own.both(everyone)
			agent := strings.ToLower(q.Token)
			if got := evalRT(t, h[RobotsTagField], agent); got != want {
				t.Fatalf("%q tells %q %+v, want %+v; %+v of %+v", h[RobotsTagField], agent, got, want, q, spec.Rules)
			}
			if got := evalX(t, h[XRobotsTagField], agent); got != want {
				t.Fatalf("%q tells %q %+v, want %+v; %+v of %+v", h[XRobotsTagField], agent, got, want, q, spec.Rules)
			}
			checked++
			if own != want {
				exempt++
			}
		}
		var prefs []string
		for _, u := range []policy.Usage{policy.TrainAI, policy.AIUse, policy.Search} {
			if s := preferred(spec, q, u); s != "" {
				prefs = append(prefs, s)
			}
		}
		if got := strings.Join(h[ContentUsageField], "|"); got != strings.Join(prefs, ", ") {
			t.Fatalf("Content-Usage %q, want %q: %+v of %+v", got, prefs, q, spec.Rules)
		}
	}
	t.Logf("%d crawlers asked; %d were exempted from what holds for everyone, which no header can say", checked, exempt)
	if exempt == 0 || exempt*2 > checked {
		t.Error("the generator makes too few or too many exemptions to prove anything")
	}
}
