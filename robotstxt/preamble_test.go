// SPDX-License-Identifier: Apache-2.0

package robotstxt_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
)

// reserving are sentences that reserve rights.
var reserving = []string{
	"We expressly reserve all rights under Article 4 of Directive (EU) 2019/790.",
	"Text and data mining of this site is not permitted.",
	"Nutzungsvorbehalt nach § 44b UrhG: Text- und Data-Mining ist untersagt.",
	"Tous droits réservés, fouille de textes et de données comprise (art. L122-5-3 CPI).",
	"Todos los derechos reservados.", "Tutti i diritti riservati.", "Todos os direitos reservados.", "Alle rechten voorbehouden.",
	"Wszelkie prawa zastrzeżone.", "Alla rättigheter förbehålles.", "Alle rettigheder forbeholdes.", "Kaikki oikeudet pidätetään.",
	"Všechna práva vyhrazena.", "Minden jog fenntartva.", "Toate drepturile rezervate.", "Με την επιφύλαξη παντός δικαιώματος.", "Всички права запазени.",
}

// If a comment anywhere in a file reserves rights, the robots.txt of the imported policy and a merged file contain the
// comment word for word. Few real files have such comments, so the test adds sentences to each file. The long tests add
// all sentences, the others one in four.
func TestReservationsStayWordForWord(t *testing.T) {
	t.Parallel()
	names := newNames(t)
	nothing := compile(t, &policy.Spec{Crawlers: names.Crawlers()})
	r := rand.New(rand.NewPCG(*importSeed, 33))
	files, sentences := 0, 0
	for name, data := range realFiles(t) {
		if !utf8.Valid(data) || len(data) > 100<<10 {
			continue
		}
		files++
		lines := originalLines(data)
		for i, sentence := range reserving {
			if !testkit.Long() && (i+len(lines))%4 != 0 {
				continue
			}
			at := r.IntN(len(lines) + 1)
			body := strings.Join(slices.Insert(slices.Clone(lines), at, "# "+sentence), "\n")
			if r.IntN(3) == 0 && at < len(lines) && !strings.Contains(lines[at], "#") {
				inLine := slices.Clone(lines)
				inLine[at] += " ## " + sentence
				body = strings.Join(inLine, "\n")
			}
			im, err := robotstxt.Import([]byte(body), names.Crawlers())
			if err != nil {
				break
			}
			file, ds := policyfile.Load(name, policyfile.Print(im.Spec))
			if ds.HasErrors() {
				t.Fatal(ds)
			}
			imported, _ := robotsserve.Render(file.Policy, "", robotsserve.Options{})
			merged, _, _ := robotsserve.Merge(nothing, "", robotstxt.Parse([]byte(body)), robotsserve.Options{})
			sentences++
			for what, f := range map[string]*robotsserve.File{"imported": imported, "merged": merged} {
				if n := strings.Count(strings.ReplaceAll(string(f.Body), "\r", ""), "# "+sentence+"\n"); n != 1 {
					t.Fatalf("%s, %s: %q is published %d times\n%.2000s\nof\n%.2000s", name, what, sentence, n, f.Body, body)
				}
			}
		}
	}
	t.Logf("%d sentences in %d files", sentences, files)
	if sentences < 100 {
		t.Error("the files are too few")
	}
}

// Comments in other encodings than UTF-8 are converted.
func TestReservationInLatin1(t *testing.T) {
	im, err := robotstxt.Import([]byte("# \xa7 44b UrhG: Nutzung f\xfcr Text und Data Mining vorbehalten \x96 immer.\nUser-agent: *\nDisallow: /a/\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := im.Spec.Publish.Preambles; len(got) != 1 || got[0].Text != "§ 44b UrhG: Nutzung für Text und Data Mining vorbehalten – immer." {
		t.Errorf("%+v", got)
	}
}

// The comment at the start of a file becomes the preamble, even if no empty line separates it from the first group. A
// later comment remains next to its line.
func TestCommentAtTheStart(t *testing.T) {
	for text, want := range map[string]string{
		"# Example\n# by us\nUser-agent: * # all\nDisallow: /a/\n":   "Example\nby us",
		"# Example\n\n# everyone\nUser-agent: *\nDisallow: /a/\n":    "Example",
		"# Example\nUser-agent: *\n# about a\nDisallow: /a/\n":       "Example",
		"# Example\n\n\n# by us\n\nUser-agent: *\n\nDisallow: /a/\n": "Example\nby us",
		"User-agent: *\n# about a\nDisallow: /a/\n":                  "",
	} {
		im, err := robotstxt.Import([]byte(text), nil)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, p := range im.Spec.Publish.Preambles {
			got += p.Text
		}
		if got != want || got != robotstxt.Parse([]byte(text)).Preamble() {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
