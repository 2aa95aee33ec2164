// SPDX-License-Identifier: Apache-2.0

package crawlers

import (
	"slices"
	"strings"
	"testing"
)

// What is remembered about a User-Agent is what is found in it, for each recogniser and for
// the guess, however often each is asked.
func TestWhatIsRemembered(t *testing.T) {
	t.Parallel()
	c, err := Default()
	if err != nil {
		t.Fatal(err)
	}
	headers := browserStrings()
	for _, crawler := range c.All() {
		headers = append(headers, crawler.Examples...)
	}
	headers = append(headers, "", " ", "-", "Mozilla/5.0 "+strings.Repeat("x", maxBrowser), "Mozilla/5.0 "+strings.Repeat("x", maxBrowser)+" GPTBot/1.2")
	all, one := NewRecognizer(c.Patterns()), NewRecognizer([]Pattern{{"Firefox", 7}})
	// Those whose numbers differ by this use the same places.
	same := *one
	same.id = all.id + uint64(len(browsers))
	remembered := 0
	for _, ua := range headers {
		for _, r := range []*Recognizer{all, one, &same} {
			want := r.eachOf(nil, []string{ua})
			for range 3 {
				if got := r.RecognizeEach(nil, []string{ua}); !slices.Equal(got, want) {
					t.Fatalf("%q: %v, want %v", ua, got, want)
				}
			}
			if got := r.RecognizeEach(nil, []string{ua, "GPTBot/1.2"}); !slices.Equal(got, r.eachOf(nil, []string{ua, "GPTBot/1.2"})) {
				t.Fatalf("%q and GPTBot: %v", ua, got)
			}
			if yes, _ := isBrowser(ua, r.id); yes {
				remembered++
				if len(want) > 0 {
					t.Fatalf("%q is remembered, and names %v", ua, want)
				}
			}
		}
		name, ok := Automated(ua)
		for range 3 {
			if n, o := Automated(ua); n != name || o != ok {
				t.Fatalf("%q: %q %v, then %q %v", ua, name, ok, n, o)
			}
		}
	}
	if remembered < len(browsers)/8 {
		t.Errorf("%d are remembered", remembered)
	}
}
