// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

const chromeAgent = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36"

// npmSigner signs requests with another implementation of Web Bot Auth, the npm
// package web-bot-auth.
type npmSigner struct {
	t   *testing.T
	jwk string // the private key
}

// newNPMSigner returns a signer. It skips the test if the package is not installed in the directory that NODE_PATH
// names.
func newNPMSigner(t *testing.T, s *signer) *npmSigner {
	t.Helper()
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("NOT TESTED: node is not installed")
	}
	if out, err := exec.Command("node", "-e", `require("web-bot-auth")`).CombinedOutput(); err != nil {
		t.Skipf("NOT TESTED: npm install web-bot-auth@0.1.3, and set NODE_PATH: %.200s", out)
	}
	d := base64.RawURLEncoding.EncodeToString(s.key.Seed())
	return &npmSigner{t, `{"kty":"OKP","crv":"Ed25519","x":"` + s.x() + `","d":"` + d + `"}`}
}

const signScript = `
const { signatureHeaders } = require("web-bot-auth");
const { signerFromJWK } = require("web-bot-auth/crypto");
(async () => {
	const [url, agent, jwk] = process.argv.slice(1);
	const now = new Date();
	const headers = { "Signature-Agent": agent };
	const signed = await signatureHeaders({ method: "GET", url, headers }, await signerFromJWK(JSON.parse(jwk)),
		{ created: now, expires: new Date(now.getTime() + 60000) });
	console.log(JSON.stringify({ ...headers, ...signed }));
})();
`

// sign returns the header fields of a signed request for a URL, as names and values.
func (n *npmSigner) sign(url, agent string) (fields []string) {
	n.t.Helper()
	cmd := exec.Command("node", "-e", signScript, url, agent, n.jwk)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		n.t.Fatal(err)
	}
	headers := map[string]string{}
	if err := json.Unmarshal(out, &headers); err != nil {
		n.t.Fatalf("%v: %s", err, out)
	}
	for name, value := range headers {
		fields = append(fields, name, value)
	}
	return fields
}

const recognizedBody = `
	robots_policy POLICY {
		verify VERIFY
		verify_from 127.0.0.0/8
	}
	header >X-Crawler "{http.robots_policy.crawler} {http.robots_policy.identity}"
	reverse_proxy UPSTREAM`

// takenFor returns the status of a request and the crawler that the server recognized.
func (s *server) takenFor(path string, header ...string) (int, string) {
	s.t.Helper()
	r := s.get(path, append([]string{"User-Agent", chromeAgent}, header...)...)
	return r.StatusCode, strings.TrimSpace(r.Header.Get("X-Crawler"))
}

// A request with an operator's signature is recognized as a request of the operator's crawler, whatever User-Agent it
// has.
func TestSignatureFirst(t *testing.T) {
	own, other := newSigner(t), newSigner(t)
	d := startDirectory(t, own.serve)
	npm := newNPMSigner(t, own)
	s := startLogged(t, `version: 1
crawlers:
  ChatGPT-User: {signature-directory: "`+d.url+`"}
rules:
  - for: everyone
    disallow: {crawl: [/members/, /closed/]}
    enforce: block
  - for: ChatGPT-User
    identity: verified
    allow: {crawl: /members/}
`, htmlUpstream(page("")), strings.ReplaceAll(recognizedBody, "VERIFY", "signatures"))
	now := time.Now()
	tries := 0
	eventually(t, "the signature is verified", func() bool {
		tries++
		_, crawler := s.takenFor("/", own.sign(s.addr, d.url, now, now.Add(time.Minute), fmt.Sprint("try", tries))...)
		return crawler == "ChatGPT-User verified"
	})
	base := "http://" + s.addr
	quoted := `"` + d.url + `"`
	for _, c := range []struct {
		name, path string
		fields     []string
		status     int
		crawler    string
	}{
		{"signed by npm, open to it alone", "/members/", npm.sign(base+"/members/", quoted), 200, "ChatGPT-User verified"},
		{"signed by npm, closed", "/closed/", npm.sign(base+"/closed/", quoted), 403, ""},
		{"signed here", "/members/", own.sign(s.addr, d.url, now, now.Add(time.Minute), "a"), 200, "ChatGPT-User verified"},
		{"unsigned", "/closed/", nil, 200, ""},
		{"signed for another site", "/closed/", npm.sign("http://other.example/closed/", quoted), 200, ""},
		{"signed by another key", "/closed/", other.sign(s.addr, d.url, now, now.Add(time.Minute), "b"), 200, ""},
		{"of another directory", "/closed/", other.sign(s.addr, "https://evil.example", now, now.Add(time.Minute), "c"), 200, ""},
	} {
		status, crawler := s.takenFor(c.path, c.fields...)
		if status != c.status || status == 200 && crawler != c.crawler {
			t.Errorf("%s: %d %q, want %d %q", c.name, status, crawler, c.status, c.crawler)
		}
	}
	// The signature decides even if the User-Agent names another crawler.
	fields := append(own.sign(s.addr, d.url, now, now.Add(time.Minute), "d"), "User-Agent", "GPTBot/1.2")
	if r := s.get("/members/", fields...); r.StatusCode != 200 || r.Header.Get("X-Crawler") != "ChatGPT-User verified" {
		t.Errorf("as another crawler: %s %q", r.Status, r.Header.Get("X-Crawler"))
	}
}

// If an address is on the address list of only one crawler, a request from it is recognized as a request of this
// crawler, whatever its User-Agent is. This applies as long as the list is fresh.
func TestAddressFirst(t *testing.T) {
	if testing.Short() {
		t.Skip("lists are first fetched after a second")
	}
	mux := http.NewServeMux()
	for name, text := range map[string]string{
		"json": `{"creationTime":"2026-11-20T00:00:00Z","prefixes":[{"ipv4Prefix":"20.0.0.0/24"},{"ipv6Prefix":"2a00:1::/48"}]}`,
		"text": "20.0.1.0/24 # comment\n20.0.9.7\n",
		"csv":  "20.0.2.0/24,IE,IE-D,Dublin,\n20.0.3.0/24,US,,,\n",
		"pair": "20.0.3.0/24\n20.0.4.0/24\n",
		"both": "20.0.5.0/24\n",
	} {
		mux.HandleFunc("/"+name, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text)) })
	}
	addr, err := listServer(t, "127.0.0.1:0", mux)
	if err != nil {
		t.Fatal(err)
	}
	list := func(name string) string { return `"https://` + addr + "/" + name + `"` }
	s := startLogged(t, `version: 1
crawlers:
  OwnBot: {category: search, address-lists: `+list("json")+`}
  TextBot: {category: search, address-lists: `+list("text")+`}
  FeedBot: {category: search, address-lists: `+list("csv")+`}
  PairBot: {category: search, address-lists: `+list("pair")+`}
  FirstBot: {category: search, address-lists: `+list("both")+`}
  SecondBot: {category: search, address-lists: `+list("both")+`}
rules:
  - for: [OwnBot, TextBot]
    disallow: {crawl: /closed/}
    enforce: block
    intended: true
`, htmlUpstream(page("")), strings.ReplaceAll(recognizedBody, "VERIFY", "lists"))
	from := func(client string) string {
		_, crawler := s.takenFor("/", "X-Forwarded-For", client)
		return crawler
	}
	if got := from("20.0.0.1"); got != "" {
		t.Errorf("before the list is fetched: %q", got)
	}
	deadline := time.Now().Add(60 * time.Second)
	for from("20.0.0.1") == "" || from("20.0.1.1") == "" || from("20.0.2.1") == "" || from("20.0.4.1") == "" {
		if time.Now().After(deadline) {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	for client, want := range map[string]string{
		"20.0.0.1": "OwnBot verified", "2a00:1::7": "OwnBot verified", "20.0.1.1": "TextBot verified", "20.0.9.7": "TextBot verified",
		"20.0.2.1": "FeedBot verified", "20.0.4.1": "PairBot verified",
		"20.0.3.1": "", // on the lists of two crawlers
		"20.0.5.1": "", // on a list that two crawlers share
		"20.0.9.8": "", "203.0.113.1": "", "127.0.0.1": "",
	} {
		if got := from(client); got != want {
			t.Errorf("%s: %q, want %q", client, got, want)
		}
	}
	if status, _ := s.takenFor("/closed/", "X-Forwarded-For", "20.0.0.1"); status != 403 {
		t.Errorf("the crawler behind a browser's User-Agent: %d", status)
	}
	if status, _ := s.takenFor("/closed/", "X-Forwarded-For", "20.0.9.8"); status != 200 {
		t.Errorf("a browser: %d", status)
	}
}
