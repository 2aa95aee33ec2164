// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// Vocabulary is a register of lines in robots.txt and a header field.
type Vocabulary struct {
	Register
	Field  string // the name, in the form that http.Header has it in
	Labels []Label
}

// Label is a name in a Vocabulary, with the words that it can have, from the laxest to the strictest.
type Label struct {
	Name  string
	Words []string
	usage int // of policy.RightsUsages; -1 for the setting of how far content may be used
}

// Vocabularies are the ways to write preferences.
var Vocabularies = [...]*Vocabulary{&ContentUsage, &ContentSignal}

// ContentUsage is the vocabulary of AIPREF.
var ContentUsage = Vocabulary{
	Register: Register{
		Name: "Content-Usage", Key: "content-usage",
		Document: "draft-ietf-aipref-vocab-08 and -attach-05, August and September 2026", Readers: "no crawler documents it",
		Carries: func(p *policy.Publish, _ policy.Usage) bool { return p.ContentUsage != policy.Off },
	},
	Field:  "Content-Usage",
	Labels: []Label{{"train-ai", yn, 0}, {"ai-use", yn, 1}, {"search", yn, 2}},
}

// ContentSignal is the vocabulary of contentsignals.org.
var ContentSignal = Vocabulary{
	Register: Register{
		Name: "Content-Signal", Key: "content-signal",
		Document: "contentsignals.org, September 2025; use= since August 2026", Readers: "Cloudflare's /crawl, since August 2026",
		Carries: func(p *policy.Publish, _ policy.Usage) bool { return p.ContentSignal != policy.Off },
	},
	Field:  "Content-Signal",
	Labels: []Label{{"search", yesNo, 2}, {"ai-input", yesNo, 1}, {"ai-train", yesNo, 0}, {"use", []string{"full", "reference", "immediate"}, -1}},
}

var yn, yesNo = []string{"y", "n"}, []string{"yes", "no"}

// LineKey returns the key of the vocabulary's lines in robots.txt, in lowercase.
func (f *Vocabulary) LineKey() string { return strings.ToLower(f.Field) }

// No returns the word that disallows a usage.
func (f *Vocabulary) No() string { return f.Labels[0].Words[1] }

// Text returns what is written for verdicts, such as "train-ai=n, search=y"; "" if nothing is stated. use is how far
// content may be used, or "".
func (f *Vocabulary) Text(v Verdicts, use string) string {
	var parts []string
	for _, l := range f.Labels {
		if word := l.Word(v, use); word != "" {
			parts = append(parts, l.Name+"="+word)
		}
	}
	return strings.Join(parts, ", ")
}

// Word returns the word that a label has for verdicts, or "".
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
