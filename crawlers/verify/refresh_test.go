// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// badServer serves lists whose host names say how it answers. For example, it answers "good" at once, and "hangs"
// never.
type badServer struct {
	mu         sync.Mutex
	first      map[string]time.Time // time of the first request for each list
	under, top atomic.Int32         // number of fetches in progress, and the largest such number
}

func (s *badServer) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	if s.first == nil {
		s.first = map[string]time.Time{}
	}
	if url := r.URL.String(); s.first[url].IsZero() {
		s.first[url] = time.Now()
	}
	s.mu.Unlock()
	for n := s.under.Add(1); ; {
		if top := s.top.Load(); n <= top || s.top.CompareAndSwap(top, n) {
			break
		}
	}
	response := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Request: r}
	kind := strings.TrimSuffix(r.URL.Host, ".example")
	kind = kind[strings.LastIndex(kind, ".")+1:]
	switch kind {
	case "hangs":
		<-r.Context().Done()
		s.under.Add(-1)
		return nil, r.Context().Err()
	case "fails":
		s.under.Add(-1)
		return nil, errors.New("no route")
	case "good":
		response.Body = &body{s: s, r: strings.NewReader(listOf(3))}
	case "drips":
		response.Body = &body{s: s, ctx: r.Context(), r: endless('1'), wait: time.Second, most: 1}
	case "floods":
		response.Body = &body{s: s, ctx: r.Context(), r: endless('x'), wait: time.Millisecond, most: 1 << 20}
	}
	return response, nil
}

// body is a response body that sends its bytes slowly, until its context ends.
type body struct {
	s    *badServer
	ctx  context.Context
	r    io.Reader
	wait time.Duration
	most int
}

func (b *body) Read(p []byte) (int, error) {
	if b.ctx == nil {
		return b.r.Read(p)
	}
	select {
	case <-b.ctx.Done():
		return 0, b.ctx.Err()
	case <-time.After(b.wait):
		return b.r.Read(p[:min(len(p), b.most)])
	}
}

func (b *body) Close() error {
	b.s.under.Add(-1)
	return nil
}

type endless byte

func (e endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(e)
	}
	return len(p), nil
}

// A list whose server hangs, sends endless data or fails does not delay other lists. The number of concurrent fetches
// is limited.
func TestListsAreFetchedConcurrently(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		urls := []string{
			"https://hangs.example/1", "https://drips.example/2", "https://floods.example/3", "https://fails.example/4",
			"https://hangs.example/5", "https://drips.example/6", "https://hangs.example/7",
		}
		for i := range 20 {
			urls = append(urls, fmt.Sprintf("https://good.example/%d", i))
		}
		slices.Sort(urls)
		server := new(badServer)
		reports := 0 // no lock is needed, because Report is called one call at a time
		l := NewLists(urls, ListOptions{Client: &http.Client{Transport: server}, Report: func(ListStatus) { reports++ }})
		begin := time.Now()
		l.Start()
		defer l.Stop()
		time.Sleep(firstWait + time.Duration(len(urls))*between)
		synctest.Wait()
		for i, url := range urls {
			if want := begin.Add(firstWait + time.Duration(i)*between); !server.first[url].Equal(want) {
				t.Errorf("%s was fetched after %s, want %s", url, server.first[url].Sub(begin), want.Sub(begin))
			}
		}
		for _, s := range l.Status() {
			if strings.Contains(s.URL, "good") && (s.Prefixes != 3 || s.Err != nil || !s.Fresh) {
				t.Errorf("%+v", s)
			}
		}
		time.Sleep(30 * time.Second)
		synctest.Wait()
		for _, s := range l.Status() {
			if !strings.Contains(s.URL, "good") && (s.Err == nil || s.Prefixes != 0) {
				t.Errorf("%+v", s)
			}
			if hangs := strings.Contains(s.URL, "hangs") || strings.Contains(s.URL, "drips"); hangs && !errors.Is(s.Err, context.DeadlineExceeded) {
				t.Errorf("%s: %v", s.URL, s.Err)
			}
		}
		if reports != len(urls) || server.under.Load() != 0 {
			t.Errorf("%d reports, %d fetches in progress", reports, server.under.Load())
		}
	})
}

// More lists hang than can be fetched at the same time. After the timeout, the other lists are fetched.
func TestListsOfWhichManyHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		urls := []string{"https://z.good.example/"} // the last list in the order of fetching
		for i := range 3 * maxFetches {
			urls = append(urls, fmt.Sprintf("https://hangs.example/%02d", i))
		}
		server := new(badServer)
		l := NewLists(urls, ListOptions{Client: &http.Client{Transport: server}})
		l.Start()
		time.Sleep(firstWait + 3*(fetchTimeout+time.Second))
		synctest.Wait()
		if s := l.Status(); s[len(s)-1].Prefixes != 3 || s[0].Err == nil {
			t.Errorf("%+v", s[len(s)-1])
		}
		if top := server.top.Load(); top != maxFetches {
			t.Errorf("%d fetches at the same time, want %d", top, maxFetches)
		}
		// Stop does not wait for hanging fetches. synctest checks that no goroutine is left.
		time.Sleep(time.Hour - 3*time.Second - 2*fetchTimeout)
		synctest.Wait()
		if server.under.Load() == 0 {
			t.Error("no fetch is in progress, so this test cannot fail")
		}
		before := time.Now()
		l.Stop()
		if took := time.Since(before); took != 0 || server.under.Load() != 0 {
			t.Errorf("Stop waited %s, and %d fetches are in progress", took, server.under.Load())
		}
	})
}
