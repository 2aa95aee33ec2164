// SPDX-License-Identifier: Apache-2.0

package effect_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/policytest"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
)

// meaning maps usages to the robots control rules that disallow them. If an element lists several rules, they disallow
// the usage only together.
var meaning = map[policy.Usage][][]string{
	policy.Index: {{"noindex"}}, policy.PresentLink: {{"noindex"}}, policy.Follow: {{"nofollow"}}, policy.Preserve: {{"noarchive"}},
	policy.PresentSnippet: {{"nosnippet"}}, policy.PresentCurrentCopy: {{"noarchive"}}, policy.PresentOldCopy: {{"noarchive"}},
	policy.PresentOldSnippet: {{"noarchive"}}, policy.PresentOldThumbnail: {{"noarchive"}}, policy.PresentThumbnail: {{"max-image-preview:none", "max-video-preview:0"}},
}

// A usage is disallowed if the rules, a robots-tag or the server disallow it. The expected answers come from an
// evaluator that does not share any code with the engine.
func TestAnswersEqualAnIndependentEvaluator(t *testing.T) {
	t.Parallel()
	policies, tags, answered := testkit.Rounds(100, 300), 0, 0
	r := rand.New(rand.NewPCG(49, 2))
	for n := 0; n < policies; {
		spec := randomSpec(r)
		f, _ := policyfile.Load("random.yaml", policyfile.Print(spec))
		if f == nil {
			continue // the policy blocks all search engines everywhere, or has another error
		}
		n++
		for range 40 {
			q := policytest.Question{
				Token: policytest.Tokens[r.IntN(len(policytest.Tokens))], Identity: policytest.Identities[r.IntN(len(policytest.Identities))],
				Host: policytest.Hosts[r.IntN(len(policytest.Hosts))], Path: oneSlash(policytest.Path(r)), Usage: policy.Usages()[r.IntN(len(policy.Usages()))], Now: policytest.Now,
			}
			var rules []string
			for _, e := range policytest.EngineRules(spec, q) {
				rules = append(rules, e.Rule.Expired(q.Now).String())
			}
			want := policytest.Decide(spec, q).Verdict == policy.Disallowed
			for _, together := range meaning[q.Usage] {
				if !want && !slices.ContainsFunc(together, func(word string) bool { return !slices.Contains(rules, word) }) {
					want = true
					tags++
				}
			}
			a := f.Effect.Answer(policy.Query{Crawler: f.Policy.Crawler(q.Token), Identity: q.Identity, Host: q.Host, Path: q.Path, Usage: q.Usage, Now: q.Now})
			if a.Disallowed != want {
				t.Fatalf("policy %d: %+v: disallowed %v, want %v\n%s", n, q, a.Disallowed, want, policyfile.Print(spec))
			}
			answered++
		}
	}
	t.Logf("%d questions, %d decided by a robots-tag", answered, tags)
	if tags < policies/10 {
		t.Errorf("only %d questions are decided by a robots-tag", tags)
	}
}

// Different servers may take the same target to mean different pages. The restrictions of all these pages apply.
func TestAnswerOfOtherReadings(t *testing.T) {
	f, ds := policyfile.Load("policy.yaml", []byte("version: 1\nrules:\n  - {for: everyone, disallow: {index: /admin/, train-ai: /admin/}}\n"))
	if f == nil {
		t.Fatal(ds)
	}
	for _, path := range []string{"/admin/b", "/x/..%2fadmin/b", "//x/admin/b", "/ADMIN/b"} {
		for _, u := range []policy.Usage{policy.Index, policy.TrainAI} {
			if a := f.Effect.Answer(policy.Query{Crawler: f.Policy.Crawler("Bingbot"), Path: path, Usage: u, Now: policytest.Now}); !a.Disallowed {
				t.Errorf("%s %v: allowed, and its header disallows it", path, u)
			}
		}
	}
}
