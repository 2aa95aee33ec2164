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
	v, _ := Build(members, Usage{TrainAI: No, AIUse: No, Search: Yes}, testNow)
	return v
}

// TestApplyAllocations holds Apply to its promise: nothing, or one array, where
// the upstream is silent, and nothing where the values are there already.
func TestApplyAllocations(t *testing.T) {
	v := benchValues(3)
	h := http.Header{RobotsTagField: nil, XRobotsTagField: nil, ContentUsageField: nil}
	for shared, want := range map[bool]float64{true: 0, false: 1} {
		o := Options{Channels: AllChannels, Shared: shared}
		if got := testing.AllocsPerRun(100, func() {
			clear(h)
			Apply(h, v, o)
		}); got != want {
			t.Errorf("shared %v: %v allocations, want %v", shared, got, want)
		}
		if got := testing.AllocsPerRun(100, func() { Apply(h, v, o) }); got != 0 {
			t.Errorf("shared %v, again: %v allocations", shared, got)
		}
	}
}

func BenchmarkApply(b *testing.B) {
	for _, c := range []struct {
		name     string
		crawlers int
		o        Options
		upstream http.Header
	}{
		{"silent-upstream/shared", 3, Options{Channels: AllChannels, Shared: true}, nil},
		{"silent-upstream", 3, Options{Channels: AllChannels}, nil},
		{"silent-upstream/150-crawlers", 150, Options{Channels: AllChannels}, nil},
		{"replace", 3, Options{Channels: AllChannels, Mode: Replace}, http.Header{XRobotsTagField: {"noindex, nofollow"}}},
		{"merge/x-robots-tag", 3, Options{Channels: AllChannels}, http.Header{XRobotsTagField: {"noindex, nofollow"}}},
		{"merge/all-three", 3, Options{Channels: AllChannels}, http.Header{XRobotsTagField: {"noindex, nofollow"}, RobotsTagField: {"*;noindex, examplebot;nofollow"}, ContentUsageField: {"train-ai=y"}}},
		{"merge/all-three/150-crawlers", 150, Options{Channels: AllChannels}, http.Header{XRobotsTagField: {"noindex, nofollow"}, RobotsTagField: {"*;noindex, examplebot;nofollow"}, ContentUsageField: {"train-ai=y"}}},
		{"already-merged", 3, Options{Channels: AllChannels}, http.Header{XRobotsTagField: benchValues(3).XRobotsTag, RobotsTagField: benchValues(3).RobotsTag, ContentUsageField: benchValues(3).ContentUsage}},
		{"hostile/300-lines", 3, Options{Channels: AllChannels}, hostile(slices.Repeat([]string{"noindex, otherbot: max-snippet:3"}, 300))},
		{"hostile/64-KiB-of-names", 3, Options{Channels: AllChannels}, hostile([]string{strings.Repeat("a, ", 64<<10/3)})},
		{"hostile/64-KiB-of-dates", 3, Options{Channels: AllChannels}, hostile([]string{strings.Repeat("unavailable_after:1,", 64<<10/20)})},
		{"hostile/64-KiB-of-colons", 3, Options{Channels: AllChannels}, hostile([]string{strings.Repeat("a:", 32<<10)})},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			v := benchValues(c.crawlers)
			h := http.Header{RobotsTagField: nil, XRobotsTagField: nil, ContentUsageField: nil, "Content-Type": {"text/html"}}
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
			h[ContentUsageField] = v.ContentUsage
		}
	})
}

func hostile(lines []string) http.Header {
	return http.Header{RobotsTagField: lines, XRobotsTagField: lines, ContentUsageField: lines}
}

func BenchmarkBuild(b *testing.B) {
	members := list("*", "noindex, nofollow", "examplebot", "nosnippet", "otherbot", "max-snippet:20")
	b.ReportAllocs()
	for b.Loop() {
		Build(members, Usage{TrainAI: No}, testNow)
	}
}
