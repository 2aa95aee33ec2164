// SPDX-License-Identifier: Apache-2.0

package robotstag

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/robotsrule"
)

func benchValues(crawlers int) *Values {
	members := list("*", "nosnippet, max-image-preview:standard, unavailable_after: 31 Dec 2027 23:59:59 GMT")
	for i := range crawlers {
		members = append(members, Member{fmt.Sprintf("crawler-%03d", i), robotsrule.Of("noindex")})
	}
	v, _ := Build(members, preferences("nny"), testNow)
	return v
}

// TestApplyAllocations checks the allocations of Apply. If the response has no fields yet, Apply allocates one array.
// If the fields already have the final values, Apply does not allocate anything.
func TestApplyAllocations(t *testing.T) {
	v := benchValues(3)
	h := http.Header{RobotsTagField: nil, XRobotsTagField: nil, contentUsageField: nil}
	if got := testing.AllocsPerRun(100, func() {
		clear(h)
		Apply(h, v, AllChannels)
	}); got != 1 {
		t.Errorf("%v allocations, want 1", got)
	}
	if got := testing.AllocsPerRun(100, func() { Apply(h, v, AllChannels) }); got != 0 {
		t.Errorf("again: %v allocations", got)
	}
}

func BenchmarkApply(b *testing.B) {
	for _, c := range []struct {
		name     string
		crawlers int
		o        Channels
		upstream http.Header
	}{
		{"silent-upstream", 3, AllChannels, nil},
		{"silent-upstream/150-crawlers", 150, AllChannels, nil},
		{"merge/x-robots-tag", 3, AllChannels, http.Header{XRobotsTagField: {"noindex, nofollow"}}},
		{"merge/all-three", 3, AllChannels, http.Header{XRobotsTagField: {"noindex, nofollow"}, RobotsTagField: {"*;noindex, examplebot;nofollow"}, contentUsageField: {"train-ai=y"}}},
		{"merge/all-three/150-crawlers", 150, AllChannels, http.Header{XRobotsTagField: {"noindex, nofollow"}, RobotsTagField: {"*;noindex, examplebot;nofollow"}, contentUsageField: {"train-ai=y"}}},
		{"already-merged", 3, AllChannels, http.Header{XRobotsTagField: benchValues(3).XRobotsTag, RobotsTagField: benchValues(3).RobotsTag, contentUsageField: benchValues(3).Preferences[0]}},
		{"hostile/300-lines", 3, AllChannels, hostile(slices.Repeat([]string{"noindex, otherbot: max-snippet:3"}, 300))},
		{"hostile/64-KiB-of-names", 3, AllChannels, hostile([]string{strings.Repeat("a, ", 64<<10/3)})},
		{"hostile/64-KiB-of-dates", 3, AllChannels, hostile([]string{strings.Repeat("unavailable_after:1,", 64<<10/20)})},
		{"hostile/64-KiB-of-colons", 3, AllChannels, hostile([]string{strings.Repeat("a:", 32<<10)})},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			v := benchValues(c.crawlers)
			h := http.Header{RobotsTagField: nil, XRobotsTagField: nil, contentUsageField: nil, "Content-Type": {"text/html"}}
			for b.Loop() {
				for name := range h {
					delete(h, name)
				}
				for name, lines := range c.upstream {
					h[name] = lines
				}
				Apply(h, v, c.o)
			}
		})
	}
	b.Run("floor/three-map-assignments", func(b *testing.B) {
		b.ReportAllocs()
		v := benchValues(3)
		h := http.Header{"Content-Type": {"text/html"}}
		for b.Loop() {
			for name := range h {
				delete(h, name)
			}
			h[RobotsTagField] = v.RobotsTag
			h[XRobotsTagField] = v.XRobotsTag
			h[contentUsageField] = v.Preferences[0]
		}
	})
}

func hostile(lines []string) http.Header {
	return http.Header{RobotsTagField: lines, XRobotsTagField: lines, contentUsageField: lines}
}

func BenchmarkBuild(b *testing.B) {
	members := list("*", "noindex, nofollow", "examplebot", "nosnippet", "otherbot", "max-snippet:20")
	b.ReportAllocs()
	for b.Loop() {
		Build(members, preferences("n"), testNow)
	}
}
