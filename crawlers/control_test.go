// SPDX-License-Identifier: Apache-2.0

package crawlers

import (
	"strings"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
)

func TestControls(t *testing.T) {
	c := defaultCatalog(t)
	for token, want := range map[string]string{
		"Googlebot":         "token Google-Extended train-ai, form Settings > Search generative AI ai-use",
		"Google-Extended":   "token Google-Extended train-ai",
		"Applebot":          "token Applebot-Extended train-ai",
		"applebot-extended": "token Applebot-Extended train-ai",
		"Bingbot":           "rule noarchive train-ai+ai-use+preserve",
		"Amazonbot":         "rule noarchive train-ai",
		"GPTBot":            "",
	} {
		var got []string
		for _, x := range c.ControlsOf(token) {
			got = append(got, string(x.Kind)+" "+x.Value+" "+strings.Join(x.Takes, "+"))
		}
		if text := strings.Join(got, ", "); text != want {
			t.Errorf("%s: %s, want %s", token, text, want)
		}
	}
}

// TestControlsAreRecent checks that the function aged finds controls without a recent check. In the nightly run, it
// also fails if the catalog contains such controls, because operators change the settings that they offer.
func TestControlsAreRecent(t *testing.T) {
	const days = 180
	at, err := time.Parse(time.DateOnly, defaultCatalog(t).AsOf())
	if err != nil {
		t.Fatal(err)
	}
	if old := aged(defaultCatalog(t).Controls(), at.AddDate(0, 0, days+400), days); len(old) != len(defaultCatalog(t).Controls()) {
		t.Errorf("%d rows are old after a year", len(old))
	}
	testkit.Nightly(t)
	for _, x := range aged(defaultCatalog(t).Controls(), time.Now(), days) {
		t.Errorf("%s of %s was last checked on %s; read %s, correct the row and its as-of", x.Value, x.Operator, x.AsOf, x.Docs)
	}
}

// aged returns the controls that were last checked more than the given number of days before now.
func aged(controls []Control, now time.Time, days int) (old []Control) {
	for _, x := range controls {
		if at, err := time.Parse(time.DateOnly, x.AsOf); err != nil || now.Sub(at) > time.Duration(days)*24*time.Hour {
			old = append(old, x)
		}
	}
	return old
}
