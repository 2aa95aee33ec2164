// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
)

// TestCrowd lets a hundred people use the console while crawlers visit the site. Each person loads five pages, and
// polls the console for news. The site must answer every request, and the console must never answer with an internal
// error.
func TestCrowd(t *testing.T) {
	testkit.Nightly(t)
	const people, pagesEach = 100, 5
	n := open(t, policyText, "")
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	client := &http.Client{Transport: &http.Transport{MaxConnsPerHost: 0, MaxIdleConnsPerHost: 300}}
	get := func(path string) (*http.Response, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, n.console+path, nil)
		if err != nil {
			return nil, err
		}
		return client.Do(r)
	}
	var pages, busy, bad, news atomic.Int64
	var readers sync.WaitGroup
	for i := range people {
		readers.Go(func() {
			if response, err := get("news"); err == nil {
				if response.StatusCode == http.StatusOK {
					news.Add(1)
				}
				_ = response.Body.Close()
			}
			for k := range pagesEach {
				response, err := get(screens[(i+k)%len(screens)].path)
				if err != nil {
					continue
				}
				switch response.StatusCode {
				case http.StatusOK:
					pages.Add(1)
				case http.StatusServiceUnavailable:
					busy.Add(1)
				default:
					bad.Add(1)
				}
				_ = response.Body.Close()
			}
		})
	}
	go func() {
		readers.Wait()
		stop()
	}()
	var took []time.Duration
	for ctx.Err() == nil {
		began := time.Now()
		if status := n.visit("Mozilla/5.0 (compatible; Bingbot/2.0)", "www.example.com", "/news/"); status != http.StatusOK {
			t.Fatalf("the site answers %d", status)
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	t.Logf("%d with news, %d pages, %d with 503; %d requests of the site, half within %s, 99%% within %s",
		news.Load(), pages.Load(), busy.Load(), len(took), took[len(took)/2], took[len(took)*99/100])
	if news.Load() < people || pages.Load() == 0 || bad.Load() > 0 {
		t.Errorf("%d with news, %d pages, %d errors", news.Load(), pages.Load(), bad.Load())
	}
}
