// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
)

// TestProductWords checks productWords and groupWords, which map words that authors may write to crawlers and
// categories. The catalog must have every crawler that these lists name. A word itself must not be the name of a
// crawler.
func TestProductWords(t *testing.T) {
	known, err := crawlers.Default()
	if err != nil {
		t.Fatal(err)
	}
	for word, tokens := range productWords {
		if _, ok := known.Lookup(word); ok || squash(word) != word {
			t.Errorf("%s: a crawler's name (%v), or not squashed", word, ok)
		}
		for _, token := range tokens {
			if c, ok := known.Lookup(token); !ok || c.Token != token {
				t.Errorf("%s: the catalog has no %s", word, token)
			}
		}
	}
	for word, kind := range groupWords {
		if !kind.Valid() && kind != crawlers.CategoryAI || squash(word) != word {
			t.Errorf("%s: %s", word, kind)
		}
	}
}
