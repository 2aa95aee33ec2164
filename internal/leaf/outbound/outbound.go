// SPDX-License-Identifier: Apache-2.0

// Package outbound provides HTTP clients for the program's own requests. These clients do not connect to private and
// special-purpose addresses.
package outbound

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Dialer returns a dialer that only connects to public addresses and to addresses in allowed. It checks the IP address
// of each connection and not the host name, because anyone can make a host name that resolves to an internal address.
func Dialer(timeout time.Duration, allowed []netip.Prefix) *net.Dialer {
	allowed = slices.Clone(allowed)
	return &net.Dialer{Timeout: timeout, Control: func(_, address string, _ syscall.RawConn) error {
		return check(address, allowed)
	}}
}

func check(address string, allowed []netip.Prefix) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	a := ap.Addr().Unmap().WithZone("")
	if isPublic(a) || slices.ContainsFunc(allowed, func(p netip.Prefix) bool { return p.Contains(a) }) {
		return nil
	}
	return fmt.Errorf("%s is not a public address", a)
}

// special lists address ranges from the IANA special-purpose address registries. Their addresses are not on the public
// internet, or stand for other addresses, which may be internal. For example, 64:ff9b::/96 contains an address for
// every IPv4 address.
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

// MaxAge returns how long a response may be cached according to its Cache-Control (RFC 9111 section 5.2.2.1). The age
// is 0 if Cache-Control contains no-store or no-cache. ok is false if it contains neither of these nor a valid max-age.
func MaxAge(h http.Header) (age time.Duration, ok bool) {
	for _, line := range h["Cache-Control"] {
		for directive := range strings.SplitSeq(line, ",") {
			name, value, _ := strings.Cut(strings.TrimSpace(directive), "=")
			switch strings.ToLower(name) {
			case "no-store", "no-cache":
				return 0, true
			case "max-age":
				seconds, err := strconv.ParseUint(strings.Trim(value, `"`), 10, 31)
				if err == nil || errors.Is(err, strconv.ErrRange) { // if too large, seconds is the largest number
					return time.Duration(seconds) * time.Second, true
				}
			}
		}
	}
	return 0, false
}

// Response is an HTTP response with the beginning of its body.
type Response struct {
	*http.Response
	Data []byte
}

// Get requests a URL with the header fields. It reads at most limit bytes of the body, and closes the body. If the
// status is not 200, Get ignores errors that occur while it reads the body.
func Get(ctx context.Context, client *http.Client, url string, header map[string]string, limit int64) (Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return Response{}, err
	}
	for name, value := range header {
		r.Header.Set(name, value)
	}
	resp, err := client.Do(r)
	if err != nil {
		return Response{}, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, limit))
	if err != nil && resp.StatusCode == http.StatusOK {
		return Response{}, fmt.Errorf("reading the response: %w", err)
	}
	return Response{resp, data}, nil
}

// CheckRedirect is a function for http.Client.CheckRedirect. It follows at most three redirects, and only to https
// addresses.
func CheckRedirect(r *http.Request, via []*http.Request) error {
	if len(via) > 3 || r.URL.Scheme != "https" {
		return fmt.Errorf("the server redirected to %s, but only three redirects are followed, and only to https addresses", r.URL.Redacted())
	}
	return nil
}
