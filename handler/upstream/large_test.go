// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
)

// If a robots.txt is larger than 500 KiB, or even endless, only the complete lines in its first 500 KiB are merged.
// Crawlers do not read more than this part (RFC 9309 section 2.5).
func TestLargeFilesAreMerged(t *testing.T) {
	const start = "User-agent: *\nDisallow: /one/\n"
	filler := strings.Repeat("# "+strings.Repeat("x", 97)+"\n", 6000)
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	for range 6000 { // its compressed form is too large
		fmt.Fprintf(z, "# %x\n", [][]byte{{byte(rand.Uint32())}, fmt.Append(nil, rand.Uint64(), rand.Uint64(), rand.Uint64(), rand.Uint64(), rand.Uint64())})
	}
	z.Close()
	for name, next := range map[string]nextFunc{
		"lines": func(w http.ResponseWriter, _ *http.Request) error {
			_, err := io.WriteString(w, start+filler+"Disallow: /not/read/\n")
			return err
		},
		"endless, in an aborting proxy": func(w http.ResponseWriter, _ *http.Request) error {
			_, err := io.WriteString(w, start)
			for err == nil {
				_, err = io.WriteString(w, filler[:10_000])
			}
			panic(http.ErrAbortHandler)
		},
		"a cut Allow": func(w http.ResponseWriter, _ *http.Request) error {
			pad := "#" + strings.Repeat("x", robotstxt.MaxSize-len(start)-len("\nAllow: /one"[:]))
			_, err := io.WriteString(w, start+pad+"\nAllow: /one/of/these\n")
			return err
		},
		"CR alone": func(w http.ResponseWriter, _ *http.Request) error {
			_, err := io.WriteString(w, strings.ReplaceAll(start+filler, "\n", "\r"))
			return err
		},
		"gzip": func(w http.ResponseWriter, _ *http.Request) error {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			_, err := io.WriteString(z, start+filler)
			if e := z.Close(); err == nil {
				err = e
			}
			return err
		},
		"gzip that is too large itself": func(w http.ResponseWriter, _ *http.Request) error {
			w.Header().Set("Content-Encoding", "gzip")
			z, err := gzip.NewWriterLevel(w, gzip.NoCompression)
			if err == nil {
				_, err = io.WriteString(z, start+filler)
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			if got := s.get(t, "www.example.com", next); got.text != "Disallow: /one/" || !got.known {
				t.Errorf("%+v", got)
			}
		})
	}
}

// If a file is too large to be used as a whole, the last known file stays in use.
func TestLargeWithoutLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		s.get(t, "www.example.com", says("Disallow: /one"))
		for _, large := range []string{
			strings.Repeat("x", 1<<20), // one line
			"User-agent: a\n" + repeated(20_000, "User-agent: a%d\n") + repeated(20_000, "Disallow: /%d\n"),
		} {
			time.Sleep(2 * time.Minute)
			got := s.get(t, "www.example.com", func(w http.ResponseWriter, _ *http.Request) error {
				_, err := io.WriteString(w, large)
				return err
			})
			if got.text != "Disallow: /one" || !got.known {
				t.Errorf("%.20q: %+v", large, got)
			}
		}
	})
}

func repeated(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// Merging any robots.txt of an upstream takes little memory and time. Paths that the file disallows for everyone are
// also disallowed in the merged file.
func TestMergeBudget(t *testing.T) {
	testkit.Nightly(t)
	for name, text := range map[string]string{
		"agents times rules": repeated(16_000, "User-agent: a%d\n") + "User-agent: *\n" + repeated(14_000, "Disallow: /p%d/\n"),
		"groups":             "User-agent: *\nDisallow: /p1/\n\n" + repeated(14_000, "User-agent: a%d\nDisallow: /p%[1]d/\n\n"),
		"rules":              "User-agent: *\n" + repeated(28_000, "Disallow: /p%d/\n"),
		"wildcards":          "User-agent: *\nDisallow: /p1/\n" + repeated(20_000, "Disallow: /*%d*a*b\n"),
		"opposites":          "User-agent: *\nDisallow: /p1/\n" + repeated(12_000, "Disallow: /*%d*a\nAllow: /%[1]d*b\n"),
		"usages":             repeated(12_000, "User-agent: a%d\n") + "User-agent: *\nDisallow: /p1/\n" + repeated(10_000, "Content-Usage: /%d train-ai=n\n"),
	} {
		t.Run(name, func(t *testing.T) {
			testkit.Budget(t, func() {
				s := newServer(t)
				r := httptest.NewRequest(http.MethodGet, "http://www.example.com/robots.txt", nil)
				other, _, _ := s.Get(r, nextFunc(func(w http.ResponseWriter, _ *http.Request) error {
					_, err := io.WriteString(w, text)
					return err
				}))
				w, settled := httptest.NewRecorder(), false
				for !settled { // a request waits only for a limited time until the merge is finished
					w = httptest.NewRecorder()
					_, settled = s.site.Robots.Serve(w, r, robotsserve.Answer{Other: other, Report: s.LogMerge("www.example.com")})
				}
				merged := robotstxt.Parse(w.Body.Bytes())
				for _, r := range merged.Group("*").Decisive() {
					if !r.Allow && r.Pattern.Match("/p1/") {
						return
					}
				}
				t.Errorf("a path that the site disallows is allowed: %.300s", w.Body)
			})
		})
	}
}
