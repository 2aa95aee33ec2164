// SPDX-License-Identifier: Apache-2.0

package accesslog

import (
	"bytes"
	"strings"
	"testing"
)

// combinedLine has the usual length of a line in the Combined format.
const combinedLine = `192.0.2.7 - - [22/Nov/2026:10:34:56 +0100] "GET /news/bridge.html?a=b HTTP/1.1" 200 10900 "https://www.example.com/" "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.2; +https://openai.com/gptbot)"`

// BenchmarkReading reads complete logs without knowing their format, like the replay command.
func BenchmarkReading(b *testing.B) {
	for _, c := range []struct{ name, line string }{{"Caddy", caddyLine}, {"Combined", combinedLine}} {
		b.Run(c.name, func(b *testing.B) {
			log := strings.Repeat(c.line+"\n", 20_000)
			b.SetBytes(int64(len(log)))
			b.ReportAllocs()
			for b.Loop() {
				n := 0
				_, err := Reading{Workers: 1, Stdin: bytes.NewReader([]byte(log))}.Read(b.Context(), []string{Stdin}, func(int, *Record) { n++ })
				if err != nil || n != 20_000 {
					b.Fatal(n, err)
				}
			}
		})
	}
}
