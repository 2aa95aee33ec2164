// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"fmt"
	"strings"
	"testing"

	"github.com/temoto/robotstxt"
)

// benchPath returns the path of a rule. One in ten paths has a wildcard.
func benchPath(i int) string {
	if i%10 == 9 {
		return fmt.Sprintf("/section%d/*/print%d$", i%100, i)
	}
	return fmt.Sprintf("/section%d/topic%d/", i%100, i)
}

func benchAgent(i int) string {
	name := "bot"
	for n := i; n >= 0; n = n/26 - 1 {
		name += string(rune('a' + n%26))
	}
	return name
}

// benchFile returns a policy file with rules for a list of crawlers.
func benchFile(rules, agents int) []byte {
	var b strings.Builder
	b.WriteString("version: 1\nrules:\n  - for:\n")
	for i := range agents {
		b.WriteString("      - " + benchAgent(i) + "\n")
	}
	for _, allow := range []bool{true, false} {
		b.WriteString(map[bool]string{true: "    allow:\n      crawl:\n", false: "    disallow:\n      crawl:\n"}[allow])
		for i := range rules {
			if i%3 == 0 == allow {
				b.WriteString("        - " + benchPath(i) + "\n")
			}
		}
	}
	return []byte(b.String())
}

// benchRobots returns the rules of benchFile as a robots.txt.
func benchRobots(rules, agents int) []byte {
	var b strings.Builder
	for i := range agents {
		b.WriteString("User-agent: " + benchAgent(i) + "\n")
	}
	for i := range rules {
		b.WriteString(map[bool]string{true: "Allow: ", false: "Disallow: "}[i%3 == 0] + benchPath(i) + "\n")
	}
	return []byte(b.String())
}

func BenchmarkLoad(b *testing.B) {
	for _, size := range []struct{ rules, agents int }{{10, 1}, {1000, 100}, {10000, 1}, {10000, 1000}} {
		name := fmt.Sprintf("rules=%d/crawlers=%d", size.rules, size.agents)
		b.Run("ours/"+name, func(b *testing.B) {
			data := benchFile(size.rules, size.agents)
			b.ReportAllocs()
			for b.Loop() {
				if f, ds := Load("bench.yaml", data); f == nil {
					b.Fatal(ds.Error())
				}
			}
		})
		b.Run("temoto/"+name, func(b *testing.B) {
			data := benchRobots(size.rules, size.agents)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := robotstxt.FromBytes(data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
