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

// stalled is a client that does not read the response and does not send its form until it is released.
type stalled struct {
	*httptest.ResponseRecorder
	released chan struct{}
	reached  *sync.WaitGroup // Done is called when the server waits for the client
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

// Only a limited number of pages may be computed at the same time. A page is not counted while the console waits for a
// client that reads or sends slowly.
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
	if w := get(t, s, "health"); w.Code != http.StatusOK { // 503 if the limit is reached
		t.Errorf("status %d", w.Code)
	}
	close(released)
	all.Wait()
}

// If a page sends the same query twice, the second query gets the answer of the first, even if some time has passed
// between them.
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

// The history of the published versions is read only once for a page.
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
