// SPDX-License-Identifier: Apache-2.0

package crawlers

import (
	"math/rand/v2"
	"testing"
)

// BenchmarkRequests measures the time to recognize the User-Agents of requests. One list has 10,000 User-Agents of
// browsers, most of them from a few hundred common browsers. A second list has 10,000 User-Agents of as many different
// browsers as possible. A third list has the User-Agents of crawlers.
func BenchmarkRequests(b *testing.B) {
	c, err := Default()
	if err != nil {
		b.Fatal(err)
	}
	r := NewRecognizer(c.Patterns())
	browsers := browserStrings()
	rng := rand.New(rand.NewPCG(1, 2))
	rng.Shuffle(len(browsers), func(i, j int) { browsers[i], browsers[j] = browsers[j], browsers[i] })
	popular := rand.NewZipf(rng, 1.1, 1, uint64(len(browsers)-1))
	var seen, different, examples []string
	for i := range 10_000 {
		seen = append(seen, browsers[popular.Uint64()])
		different = append(different, browsers[i%len(browsers)])
	}
	for _, crawler := range c.All() {
		examples = append(examples, crawler.Examples...)
	}
	for _, headers := range []struct {
		name string
		list []string
	}{{"popular", seen}, {"different", different}, {"crawlers", examples}} {
		b.Run(headers.name, func(b *testing.B) {
			b.ReportAllocs()
			var buf [4]int
			for b.Loop() {
				for _, ua := range headers.list {
					if len(r.RecognizeEach(buf[:0], []string{ua})) == 0 {
						Automated(ua)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(headers.list)), "ns/header")
		})
	}
}
