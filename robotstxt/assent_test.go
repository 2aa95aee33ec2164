// SPDX-License-Identifier: Apache-2.0

package robotstxt_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/crawlertest"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
)

// AskAsSent gives the same answers as crawlertest's model of Google's parser. Another test compares this model with the
// parser itself.
func TestAskAsSentAgreesWithGoogle(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	pick := func(from ...string) string { return from[r.IntN(len(from))] }
	text := func() string {
		s := "/"
		for range 1 + r.IntN(4) {
			s += pick("a", "b", ":", "%3a", "%3A", "~", "%7e", "%7E", "%C3%bc", "ü", "*", "/", "?")
		}
		return s
	}
	differ := 0
	for range 3000 {
		body := "User-agent: *\n"
		for range 1 + r.IntN(3) {
			body += pick("Allow: ", "Disallow: ") + text() + pick("", "", "$") + "\n"
		}
		f, google := robotstxt.Parse([]byte(body)).Agent(policy.Crawler{Token: "SomeBot"}), crawlertest.ReadGoogle(body)
		path := strings.NewReplacer("*", "x", "ü", "%C3%BC").Replace(text())
		got := f.AskAsSent(path)
		if want := google.Allowed("SomeBot", path); got.Allowed != want {
			t.Fatalf("%s\n%s: %v, want %v", body, path, got, want)
		}
		if got.Allowed != f.Allowed(path) {
			differ++
		}
	}
	if differ == 0 {
		t.Error("no answer differs from that in normal form")
	}
}
