// SPDX-License-Identifier: Apache-2.0

package metainject

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/robotspolicy/caddy-robots-policy/robotsrule"
)

// A page is changed even if its first zstd block is longer than Options.MaxHead. Blocks are long if the page can hardly
// be compressed, for example because it embeds pictures.
func TestLongZstdBlock(t *testing.T) {
	text := []byte("<!DOCTYPE html><html><head></head><body>")
	random := rand.NewChaCha8([32]byte{})
	for len(text) < 400<<10 {
		text = append(text, byte(random.Uint64()>>40)|0x20)
	}
	var packed bytes.Buffer
	z, err := zstd.NewWriter(&packed)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := z.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	rw := Wrap(w, httptest.NewRequest(http.MethodGet, "/", nil), Options{Set: NewSet([]Element{{Name: Everyone, Rules: robotsrule.Of("noindex")}}, nil, 0)})
	defer rw.Release()
	rw.Header().Set("Content-Type", "text/html")
	rw.Header().Set("Content-Encoding", "zstd")
	for b := range slices.Chunk(packed.Bytes(), 32<<10) {
		if _, err := rw.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	if err := rw.Close(nil); err != nil {
		t.Fatal(err)
	}
	d, err := zstd.NewReader(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	got, err := io.ReadAll(d)
	if want := bytes.Replace(text, []byte("<head>"), []byte(`<head><meta name="robots" content="noindex">`), 1); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%.80q of %d bytes: %v", got, len(got), err)
	}
}
