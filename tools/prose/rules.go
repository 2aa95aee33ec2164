// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"

	"github.com/dlclark/regexp2"
)

// rule is a pattern that does not occur, or rarely occurs, in plain English.
type rule struct {
	id      string
	pattern string
	// rare is true if plain English also uses the pattern, but only occasionally. The number of matches must not rise,
	// but need not be zero.
	rare bool
	only kind // the kind of text where the rule applies; zero means all kinds
}

// rules lists all rules. docs/contributing/style.md explains them, and shows what to write instead.
var rules = []rule{
	{id: "W1", pattern: `\b[Ww]hoever\b`},
	{id: "W2", pattern: `(?:^|[.;] |\*\*)Who (?!gains|loses|may|can|is\b|was|came|takes|has read|describes)[a-z]+s?\b[^?]*$`},
	{id: "W3", pattern: `(?:^|[.;] |\| |- |\*\*)What [a-z][^.?:|]{2,90}? (?:is|are|stays|goes|comes|counts|holds|has|may|can|cannot|gets|does)\b(?![^.]*\?)`},
	{id: "W4", rare: true, pattern: `\b(?:of|to|by|for|from|at|on|under|with|about|after|behind) (?:which|whom|whose)\b`},
	{id: "W5", rare: true, pattern: `, as (?:it|they|the|no|many|nobody|these|those|there|its|their|such|hardly|anybody|nothing) `},
	{id: "W6", pattern: `(?<![Tt]here )\b(?:is|are|was|were) no (?!longer|more|better|worse|other|such|need|way)[A-Za-z]+`},
	{id: "W7", pattern: `\b(?:refuses?|denies|verif(?:y|ies)|limits|matches|opens|closes|decides?|changes|reaches|stores|names) (?:nobody|nothing|no (?:crawler|one|client|request))\w*`},
	{id: "W8", pattern: `\b(?:[Ss]ome|[Aa]ny|[Nn]o|[Ee]very)body\b`},
	{id: "W9", pattern: `\b[Bb]eside\b`},
	{id: "W10", pattern: `\bat last\b|\banew\b|\bmeanwhile\b|\bif need be\b|\ball the same\b`},
	{id: "W11", pattern: `\b(?:version|one|period|text|line|file|time|days?|configuration) before(?=[.,;:)]| (?:is|stays|can|must)\b|$)`},
	{id: "W12", pattern: `\bstands? (?:in|there|beside|behind|between|twice|only|alone|once)\b`},
	{id: "W13", pattern: `\bholds? (?:for|on|in|too|here|there|together|instead)\b|\bdo(?:es)? not hold\b`},
	{id: "W14", rare: true, pattern: `\bcounts? (?:as|all|only|too|twice|for nothing)\b`},
	{id: "W15", pattern: `\bspeaks? (?:of|to|for)\b|\b(?:is|are|was) said (?:to|of)\b|\bsays? of\b`},
	{id: "W16", pattern: `(?:^|[.;] )Of (?!course|returns|reports)[a-z]`},
	{id: "W17", pattern: `(?<![Ww]hen )\b[Ii]n doubt\b`},
	{id: "W18", pattern: `\b(?:that|those) of (?:a|an|the|its|their|others?|every|each|[A-Z])`},
	{id: "W19", pattern: `\bso (?:many|much)\b(?! that)`},
	{id: "W20", pattern: `\bby (?:itself|themselves)\b`},
	{id: "W21", rare: true, pattern: `\bof (?:its|their|our|your) own\b`},
	{id: "W22", rare: true, pattern: `\bthat (?:is|are|was|were) (?:not |only )?(?:\w{3,}ed|known|sent|read|written|made)\b`},
	{id: "W23", pattern: `\b(?:is|are|was) taken for\b|\btakes? (?:\S+ ){1,4}for (?:allowed|open|a|the|none)\b`},
	{id: "D1", only: comments, pattern: `^[A-Za-z][\w.]* (?:is|are) (?:what|how|that|whether|who|where|when|by what)\b`},
	{id: "M1", pattern: `[^.;]*;[^.;]*;`},
	{id: "M3", only: messages, pattern: `must be one of|\b\w+, \w+,? or one of\b`},
}

// maxWords is the maximum number of words in a sentence, and maxMessageWords the maximum in a sentence of a message.
const (
	maxWords        = 32
	maxMessageWords = 28
)

var compiled = func() map[string]*regexp2.Regexp {
	all := map[string]*regexp2.Regexp{}
	for _, r := range rules {
		all[r.id] = regexp2.MustCompile(r.pattern, regexp2.None)
	}
	return all
}()

// violations returns the IDs of the rules that a paragraph breaks. An ID is repeated for each match.
func violations(k kind, paragraph string) (ids []string) {
	for _, r := range rules {
		if r.only != 0 && r.only != k {
			continue
		}
		m, err := compiled[r.id].FindStringMatch(paragraph)
		for ; err == nil && m != nil; m, err = compiled[r.id].FindNextMatch(m) {
			ids = append(ids, r.id)
		}
	}
	most := maxWords
	if k == messages || k == console {
		most = maxMessageWords
	}
	for _, s := range sentences(paragraph) {
		if len(strings.Fields(s)) > most {
			ids = append(ids, "M2")
		}
	}
	return ids
}

// endOfSentence matches the text between two sentences.
var endOfSentence = regexp2.MustCompile("(?<=[.!?][)\"*`]*)\\s+|\\s*\\|\\s*|:\\s*$", regexp2.None)

func sentences(paragraph string) (all []string) {
	text := []rune(paragraph)
	from := 0
	m, _ := endOfSentence.FindStringMatch(paragraph)
	for ; m != nil; m, _ = endOfSentence.FindNextMatch(m) {
		all = append(all, string(text[from:m.Index]))
		from = m.Index + m.Length
	}
	return append(all, string(text[from:]))
}
