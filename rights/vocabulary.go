// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// Vocabulary describes a channel that states rights in lines of robots.txt and in a header field.
type Vocabulary struct {
	Key    string // key of the setting under "publish"
	Field  string // canonical name of the header field
	Labels []Label
	// Crossing is "" for a vocabulary whose lines always apply to all paths. Otherwise lines can have paths, and
	// readers use the matching line with the longest path. Crossing is then the code of the problem to report if the
	// lines cannot state the policy's decisions where paths overlap.
	Crossing string
	// Lenient means that readers accept names and words in any case, and spaces around the equals sign.
	Lenient bool
	// On reports whether the publish section of a policy switches the vocabulary on. Switch switches it on.
	On     func(*policy.Publish) bool
	Switch func(*policy.Publish)
	// Use returns the policy's value for the label "use", which states how far content may be used, such as
	// "reference". Use is nil if the vocabulary does not have this label.
	Use func(*policy.Publish) string
}

// Label is the name of a preference in a Vocabulary. Words are its possible values, from the least to the most strict.
type Label struct {
	Name  string
	Words []string
	usage int // index of policy.RightsUsages, or -1 for the label "use"
}

// Vocabularies lists all vocabularies.
var Vocabularies = [...]*Vocabulary{&ContentUsage, &ContentSignal}

// ContentUsage is the vocabulary of AIPREF.
var ContentUsage = Vocabulary{
	Key:      "content-usage",
	Field:    "Content-Usage",
	Labels:   []Label{{"train-ai", yn, 0}, {"ai-use", yn, 1}, {"search", yn, 2}},
	Crossing: "content-usage-cross",
	On:       func(p *policy.Publish) bool { return p.ContentUsage != policy.Off },
	Switch:   func(p *policy.Publish) { p.ContentUsage = policy.On },
}

// ContentSignal is the vocabulary of contentsignals.org.
var ContentSignal = Vocabulary{
	Key:     "content-signal",
	Field:   "Content-Signal",
	Labels:  []Label{{"search", yesNo, 2}, {"ai-input", yesNo, 1}, {"ai-train", yesNo, 0}, {"use", []string{"full", "reference", "immediate"}, -1}},
	Lenient: true,
	On:      func(p *policy.Publish) bool { return p.ContentSignal != policy.Off },
	Switch:  func(p *policy.Publish) { p.ContentSignal = policy.On },
	Use:     func(p *policy.Publish) string { return p.ContentSignalUse },
}

var yn, yesNo = []string{"y", "n"}, []string{"yes", "no"}

// UseOf returns the policy's value for the label "use" of the vocabulary, or "" if the policy does not publish such a
// value.
func (f *Vocabulary) UseOf(p *policy.Publish) string {
	if f.Use == nil || !f.On(p) {
		return ""
	}
	return f.Use(p)
}

// StatesUse reports whether a policy publishes a value for the label "use" in any vocabulary.
func StatesUse(p *policy.Publish) bool {
	return slices.ContainsFunc(Vocabularies[:], func(f *Vocabulary) bool { return f.UseOf(p) != "" })
}

// LineKey returns the key of the vocabulary's lines in robots.txt, in lowercase.
func (f *Vocabulary) LineKey() string { return strings.ToLower(f.Field) }

// No returns the word that disallows a usage.
func (f *Vocabulary) No() string { return f.Labels[0].Words[1] }

// Text returns the value of the line for verdicts, such as "train-ai=n, search=y", or "" if the line would be empty.
// use is the value of the label "use", or "".
func (f *Vocabulary) Text(v Verdicts, use string) string {
	var parts []string
	for _, l := range f.Labels {
		if word := l.Word(v, use); word != "" {
			parts = append(parts, l.Name+"="+word)
		}
	}
	return strings.Join(parts, ", ")
}

// Word returns the word of a label for the verdict about its usage, or "" if this verdict is Unstated. For the label
// "use", it returns the argument use.
func (l *Label) Word(v Verdicts, use string) string {
	if l.usage < 0 {
		return use
	}
	switch v[l.usage] {
	case policy.Allowed:
		return l.Words[0]
	case policy.Disallowed:
		return l.Words[1]
	case policy.Unstated:
	}
	return ""
}

// contradictions lists the values of the label "use" that contradict a verdict.
var contradictions = []struct {
	use     string
	usage   int // index of policy.RightsUsages
	verdict policy.Verdict
	says    string
}{
	{"full", 1, policy.Disallowed, "content may be summarized and reproduced"},
	{"full", 0, policy.Disallowed, "content may be used in full"},
	{"immediate", 2, policy.Allowed, "content may not be stored (a search index has to store it)"},
}

// CheckUse reports the decisions of a view that contradict the policy's value for the label "use".
func (f *Vocabulary) CheckUse(publish *policy.Publish, v *View) (problems []policy.Problem) {
	use := f.UseOf(publish)
	if use == "" {
		return nil
	}
	cells, _ := v.Cells()
	for _, cell := range cells {
		for _, c := range contradictions {
			if d := cell.Value[c.usage]; c.use == use && d.Verdict == c.verdict && d.Statement != nil {
				problems = append(problems, policy.NewProblem(policy.Warning, "rights-differ", d.Statement.Pos,
					`%s is %s here, but with "%s: %s" under publish, Caddy publishes that %s; write "%s: reference"`,
					policyUsages[c.usage], c.verdict, f.Key, use, c.says, f.Key))
				break
			}
		}
	}
	return problems
}
