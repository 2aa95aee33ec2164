// SPDX-License-Identifier: Apache-2.0

package metainject

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// Buffers and coders are reused for later responses, even for other hosts and policies, and even after a response that
// was abandoned, failed or was damaged. A response must never contain bytes of another response.
func TestNothingPassesOver(t *testing.T) {
	rnd, n := random(t)
	type kept struct {
		coding     string
		raw        []byte
		page, want []byte
		set        *Set
		suffix     string
	}
	var all []kept
	for i := range 40 {
		set := testSet(t, testSets[i%len(testSets)]...)
		page := naturalPage(200+rnd.IntN(40_000), []string{"", `<meta name="robots" content="index">`}[i%2], uint64(i))
		k := kept{page: page, raw: page, set: set, suffix: fmt.Sprintf("-rp%d", i), want: boundedRewrite(page, set, DefaultMaxHead, false)}
		if c := i % (len(testCodings) + 1); c < len(testCodings) {
			k.coding, k.raw = testCodings[c].name, testCodings[c].pack(page, i, rnd.IntN(len(page)))
		}
		all = append(all, k)
	}
	unpack := func(coding string, b []byte) ([]byte, error) {
		for _, c := range testCodings {
			if c.name == coding {
				if text, err := c.unpack(b); err == nil {
					return text, nil
				}
			}
		}
		return b, nil
	}
	one := func(rnd *rand.Rand) error {
		k := &all[rnd.IntN(len(all))]
		r := newRecorder()
		r.header.Set("Content-Type", "text/html")
		r.header.Set("Etag", `"e"`)
		if k.coding != "" {
			r.header.Set("Content-Encoding", k.coding)
		}
		rw := Wrap(r, httptest.NewRequest("GET", "/", nil), Options{Set: k.set, ETagSuffix: k.suffix, Fragments: true})
		defer rw.Release()
		leave := rnd.IntN(8)
		size := 1 + rnd.IntN(8000)
		raw := bytes.Clone(k.raw)
		if leave == 3 {
			raw[rnd.IntN(len(raw))] ^= 1 << rnd.IntN(8)
		}
		for rest := raw; len(rest) > 0; {
			m := min(1+rnd.IntN(size), len(rest))
			if _, err := rw.Write(rest[:m]); err != nil && leave != 3 {
				return err
			}
			rest = rest[m:]
			switch {
			case leave == 0 && rnd.IntN(3) == 0:
				return nil
			case leave == 1 && rnd.IntN(3) == 0:
				return rw.Close(errors.New("the handler failed"))
			case leave == 2 && rw.page != nil && !rw.page.scan.BehindHead():
				if err := rw.FlushError(); err != nil {
					return err
				}
			}
		}
		if err := rw.Close(nil); leave == 3 || err != nil {
			if leave == 3 {
				err = nil
			}
			return err
		}
		text, err := unpack(k.coding, r.body.Bytes())
		tag := r.header.Get("Etag")
		if err != nil || !bytes.Equal(text, k.want) || !strings.Contains(tag, `"e`+k.suffix+`-m`+k.set.mark) {
			return fmt.Errorf("%q, set %s, ETag %s (%v): %.300q, want %.300q", k.coding, k.set.HTML(), tag, err, text, k.want)
		}
		return nil
	}
	var wg sync.WaitGroup
	for i := range 8 {
		rnd := rand.New(rand.NewPCG(*randomSeed, uint64(i)))
		wg.Go(func() {
			for range n / 500 {
				if err := one(rnd); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}
