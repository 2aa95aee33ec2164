// SPDX-License-Identifier: Apache-2.0

package console

import (
	"bytes"
	"net/http"
	"strconv"
)

// buffered is a response that is sent once it is whole, so that a reader who is slow holds
// up nobody.
type buffered struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

func (b *buffered) WriteHeader(status int) { b.status = status }

func (b *buffered) Write(p []byte) (int, error) { return b.body.Write(p) }

// send sends the response.
func (b *buffered) send() {
	b.Header().Set("Content-Length", strconv.Itoa(b.body.Len()))
	if b.status != 0 {
		b.ResponseWriter.WriteHeader(b.status)
	}
	_, _ = b.ResponseWriter.Write(b.body.Bytes()) // the reader has gone
}
