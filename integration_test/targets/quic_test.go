// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/quic-go/qpack"
	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/quicvarint"
)

// certificate writes a certificate for localhost and its key, in the format of Caddy's "tls" directive.
func certificate(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"}, NotAfter: time.Now().Add(48 * time.Hour)}
	cert, err := x509.CreateCertificate(rand.Reader, &template, &template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	names := [2]string{filepath.Join(t.TempDir(), "cert.pem"), filepath.Join(t.TempDir(), "key.pem")}
	for i, block := range []pem.Block{{Type: "CERTIFICATE", Bytes: cert}, {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(names[i], pem.EncodeToMemory(&block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return "tls " + names[0] + " " + names[1]
}

// Frames of HTTP/3 (RFC 9114 section 7.2).
const (
	dataFrame    = 0x0
	headersFrame = 0x1
)

func dialQUIC(ctx context.Context, addr string) (*quic.Conn, error) {
	conn, err := quic.DialAddr(ctx, addr, &tls.Config{ServerName: "localhost", NextProtos: []string{"h3"}, InsecureSkipVerify: true}, nil)
	if err != nil {
		return nil, err
	}
	control, err := conn.OpenUniStream()
	if err == nil {
		_, err = control.Write([]byte{0x0, 0x4, 0x0}) // the type of the stream, and an empty SETTINGS frame
	}
	return conn, err
}

// three sends a request over HTTP/3.
func (w *wire) three(r request) (response, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if w.h3 == nil {
		conn, err := dialQUIC(ctx, w.quic)
		if err != nil {
			return response{}, err
		}
		w.h3 = conn
	}
	stream, err := w.h3.OpenStreamSync(ctx)
	if err != nil {
		return response{}, err
	}
	_ = stream.SetDeadline(time.Now().Add(30 * time.Second))
	var block bytes.Buffer
	encoder := qpack.NewEncoder(&block)
	for _, f := range r.fields("https") {
		_ = encoder.WriteField(qpack.HeaderField{Name: f[0], Value: f[1]})
	}
	frame := quicvarint.Append([]byte{headersFrame}, uint64(block.Len()))
	if _, err = stream.Write(append(frame, block.Bytes()...)); err == nil {
		err = stream.Close()
	}
	var resp response
	if err == nil {
		resp, err = answerOf(quicvarint.NewReader(stream))
	}
	var reset *quic.StreamError
	if errors.As(err, &reset) {
		return response{}, errReset
	}
	return resp, err
}

// answerOf reads the frames of a stream.
func answerOf(in quicvarint.Reader) (resp response, err error) {
	resp.header = http.Header{}
	for {
		kind, err := quicvarint.Read(in)
		if err == io.EOF && resp.status != 0 {
			return resp, nil
		}
		if err != nil {
			return resp, err
		}
		n, err := quicvarint.Read(in)
		if err != nil {
			return resp, err
		}
		content := make([]byte, n)
		if _, err := io.ReadFull(in, content); err != nil {
			return resp, err
		}
		switch kind {
		case dataFrame:
			resp.body += string(content)
		case headersFrame:
			next := qpack.NewDecoder().Decode(content)
			for {
				field, err := next()
				if err == io.EOF {
					break
				}
				if err != nil {
					return resp, err
				}
				if field.Name == ":status" {
					if _, err := fmt.Sscan(field.Value, &resp.status); err != nil {
						return resp, err
					}
					continue
				}
				resp.header.Add(field.Name, field.Value)
			}
		}
	}
}
