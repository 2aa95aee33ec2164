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

// rights matches what comments about rights say, in the languages of Europe's copyright
// laws: a reservation under Article 4 of Directive (EU) 2019/790, § 44b UrhG, or
// Article L122-5-3 of the French code, and the words of licences.
var rights = regexp.MustCompile(`(?i)copyright|\(c\) ?[0-9]|©|\brights?\b|\breserv|2019/790|article 4|44b|urhg|urheber|nutzungsvorbehalt|vorbehalt|` +
	`text (and|&) data mining|text- und data|\btdm|data mining|fouille de|droits? d'auteur|l122-5|\blicen[cs]|terms of|nutzungsbedingungen|` +
	`derechos|diritti|auteursrecht|prohibited|forbidden|permission`)

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
		if c := f.comments[line]; rights.MatchString(c) && !slices.Contains(parts, c) {
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
		if rights.MatchString(c) {
			delete(im.f.comments, n)
		}
	}
	if rights.MatchString(text) {
		im.f.note(line, "the file's comments speak of rights; they are published as publish: {preamble: …}, which people read and few programs; "+
			"to reserve rights where programs look, disallow train-ai and ai-use and set publish: {tdmrep: on}")
	}
}
