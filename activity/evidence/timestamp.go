// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/smallstep/pkcs7"
)

// Timestamp is a line of the time-stamp file of a day's file. It contains a token of a time-stamping authority (RFC
// 3161). The token proves that the event Seq, and with it all earlier events, existed at the time that the token
// states.
type Timestamp struct {
	Seq   uint64 `json:"seq"`
	Hash  string `json:"hash"`  // hash of the event's line; the token confirms this hash
	Token []byte `json:"token"` // the token in DER; base64 in JSON
}

const (
	// TimestampSuffix is appended to the name of a day's file to get the name of its time-stamp file.
	TimestampSuffix = ".stamps"

	stampEvery   = time.Hour
	stampRetry   = 5 * time.Minute
	stampTimeout = 30 * time.Second
	maxToken     = 1 << 20
)

// stampWhenDue requests a time stamp for the end of the log, but only if lines were written since the last time
// stamp. An hour must have passed since the last request, or stampRetry if it failed. stampWhenDue does not wait for
// the authority's answer.
func (l *Log) stampWhenDue() {
	now := l.now()
	if l.options.Authority == "" || l.stamping || len(l.pending) > 0 || l.seq == l.stamped || now.Before(l.stampAt) && l.stampAt.Sub(now) <= stampEvery {
		return
	}
	l.stamping, l.stampAt = true, now.Add(stampEvery)
	url, name, s := l.options.Authority, filepath.Join(l.dir, fileName(l.day)+TimestampSuffix), Timestamp{Seq: l.seq, Hash: l.prev}
	l.stampers.Go(func() {
		ctx, cancel := context.WithTimeout(l.closing, stampTimeout)
		defer cancel()
		var err error
		if s.Token, err = askAuthority(ctx, url, s.Hash); err == nil {
			err = appendLine(name, s)
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.stamping = false
		if err == nil {
			l.stamped, l.stampFailed = s.Seq, false
			return
		}
		l.stampAt = l.now().Add(stampRetry)
		if l.closing.Err() == nil && !l.stampFailed {
			l.stampFailed = true
			l.trouble(&Event{Reason: NotStamped, Text: "the time-stamping authority did not send a valid time stamp (this server will ask for another one later): " + err.Error()})
		}
	})
}

func appendLine(name string, v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}

// These are the parts of RFC 3161 that this package reads and writes.
type (
	messageImprint struct {
		Algorithm pkix.AlgorithmIdentifier
		Hash      []byte
	}
	stampRequest struct {
		Version int
		Imprint messageImprint
		Nonce   *big.Int
		CertReq bool
	}
	stampResponse struct {
		Status struct {
			Status int
			Text   []string       `asn1:"optional"`
			Fail   asn1.BitString `asn1:"optional"`
		}
		Token asn1.RawValue `asn1:"optional"`
	}
	tstInfo struct {
		Version int
		Policy  asn1.ObjectIdentifier
		Imprint messageImprint
		Serial  *big.Int
		Time    time.Time `asn1:"generalized"` // all later fields are ignored
	}
)

var (
	oidSHA256  = asn1.ObjectIdentifier{2, 16, 840, 1, 101, 3, 4, 2, 1}
	oidTSTInfo = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 16, 1, 4}
)

func askAuthority(ctx context.Context, url, hash string) ([]byte, error) {
	sum, err := hex.DecodeString(hash)
	if err != nil {
		return nil, err
	}
	nonce, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 64))
	if err != nil {
		return nil, err
	}
	body, err := asn1.Marshal(stampRequest{1, messageImprint{pkix.AlgorithmIdentifier{Algorithm: oidSHA256, Parameters: asn1.NullRawValue}, sum}, nonce, true})
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/timestamp-query")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxToken))
	if err != nil {
		return nil, err
	}
	var parsed stampResponse
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", url, resp.Status)
	}
	if _, err := asn1.Unmarshal(answer, &parsed); err != nil {
		return nil, fmt.Errorf("%s: the answer is not a time stamp: %w", url, err)
	}
	if parsed.Status.Status > 1 || len(parsed.Token.FullBytes) == 0 {
		return nil, fmt.Errorf("%s: rejected with status %d %q", url, parsed.Status.Status, parsed.Status.Text)
	}
	s := Timestamp{Hash: hash, Token: parsed.Token.FullBytes}
	if _, _, err := s.Check(nil); err != nil {
		return nil, fmt.Errorf("%s: %w", url, err)
	}
	return s.Token, nil
}

// Check checks the token. It returns the time that the token proves, and the name of the authority. If roots is not
// nil, one of its certificates must have issued the authority's certificate. If roots is nil, the authority's identity
// is not proven.
func (s *Timestamp) Check(roots *x509.CertPool) (at time.Time, authority string, err error) {
	p, err := pkcs7.Parse(s.Token)
	if err != nil {
		return at, "", err
	}
	var info tstInfo
	if _, err := asn1.Unmarshal(p.Content, &info); err != nil {
		return at, "", fmt.Errorf("the time stamp cannot be read: %w", err)
	}
	var contents asn1.ObjectIdentifier
	if err := p.UnmarshalSignedAttribute(pkcs7.OIDAttributeContentType, &contents); err != nil || !contents.Equal(oidTSTInfo) {
		return at, "", errors.New("the token is not a time stamp")
	}
	if err := p.VerifyWithChainAtTime(roots, info.Time); err != nil {
		return at, "", err
	}
	signer := p.GetOnlySigner()
	switch {
	case signer == nil || !slices.Contains(signer.ExtKeyUsage, x509.ExtKeyUsageTimeStamping):
		return at, "", errors.New("the certificate may not be used for time stamps")
	case !info.Imprint.Algorithm.Algorithm.Equal(oidSHA256) || hex.EncodeToString(info.Imprint.Hash) != s.Hash:
		return at, "", errors.New("the time stamp is for other data")
	}
	return info.Time.UTC(), signer.Subject.String(), nil
}
