// SPDX-License-Identifier: Apache-2.0

package console

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/robotspolicy/caddy-robots-policy/source"
)

// stalled is a client that takes nothing of a response, and sends nothing of a form,
// until it is released.
type stalled struct {
	*httptest.ResponseRecorder
	released chan struct{}
	reached  *sync.WaitGroup // done when the server waits for it
}

func (s *stalled) Write(b []byte) (int, error) {
	s.reached.Done()
	<-s.released
	return len(b), nil
}

func (s *stalled) Read([]byte) (int, error) {
	s.reached.Done()
	<-s.released
	return 0, io.EOF
}

// Clients that read or send slowly hold none of the places in which pages are computed.
func TestStalledClientsHoldNoPlace(t *testing.T) {
	s := &server{local: true, logger: caddy.Log()}
	const clients = 3
	released := make(chan struct{})
	var all, reached sync.WaitGroup
	reached.Add(2 * clients)
	newStalled := func() *stalled { return &stalled{httptest.NewRecorder(), released, &reached} }
	for range clients {
		all.Go(func() {
			s.ServeHTTP(newStalled(), httptest.NewRequest(http.MethodGet, "/console/health", nil))
		})
		all.Go(func() {
			r := httptest.NewRequest(http.MethodPost, "/console/change", newStalled())
			r.Header.Set("Content-Type", "multipart/form-data; boundary=x")
			s.ServeHTTP(httptest.NewRecorder(), r)
		})
	}
	reached.Wait()
	if w := get(t, s, "health"); w.Code != http.StatusOK { // 503 if there is no place
		t.Errorf("status %d", w.Code)
	}
	close(released)
	all.Wait()
}

// Questions that a page asks again are answered once, although the clock has moved on.
func TestAnswersAreUsedAgain(t *testing.T) {
	s := startCaddy(t, testPolicy)
	v := &view{server: s, ctx: t.Context(), Now: time.Date(2026, 11, 22, 12, 30, 0, 1, time.UTC), store: runningStore(""), options: new(Console)}
	for range 2 {
		if _, err := v.readSearched(); err != nil {
			t.Fatal(err)
		}
		v.Now = v.Now.Add(time.Second)
	}
	first := len(v.answers)
	if _, err := v.readSearched(); err != nil {
		t.Fatal(err)
	}
	if again := len(v.answers); first != 1 || again != first {
		t.Errorf("%d answers, and a second later %d", first, again)
	}
}

// The history of what was published is read once for a page.
func TestHistoryIsReadOnce(t *testing.T) {
	s := startCaddy(t, testPolicy)
	v, err := s.view(httptest.NewRequest(http.MethodGet, "/", nil))
	if err != nil {
		t.Fatal(err)
	}
	before, versions := len(v.stands().History), must(v.history())
	if _, err := v.Running.document.Publish(t.Context(), source.Change{Replaces: sumOf(testPolicy), Text: testPolicy + "# more\n"}); err != nil {
		t.Fatal(err)
	}
	if n := len(v.stands().History); n != before || must(v.history()) != versions {
		t.Errorf("%d versions, then %d", before, n)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
