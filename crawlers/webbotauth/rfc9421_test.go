// SPDX-License-Identifier: Apache-2.0

package webbotauth

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"math/big"
	"net/http"
	"strings"
	"testing"

	"github.com/dunglas/httpsfv"
)

// rfcRequest returns the request of RFC 9421 appendix B.2.
func rfcRequest() Request {
	return Request{
		Method: "POST", Scheme: "https", Host: "example.com", Target: "/foo?param=Value&Pet=dog",
		Header: http.Header{
			"Date": {"Tue, 20 Apr 2021 02:07:55 GMT"}, "Content-Type": {"application/json"}, "Content-Length": {"18"},
			"Content-Digest": {"sha-512=:WZDPaVn/7XgHaAy8pmojAkGWoRx2UFChF41A2svX+TaPm+AbwAgBWnrIiYllu7BNNyealdVLvRwEmTHWXvJwew==:"},
		},
	}
}

// proxiedRequest returns the request that the proxy in RFC 9421 appendix B.3 passes on, without the fields that no
// signature covers.
func proxiedRequest() Request {
	return Request{
		Method: "POST", Scheme: "https", Host: "service.internal.example", Target: "/foo?param=Value&Pet=dog",
		Header: http.Header{"Client-Cert": {":MIIBqDCCAU6gAwIBAgIBBzAKBggqhkjOPQQDAjA6MRswGQYDVQQKDBJMZXQncyBBdXRoZW50aWNhdGUxGzAZBgNVBAMMEkxBIEludGVybWVkaWF0ZSBDQTAeFw0yMDAxMTQyMjU1MzNaFw0yMTAxMjMyMjU1MzNaMA0xCzAJBgNVBAMMAkJDMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE8YnXXfaUgmnMtOXU/IncWalRhebrXmckC8vdgJ1p5Be5F/3YC8OthxM4+k1M6aEAEFcGzkJiNy6J84y7uzo9M6NyMHAwCQYDVR0TBAIwADAfBgNVHSMEGDAWgBRm3WjLa38lbEYCuiCPct0ZaSED2DAOBgNVHQ8BAf8EBAMCBsAwEwYDVR0lBAwwCgYIKwYBBQUHAwIwHQYDVR0RAQH/BBMwEYEPYmRjQGV4YW1wbGUuY29tMAoGCCqGSM49BAMCA0gAMEUCIBHda/r1vaL6G3VliL4/Di6YK0Q6bMjeSkC3dFCOOB8TAiEAx/kHSB4urmiZ0NX5r5XarmPk0wmuydBVoU4hBVZ1yhk=:"}},
	}
}

func mustBase64(t *testing.T, e *base64.Encoding, s string) []byte {
	t.Helper()
	b, err := e.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// holds reports whether a signature of the RFC is valid for a signature base. The label determines the key.
func holds(t *testing.T, label, base, signature string) bool {
	t.Helper()
	value := mustBase64(t, base64.StdEncoding, signature)
	switch label {
	case "sig-b21", "sig-b22", "sig-b23": // test-key-rsa-pss, B.1.2
		n := mustBase64(t, base64.StdEncoding, "r4tmm3r20Wd/PbqvP1s2+QEtvpuRaV8Yq40gjUR8y2Rjxa6dpG2GXHbPfvMs8ct+Lh1GH45x28Rw3Ry53mm+oAXjyQ86OnDkZ5N8lYbggD4O3w6M6pAvLkhk95AndTrifbIFPNU8PPMO7OyrFAHqgDsznjPFmTOtCEcN2Z1FpWgchwuYLPL+Wokqltd11nqqzi+bJ9cvSKADYdUAAN5WUtzdpiy6LbTgSxP7ociU4Tn0g5I6aDZJ7A8Lzo0KSyZYoA485mqcO0GVAdVw9lq4aOT9v6d+nb4bnNkQVklLQ3fVAvJm+xdDOp9LCNCN48V2pnDOkFV6+U9nV5oyc6XI2w==")
		sum := sha512.Sum512([]byte(base))
		key := &rsa.PublicKey{N: new(big.Int).SetBytes(n), E: 65537}
		return rsa.VerifyPSS(key, crypto.SHA512, sum[:], value, &rsa.PSSOptions{SaltLength: 64}) == nil
	case "sig-b25": // test-shared-secret, B.1.5
		mac := hmac.New(sha256.New, mustBase64(t, base64.StdEncoding, "uzvJfB4u3N0Jy4T7NZ75MDVcr8zSTInedJtkgcu46YW4XByzNJjxBdtjUkdJPBtbmHhIDi6pcl8jsasjlTMtDQ=="))
		mac.Write([]byte(base))
		return hmac.Equal(mac.Sum(nil), value)
	case "ttrp": // test-key-ecc-p256, B.1.3
		x, y := "qIVYZVLCrPZHGHjP17CTW0_-D9Lfw0EkjqF7xB4FivA", "Mc4nN9LTDOBhfoUeg8Ye9WedFRhnZXZJA12Qp0zZ6F0"
		point := append([]byte{4}, mustBase64(t, base64.RawURLEncoding, x)...)
		key, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), append(point, mustBase64(t, base64.RawURLEncoding, y)...))
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256([]byte(base))
		return ecdsa.Verify(key, sum[:], new(big.Int).SetBytes(value[:32]), new(big.Int).SetBytes(value[32:]))
	}
	return ed25519.Verify(testKey.Public().(ed25519.PublicKey), []byte(base), value) // B.1.4
}

// signatureBase returns the signature base that the package builds for a member of Signature-Input.
func signatureBase(r Request, input string) (string, error) {
	r.Header = r.Header.Clone()
	r.Header.Set("Signature-Input", input)
	m, err := parseMessage(r)
	if err != nil {
		return "", err
	}
	return m.base(member(m.input, m.input.Names()[0]).(httpsfv.InnerList))
}

// TestRFC9421Bases uses the signatures of requests in RFC 9421 appendices B.2 and B.3. For every algorithm, the package
// must build the same signature base as the authors of the RFC. Otherwise the signatures in the RFC would not match.
func TestRFC9421Bases(t *testing.T) {
	for _, c := range []struct {
		request          Request
		input, signature string
	}{
		{rfcRequest(), `sig-b21=();created=1618884473;keyid="test-key-rsa-pss";nonce="b3k2pp5k7z-50gnwp.yemd"`, "d2pmTvmbncD3xQm8E9ZV2828BjQWGgiwAaw5bAkgibUopemLJcWDy/lkbbHAve4cRAtx31Iq786U7it++wgGxbtRxf8Udx7zFZsckzXaJMkA7ChG52eSkFxykJeNqsrWH5S+oxNFlD4dzVuwe8DhTSja8xxbR/Z2cOGdCbzR72rgFWhzx2VjBqJzsPLMIQKhO4DGezXehhWwE56YCE+O6c0mKZsfxVrogUvA4HELjVKWmAvtl6UnCh8jYzuVG5WSb/QEVPnP5TmcAnLH1g+s++v6d4s8m0gCw1fV5/SITLq9mhho8K3+7EPYTU8IU1bLhdxO5Nyt8C8ssinQ98Xw9Q=="},
		{rfcRequest(), `sig-b23=("date" "@method" "@path" "@query" "@authority" "content-type" "content-digest" "content-length");created=1618884473;keyid="test-key-rsa-pss"`, "bbN8oArOxYoyylQQUU6QYwrTuaxLwjAC9fbY2F6SVWvh0yBiMIRGOnMYwZ/5MR6fb0Kh1rIRASVxFkeGt683+qRpRRU5p2voTp768ZrCUb38K0fUxN0O0iC59DzYx8DFll5GmydPxSmme9v6ULbMFkl+V5B1TP/yPViV7KsLNmvKiLJH1pFkh/aYA2HXXZzNBXmIkoQoLd7YfW91kE9o/CCoC1xMy7JA1ipwvKvfrs65ldmlu9bpG6A9BmzhuzF8Eim5f8ui9eH8LZH896+QIF61ka39VBrohr9iyMUJpvRX2Zbhl5ZJzSRxpJyoEZAFL2FUo5fTIztsDZKEgM4cUA=="},
		{rfcRequest(), `sig-b25=("date" "@authority" "content-type");created=1618884473;keyid="test-shared-secret"`, "pxcQw6G3AjtMBQjwo8XzkZf/bws5LelbaMk5rGIGtE8="},
		{rfcRequest(), `sig-b26=("date" "@method" "@path" "@authority" "content-type" "content-length");created=1618884473;keyid="test-key-ed25519"`, "wqcAqbmYJ2ji2glfAMaRy4gruYYnx2nEFN2HN6jrnDnQCK1u02Gb04v9EDgwUPiu4A0w6vuQv5lIp5WPpBKRCw=="},
		{proxiedRequest(), `ttrp=("@path" "@query" "@method" "@authority" "client-cert");created=1618884473;keyid="test-key-ecc-p256"`, "xVMHVpawaAC/0SbHrKRs9i8I3eOs5RtTMGCWXm/9nvZzoHsIg6Mce9315T6xoklyy0yzhD9ah4JHRwMLOgmizw=="},
	} {
		label, _, _ := strings.Cut(c.input, "=")
		base, err := signatureBase(c.request, c.input)
		if err != nil || !holds(t, label, base, c.signature) {
			t.Errorf("%s: %v; not signed:\n%s", label, err, base)
		}
		if holds(t, label, base+" ", c.signature) {
			t.Errorf("%s: this test cannot fail", label)
		}
		// None of the RFC's signatures has the tag that identifies a bot, so Check treats the request as unsigned.
		r := c.request
		r.Header.Set("Signature-Input", c.input)
		r.Header.Set("Signature", label+"=:"+c.signature+":")
		r.Header.Set("Signature-Agent", `a="https://bot.example"`)
		if got := fixed(1618884474, testKey).Check(t.Context(), r, "https://bot.example"); got.Status != Unsigned {
			t.Errorf("%s: %+v", label, got)
		}
	}
}

// RFC 9421 appendix B.4 lists changes that proxies may make to a request on its way to the server. After some of them,
// a signature remains valid, and after others, it is invalid.
func TestRFC9421Transformations(t *testing.T) {
	const input = `transform=("@method" "@path" "@authority" "accept");created=1618884473;keyid="test-key-ed25519"`
	const signature = "ZT1kooQsEHpZ0I1IjCqtQppOmIqlJPeo7DHR3SoMn0s5JZ1eRGS0A+vyYP9t/LXlh5QMFFQ6cpLt2m0pmj3NDA=="
	for _, c := range []struct {
		name   string
		change func(r *Request)
		want   bool
	}{
		{"none", func(*Request) {}, true},
		{"a field and a parameter of the query added", func(r *Request) {
			r.Target += "&param=added"
			r.Header.Set("Accept-Language", "en-US,en;q=0.5")
		}, true},
		{"a field removed, another added, lines combined", func(r *Request) {
			r.Header.Del("Date")
			r.Header.Set("Referer", "https://developer.example.org/demo")
			r.Header.Set("Accept", "application/json, */*")
		}, true},
		{"method and authority changed", func(r *Request) { r.Method, r.Host = "POST", "example.com" }, false},
		{"lines of a field in another order", func(r *Request) { r.Header["Accept"] = []string{"*/*", "application/json"} }, false},
		{"a line of a field removed", func(r *Request) { r.Header["Accept"] = r.Header["Accept"][:1] }, false},
		{"another path", func(r *Request) { r.Target = "/Demo" }, false},
	} {
		r := Request{
			Method: "GET", Scheme: "https", Host: "example.org", Target: "/demo?name1=Value1&Name2=value2",
			Header: http.Header{"Date": {"Fri, 15 Jul 2022 14:24:55 GMT"}, "Accept": {"application/json", "*/*"}},
		}
		c.change(&r)
		base, err := signatureBase(r, input)
		if err != nil || holds(t, "transform", base, signature) != c.want {
			t.Errorf("%s: %v, want %v:\n%s", c.name, err, c.want, base)
		}
	}
}

// TestRFC9421Components compares the values of components with the examples of RFC 9421 sections 2.1 and 2.2.
func TestRFC9421Components(t *testing.T) {
	plain := Request{Method: "POST", Scheme: "https", Host: "www.example.com", Target: "/path?param=value&foo=bar&baz=batman&qux=", Header: http.Header{
		"Date": {"Tue, 20 Apr 2021 02:07:56 GMT"}, "X-Ows-Header": {"   Leading and trailing whitespace.   "}, "X-Empty-Header": {""},
		"Cache-Control": {"max-age=60", "   must-revalidate"}, "Example-Dict": {" a=1,    b=2;x=1;y=2,   c=(a   b   c), d"},
	}}
	bare := plain
	bare.Target = "?queryString"
	for _, c := range []struct {
		request         Request
		component, want string // want is empty for an error
	}{
		{plain, `"date"`, "Tue, 20 Apr 2021 02:07:56 GMT"},
		{plain, `"x-ows-header"`, "Leading and trailing whitespace."},
		{plain, `"cache-control"`, "max-age=60, must-revalidate"},
		{plain, `"example-dict"`, "a=1,    b=2;x=1;y=2,   c=(a   b   c), d"},
		{plain, `"example-dict";key="a"`, "1"},
		{plain, `"example-dict";key="b"`, "2;x=1;y=2"},
		{plain, `"example-dict";key="c"`, "(a b c)"},
		{plain, `"example-dict";key="d"`, "?1"},
		{plain, `"example-dict";key="e"`, ""},
		{plain, `"@method"`, "POST"},
		{plain, `"@target-uri"`, "https://www.example.com/path?param=value&foo=bar&baz=batman&qux="},
		{plain, `"@authority"`, "www.example.com"},
		{plain, `"@scheme"`, "https"},
		{plain, `"@request-target"`, "/path?param=value&foo=bar&baz=batman&qux="},
		{plain, `"@path"`, "/path"},
		{plain, `"@query"`, "?param=value&foo=bar&baz=batman&qux="},
		{bare, `"@query"`, "?queryString"},
		{bare, `"@path"`, "/"},
		{plain, `"@query-param";name="baz"`, ""}, // not supported, because no known crawler covers this component
		{plain, `"@status"`, ""},
		{plain, `"@method";req`, ""},
		{plain, `"date";bs`, ""},
		{plain, `"date";sf`, ""},
		{plain, `"date";tr`, ""},
		{plain, `"Date"`, ""},
		{plain, `"x-none"`, ""},
	} {
		base, err := signatureBase(c.request, `sig=(`+c.component+`)`)
		if want := c.component + ": " + c.want + "\n" + `"@signature-params": (` + c.component + ")"; (err != nil) != (c.want == "") || err == nil && base != want {
			t.Errorf("%s: %v\n%s", c.component, err, base)
		}
	}
	// A covered field may have an empty value, but must not be missing.
	if base, err := signatureBase(plain, `sig=("x-empty-header")`); err != nil || !strings.HasPrefix(base, `"x-empty-header": `+"\n") {
		t.Errorf("%v\n%s", err, base)
	}
}
