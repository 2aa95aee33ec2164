// SPDX-License-Identifier: Apache-2.0

package crawlers

import (
	"cmp"
	_ "embed"
	"strings"
	"sync"
)

// automatons are names, one a line, of programs that say in no other way that they are
// automated: services that call a site for their customers, tools, and crawlers of which
// nothing else is known.
//
//go:embed automatons.txt
var automatons string

var recognizeAutomatons = sync.OnceValues(func() (*Recognizer, []string) {
	names := strings.Split(strings.TrimSpace(automatons), "\n")
	patterns := make([]Pattern, len(names))
	for i, name := range names {
		patterns[i] = Pattern{name, i}
	}
	return NewRecognizer(patterns), names
})

// automaton returns which of the automatons a User-Agent names, or its first product if
// another word says that a program calls by itself.
func automaton(ua string) (name string, ok bool) {
	for _, word := range []string{"webhook", "-hook", "nutch-"} {
		if strings.Contains(strings.ToLower(ua), word) {
			return cmp.Or(product(ua), "(unnamed)"), true
		}
	}
	r, names := recognizeAutomatons()
	i, ok := r.Recognize(ua)
	if !ok {
		return "", false
	}
	return strings.TrimRight(names[i], "-*"), true
}
