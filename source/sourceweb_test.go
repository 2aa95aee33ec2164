// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// A policy comes over TLS from a server that is trusted, and from no other.
func TestWebSourceTLS(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("If-Modified-Since") != "" {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.Header().Set("Last-Modified", "Sat, 21 Nov 2026 10:00:00 GMT")
		_, _ = w.Write([]byte(fakePolicy))
	}))
	defer server.Close()
	src, err := newWebPolicy(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := src.read(context.Background(), nil); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a server that nobody vouches for: %v", err)
	}
	src.client = server.Client()
	src.client.CheckRedirect = checkRedirect
	found, err := src.read(context.Background(), nil)
	if err != nil || string(found.data) != fakePolicy {
		t.Fatalf("%s %v", found.data, err)
	}
	if _, err := src.read(context.Background(), found.validator); !errors.Is(err, errUnchanged) {
		t.Error(err)
	}
}

// Validators are taken from a server as far as they are worth something.
func TestWebSourceValidators(t *testing.T) {
	var tag, got string
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Get("If-None-Match")
		w.Header().Set("ETag", tag)
		w.WriteHeader(status)
		if status == http.StatusOK {
			_, _ = w.Write([]byte(fakePolicy))
		}
	}))
	defer server.Close()
	src, err := newWebPolicy(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	read := func(mark any) (content, error) { return src.read(context.Background(), mark) }

	status = http.StatusNotModified
	if _, err := read(nil); err == nil || errors.Is(err, errUnchanged) || !strings.Contains(err.Error(), "304") {
		t.Errorf("304 to a request without validators: %v", err)
	}
	status, tag = http.StatusOK, `W/"1"`
	found, err := read(nil)
	if err != nil {
		t.Fatal(err)
	}
	status = http.StatusNotModified
	if _, err := read(found.validator); !errors.Is(err, errUnchanged) || got != tag {
		t.Errorf("%q %v", got, err)
	}
	// A server whose entity tag never changes is not believed for ever.
	mark := found.validator.(webValidator)
	mark.read = mark.read.Add(-rereadWeb)
	status = http.StatusOK
	if again, err := read(mark); err != nil || got != "" || string(again.data) != fakePolicy {
		t.Errorf("%q %v", got, err)
	}
	// One that is too long to be sent back is not.
	tag = `"` + strings.Repeat("x", maxValidator) + `"`
	if found, err = read(nil); err != nil {
		t.Fatal(err)
	}
	if _, err := read(found.validator); err != nil || got != "" {
		t.Errorf("%.20q %v", got, err)
	}
}

// A server that sends a policy drop by drop is not waited for longer than another.
func TestWebSourceDropByDrop(t *testing.T) {
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for {
			select {
			case <-release:
				return
			case <-r.Context().Done():
				return
			case <-time.After(5 * time.Millisecond):
				_, _ = w.Write([]byte("#"))
				w.(http.Flusher).Flush()
			}
		}
	}))
	defer server.Close()
	defer close(release)
	src, err := newWebPolicy(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	if _, err := src.read(ctx, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}
