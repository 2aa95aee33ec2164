// SPDX-License-Identifier: Apache-2.0

package robotstxt

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// maxPreamble is how much of a file's own words is published, in bytes.
const maxPreamble = 32 << 10

// aboutRights matches what comments about rights say, in the languages of the European Union:
// "all rights reserved", a reservation under Article 4 of Directive (EU) 2019/790 or a national
// law, and the words of licences.
var aboutRights = regexp.MustCompile(`(?i)copyright|\(c\) ?[0-9]|©|\brights?\b|\br[eé]serv|2019/790|article 4|44b|urhg|urheber|vorbehalt|` +
	`voorbeh|auteursrecht|förbeh|forbeh|upphovsrätt|ophavsret|oikeu|tekijänoik|õigus|tiesības|teisės|zastrzeż|praw[ao]? aut|vyhrazen|vyhraden|` +
	`pridržan|autorsk|jogfennt|fenntart|szerzői|drepturi|direitos|derechos|diritti|droits|drittijiet|δικαι|права|` +
	`data[- ]?mining|\btdm|datengewinnung|fouille de|l122-5|\blicen[cs]|terms of|nutzungsbedingungen|prohibited|forbidden|permission`)

// Preamble returns the words of a file's author that are published with what the file says:
// the comment at its start, and those comments further down that speak of rights. Lines are
// without "#", and end with "\n" but for the last.
func (f *File) Preamble() string {
	text, _ := f.preamble()
	return text
}

// preamble also returns the line of the first comment further down that speaks of rights, 0
// for none.
func (f *File) preamble() (text string, first int) {
	parts := []string{strings.TrimRight(f.header, "\n")}
	for _, line := range slices.Sorted(maps.Keys(f.comments)) {
		if c := f.comments[line]; aboutRights.MatchString(c) && !slices.Contains(parts, c) {
			parts = append(parts, c)
			if first == 0 {
				first = line
			}
		}
	}
	lines := strings.Split(strings.TrimLeft(strings.Join(parts, "\n"), "\n"), "\n")
	lines = slices.DeleteFunc(lines, func(l string) bool { return strings.HasPrefix(l, "ACAP version=") || !printable(l) })
	text = strings.Trim(strings.Join(lines, "\n"), "\n")
	if len(text) > maxPreamble {
		text = text[:maxPreamble]
		text = text[:strings.LastIndexByte(text, '\n')+1]
		f.note(0, "the comments at the start come to more than %d KiB; the rest of them is left out", maxPreamble>>10)
	}
	return strings.TrimRight(text, "\n"), first
}

// preamble publishes the author's own words.
func (im *importer) preamble() {
	text, line := im.f.preamble()
	if text == "" {
		return
	}
	im.spec.Publish.Preambles = []policy.Preamble{{Text: text}}
	for n, c := range im.f.comments {
		if aboutRights.MatchString(c) {
			delete(im.f.comments, n)
		}
	}
	if aboutRights.MatchString(text) {
		im.f.note(line, "the file's comments speak of rights; they are published as publish: {preamble: …}, which people read and few programs; "+
			"to reserve rights where programs look, disallow train-ai and ai-use and set publish: {tdmrep: on}")
	}
}
