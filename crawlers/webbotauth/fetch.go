// SPDX-License-Identifier: Apache-2.0

package webbotauth

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// MediaType is that of key directories.
const MediaType = "application/http-message-signatures-directory+json"

// fetcher gets directories: over https, from public addresses, without proxies and
// without following redirects.
type fetcher struct {
	client  *http.Client
	allowed []netip.Prefix
}

func newFetcher(o Options) *fetcher {
	f := &fetcher{allowed: slices.Clone(o.AllowedRanges)}
	dialer := &net.Dialer{Timeout: o.Timeout, Control: f.control}
	f.client = &http.Client{
		Timeout: o.Timeout,
		Transport: &http.Transport{
			DialContext:            dialer.DialContext,
			TLSHandshakeTimeout:    o.Timeout,
			ResponseHeaderTimeout:  o.Timeout,
			MaxResponseHeaderBytes: 64 << 10,
			DisableKeepAlives:      true,
			ForceAttemptHTTP2:      true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return f
}

// control refuses addresses that a key directory has no business to be at. It sees
// the address that is connected to, so that no name can resolve around it.
func (f *fetcher) control(_, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	a := ap.Addr().Unmap().WithZone("")
	if slices.ContainsFunc(f.allowed, func(p netip.Prefix) bool { return p.Contains(a) }) || isPublic(a) {
		return nil
	}
	return fmt.Errorf("%s is no public address", a)
}

// special are ranges beside those that netip knows that are not, or may lead to
// what is not, on the public internet (IANA special-purpose registries).
var special = func() (ps []netip.Prefix) {
	for p := range strings.FieldsSeq(`0.0.0.0/8 100.64.0.0/10 192.0.0.0/24 192.0.2.0/24 192.88.99.0/24 198.18.0.0/15
		198.51.100.0/24 203.0.113.0/24 240.0.0.0/4 ::/96 64:ff9b::/96 64:ff9b:1::/48 100::/64 2001::/23
		2001:db8::/32 2002::/16 3fff::/20 5f00::/16 fec0::/10`) {
		ps = append(ps, netip.MustParsePrefix(p))
	}
	return ps
}()

func isPublic(a netip.Addr) bool {
	return a.IsGlobalUnicast() && !a.IsPrivate() && !slices.ContainsFunc(special, func(p netip.Prefix) bool { return p.Contains(a) })
}

// fetch gets the keys of a directory, and how long they may be kept.
func (f *fetcher) fetch(ctx context.Context, url string) (map[string]publicKey, time.Duration, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, 0, err
	}
	r.Header.Set("Accept", MediaType+", application/jwk-set+json;q=0.9, application/json;q=0.5")
	r.Header.Set("User-Agent", "caddy-robots-policy (keys of crawlers)")
	resp, err := f.client.Do(r)
	if err != nil {
		return nil, 0, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, 0, fmt.Errorf("status %d; only 200 counts, and redirects are not followed", resp.StatusCode)
	}
	if err := checkType(resp.Header.Get("Content-Type"), strings.HasSuffix(url, wellKnown)); err != nil {
		return nil, 0, err
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxDirectoryBytes+1))
	if err != nil {
		return nil, 0, err
	}
	if len(data) > maxDirectoryBytes {
		return nil, 0, fmt.Errorf("more than %d octets", maxDirectoryBytes)
	}
	keys, err := parseKeys(data)
	return keys, lifetime(resp.Header), err
}

// checkType accepts the directory's own type, and beside the well-known place those
// of a JWK Set.
func checkType(header string, atWellKnown bool) error {
	t, _, err := mime.ParseMediaType(header)
	switch {
	case err != nil:
		return errors.New("no media type")
	case t == MediaType, !atWellKnown && (t == "application/jwk-set+json" || t == "application/json"):
		return nil
	}
	return fmt.Errorf("the media type is %s, and not %s", t, MediaType)
}

// lifetime is how long a response may be kept (RFC 9111 section 4.2.1).
func lifetime(h http.Header) time.Duration {
	for _, line := range h["Cache-Control"] {
		for d := range strings.SplitSeq(line, ",") {
			name, value, _ := strings.Cut(strings.ToLower(strings.TrimSpace(d)), "=")
			switch name {
			case "no-store", "no-cache":
				return 0
			case "max-age":
				n, err := strconv.ParseUint(strings.Trim(value, `"`), 10, 31)
				if err == nil {
					return time.Duration(n) * time.Second
				}
			}
		}
	}
	return keepDefault
}
