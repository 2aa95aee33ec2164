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

// Over TLS, a policy is read only from a trusted server.
func TestWebSourceTLS(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(fakePolicy))
	}))
	defer server.Close()
	address, err := WebAddress(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	src := &webPolicy{url: address, client: &http.Client{CheckRedirect: checkRedirect}}
	if _, err := src.read(context.Background(), nil); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a server with an untrusted certificate: %v", err)
	}
	src.client = server.Client()
	src.client.CheckRedirect = checkRedirect
	found, err := src.read(context.Background(), nil)
	if err != nil || string(found.data) != fakePolicy {
		t.Fatalf("%s %v", found.data, err)
	}
}

// The size of the header that is read is limited.
func TestWebSourceLargeHeader(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Large", strings.Repeat("x", 128<<10))
		_, _ = w.Write([]byte(fakePolicy))
	}))
	defer server.Close()
	src, err := newWebSource(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := src.read(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "header") {
		t.Errorf("a header of 128 KiB: %v", err)
	}
}

// A server that sends a policy very slowly gets no more time than other servers.
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
	address, err := WebAddress(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	src := &webPolicy{url: address, client: http.DefaultClient}
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	if _, err := src.read(ctx, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}
