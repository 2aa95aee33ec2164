// SPDX-License-Identifier: Apache-2.0

package robotstxt_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	temoto "github.com/temoto/robotstxt"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/crawlertest"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
)

// BenchmarkReaders compares three parsers. Google's parser has only one function, which parses the file and answers for
// one URL. So for all three parsers, the benchmark measures these two steps together. For the other two parsers, it
// also measures the time for each further URL of a parsed file. The time and allocations of Google's parser are
// measured in a separate process.
func BenchmarkReaders(b *testing.B) {
	const path = "/news/77/today/print?x=1"
	for _, rules := range []int{10, 1000, 20_000} {
		r := rand.New(rand.NewPCG(1, 35))
		var text strings.Builder
		text.WriteString("User-agent: *\n")
		for i := range rules {
			fmt.Fprintf(&text, "%s: /%s/%d%s\n", []string{"Allow", "Disallow"}[r.IntN(2)], []string{"shop", "news", "x"}[r.IntN(3)], i, []string{"", "/*/print", "$"}[r.IntN(3)])
		}
		body := []byte(text.String())
		run := func(name string, f func()) {
			b.Run(fmt.Sprintf("%d rules/%s", rules, name), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					f()
				}
			})
		}
		theirs := func() *temoto.Group {
			f, err := temoto.FromBytes(body)
			if err != nil {
				b.Fatal(err)
			}
			return f.FindGroup("example")
		}
		run("one URL/this", func() { robotstxt.Parse(body).Agent(policy.Crawler{Token: "example"}).Allowed(path) })
		run("one URL/temoto", func() { theirs().Test(path) })
		b.Run(fmt.Sprintf("%d rules/one URL/Google", rules), func(b *testing.B) {
			costs, err := crawlertest.GoogleCosts(string(body), "example", "https://www.example.com"+path, time.Second)
			if err != nil {
				b.Fatal(err)
			}
			if costs == nil {
				b.Skip(crawlertest.GoogleCheckout + " is not set")
			}
			b.ReportAllocs()
			for b.Loop() { // the results come from the other process
			}
			b.ReportMetric(costs.Nanoseconds, "ns/op")
			b.ReportMetric(costs.Allocations, "allocs/op")
			b.ReportMetric(costs.Bytes, "B/op")
		})
		agent, group := robotstxt.Parse(body).Agent(policy.Crawler{Token: "example"}), theirs()
		run("another URL/this", func() { agent.Allowed(path) })
		run("another URL/temoto", func() { group.Test(path) })
	}
}
