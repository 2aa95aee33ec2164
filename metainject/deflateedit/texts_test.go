// SPDX-License-Identifier: Apache-2.0

package deflateedit

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
)

var (
	rounds = flag.Int("rounds", 12_000, "scale of the random tests")
	seed   = flag.Uint64("seed", 7, "of the random tests")
)

// random returns a source of random numbers, and the number of rounds that the test runs.
func random(t *testing.T) (*rand.Rand, int) {
	t.Helper()
	n := *rounds
	if testing.Short() {
		n = min(n, 5000)
	}
	t.Logf("rounds %d, seed %d", n, *seed)
	return rand.New(rand.NewPCG(*seed, *seed)), n
}

type flushWriter interface {
	io.WriteCloser
	Flush() error
}

// pageLike returns a page of about size bytes. Like real pages, it can be compressed to a quarter or a fifth.
func pageLike(size int, seed uint64) []byte {
	rnd := rand.New(rand.NewPCG(seed, 11))
	words := make([]string, 700)
	for i := range words {
		w := make([]byte, 2+rnd.IntN(9))
		for j := range w {
			w[j] = "etaoinshrdlucmfwypvbgkjqxz"[min(rnd.IntN(26), rnd.IntN(26))]
		}
		words[i] = string(w)
	}
	var b bytes.Buffer
	b.WriteString("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>A page</title>\n")
	for i := range 30 {
		fmt.Fprintf(&b, "<link rel=\"preload\" href=\"/assets/%s-%05d.js\" as=\"script\">\n", words[i], i*31)
	}
	b.WriteString("</head>\n<body class=\"home\">\n")
	for b.Len() < size-60 {
		fmt.Fprintf(&b, "<p id=\"p%d\" class=\"%s\">", rnd.IntN(9999), words[rnd.IntN(40)])
		for range 4 + rnd.IntN(20) {
			b.WriteString(words[min(rnd.IntN(700), rnd.IntN(700))])
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "<a href=\"/%s/%s-%d\">%s</a></p>\n", words[rnd.IntN(30)], words[rnd.IntN(700)], rnd.IntN(999), words[rnd.IntN(700)])
	}
	b.WriteString("</body>\n</html>\n")
	return b.Bytes()
}

// texts holds texts with few matches, with many matches, and with long matches.
var texts = [][]byte{
	pageLike(50<<10, 1), pageLike(90<<10, 9),
	bytes.Repeat([]byte("abcdefgh"), 12<<10),
	func() []byte { // no repeated text
		rnd := rand.New(rand.NewPCG(1, 2))
		b := make([]byte, 80<<10)
		for i := range b {
			b[i] = byte(rnd.Uint32())
		}
		return b
	}(),
	func() []byte { // matches at the largest distance
		rnd := rand.New(rand.NewPCG(3, 4))
		b := make([]byte, 100<<10)
		for i := range b {
			if b[i] = byte(rnd.Uint32()); i >= 32<<10 {
				b[i] = b[i-32<<10]
			}
		}
		return b
	}(),
}

func applyEdits(text []byte, edits []Edit) []byte {
	var out []byte
	at := 0
	for _, e := range edits {
		out = append(append(out, text[at:e.Start]...), e.Text...)
		at = e.End
	}
	return append(out, text[at:]...)
}
