// SPDX-License-Identifier: Apache-2.0

package crawlers

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
)

// The cache changes no answer, whichever recogniser asks and however often headers
// push each other out.
func TestRecognizeRecent(t *testing.T) {
	t.Parallel()
	a := NewRecognizer([]Pattern{{"GPTBot", 1}, {"Googlebot", 2}, {"Googlebot-Image", 3}})
	b := NewRecognizer([]Pattern{{"GPTBot", 7}})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 3 * recentSlots {
				ua := fmt.Sprintf("Mozilla/5.0 (compatible; v%d)", i%(2*recentSlots))
				switch i % 4 {
				case 1:
					ua = fmt.Sprintf("GPTBot/1.%d", i%9)
				case 2:
					ua = fmt.Sprintf("Googlebot-Image/1.0 GPTBot/1.%d", i%9)
				case 3:
					ua = strings.Repeat("x", maxRecentUA) + " GPTBot/1.0"
				}
				for _, r := range []*Recognizer{a, b, {}} {
					lines := []string{ua}
					if i%7 == 0 {
						lines = append(lines, "Googlebot/2.1")
					}
					if got, want := r.RecognizeRecent(nil, lines), r.RecognizeEach(nil, lines); !slices.Equal(got, want) {
						t.Errorf("%q: %v, want %v", lines, got, want)
						return
					}
				}
			}
		})
	}
	wg.Wait()
}
