// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// label is how drafts of the AIPREF vocabulary write a usage.
type label struct {
	now     string // draft-ietf-aipref-vocab-08
	earlier string // an earlier draft, where it had another label for much the same; or ""
}

// labels are those of policy.RightsUsages.
var labels = [...]label{
	{"train-ai", "train-genai"}, // "Generative AI Training" in -02 and -03; train-ai was wider then
	{"ai-use", "ai-output"},     // "AI Output" in -04; ai-use in -02 and again in -08
	{"search", ""},
}

// ContentUsage is the value of Content-Usage, such as "train-ai=n, search=y"; "" for
// nothing. With earlier, what is disallowed is also said with the labels of earlier
// drafts. Readers ignore labels that they do not know (draft-ietf-aipref-vocab,
// section 6), so that nothing is permitted by them.
func (v Verdicts) ContentUsage(earlier bool) string {
	var parts []string
	for i, l := range labels {
		switch v[i] {
		case policy.Allowed:
			parts = append(parts, l.now+"=y")
		case policy.Disallowed:
			parts = append(parts, l.now+"=n")
		case policy.Unstated:
		}
	}
	for i, l := range labels {
		if earlier && l.earlier != "" && v[i] == policy.Disallowed {
			parts = append(parts, l.earlier+"=n")
		}
	}
	return strings.Join(parts, ", ")
}

// signals are the usages of policy.RightsUsages in the words of Content-Signal.
var signals = [...]string{"ai-train", "ai-input", "search"}

// ContentSignal is the value of a Content-Signal line, such as "search=yes,
// ai-train=no, use=reference"; "" if nothing is stated. use is how far content may be
// used, or "".
func (v Verdicts) ContentSignal(use string) string {
	var parts []string
	for _, i := range []int{2, 1, 0} {
		switch v[i] {
		case policy.Allowed:
			parts = append(parts, signals[i]+"=yes")
		case policy.Disallowed:
			parts = append(parts, signals[i]+"=no")
		case policy.Unstated:
		}
	}
	if use != "" && parts != nil {
		parts = append(parts, "use="+use)
	}
	return strings.Join(parts, ", ")
}

// Renamed returns the usage that a label of an earlier draft now stands for.
func Renamed(name string) (policy.Usage, bool) {
	for i, l := range labels {
		if l.earlier == name {
			return policyUsages[i], true
		}
	}
	return 0, false
}
