// SPDX-License-Identifier: Apache-2.0

package crawlers

import (
	"cmp"
	_ "embed"
	"net/http"
	"slices"
	"strings"
	"sync"
	"unicode"
)

// Automated reports whether a User-Agent probably comes from an automated client. name is the name of the client, taken
// from the User-Agent. Callers count the requests of the client under this name. Automated does not use the catalog. A
// client is automated if one of these rules applies:
//
//   - There is no User-Agent. In this case, the name is "(none)".
//   - The User-Agent begins with the name of an HTTP library or a command-line client.
//   - A word in the User-Agent is the name of an automated client, such as MyCrawler, examplebot or HeadlessChrome.
//   - The User-Agent contains an address of the operator: a URL or an e-mail address.
//   - The User-Agent does not begin like a browser's, and contains one of the names in automatons.
//
// The result is a guess that is good enough for counting. It never blocks a client.
func Automated(ua string) (name string, ok bool) {
	ua = strings.TrimSpace(ua)
	if ua == "" || ua == "-" {
		return "(none)", true
	}
	if len(ua) > maxAutomated {
		ua = ua[:maxAutomated]
	}
	if !hasClue(ua) {
		return "", false
	}
	return automated(ua)
}

func automated(ua string) (name string, ok bool) {
	if first := product(ua); first != "" && isLibrary(first) {
		return printable(first), true
	}
	for i := 0; i < len(ua); {
		if !isNameByte(ua[i]) {
			i++
			continue
		}
		word := product(ua[i:])
		if saysAutomated(word) && !insideURL(ua, i) {
			return printable(word), true
		}
		i += len(word)
	}
	if namesContact(ua) {
		return printable(nameBeforeContact(ua)), true
	}
	if strings.HasPrefix(ua, browserProduct) {
		return "", false
	}
	return automaton(ua)
}

// browserProduct is the first part of the User-Agents of browsers.
const browserProduct = "Mozilla/"

// clues holds three consecutive letters from each word that saysAutomated looks for. The User-Agents of browsers do not
// contain these sequences.
var clues = [...]string{"bot", "awl", "pid", "scr", "dle", "mjs", "upp", "ywr", "niu", "hth", "tch", "nit", "cke", "hiv", "xer"}

var clueBits = func() (set [64]uint64) {
	for _, c := range clues {
		k := clueKey(uint32(c[0]&0x1f)<<10 | uint32(c[1]&0x1f)<<5 | uint32(c[2]&0x1f))
		set[k/64] |= 1 << (k % 64)
	}
	return
}()

// clueKey returns a hash of three letters, which is less than 4096. letters has five bits for each letter, so the case
// of the letters does not change the hash.
func clueKey(letters uint32) uint32 { return letters * 0x9e3779b1 >> 20 }

// hasClue is a fast check before the complete check. If it returns false, the User-Agent does not belong to an
// automated client. It returns true if the User-Agent does not begin like a browser's, or contains three consecutive
// letters from clues. It also returns true if an address may follow, after characters such as "@" or "//".
func hasClue(ua string) bool {
	if !strings.HasPrefix(ua, browserProduct) {
		return true
	}
	letters := uint32(0)
	for i := len(browserProduct); i < len(ua); i++ {
		c := ua[i]
		if c == '@' || c == '+' || c == '/' && ua[i-1] == '/' { // maybe the operator's address
			return true
		}
		letters = (letters<<5 | uint32(c&0x1f)) & 0x7fff
		if k := clueKey(letters); clueBits[k/64]>>(k%64)&1 != 0 && isClue(ua[i-2:]) {
			return true
		}
	}
	return false
}

func isClue(s string) bool {
	for _, c := range clues {
		if fold[s[0]] == c[0] && fold[s[1]] == c[1] && fold[s[2]] == c[2] {
			return true
		}
	}
	return false
}

// printable removes characters that control how text is displayed. With such characters, one name could look like
// another name.
func printable(name string) string {
	name = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, name)
	return cmp.Or(name, "(not printable)")
}

// AutomatedRequest is like [Automated], but examines all headers of a request. A request with a Signature-Agent header
// is automated, even if its User-Agent looks like a browser's. For such a request, name is the host in that header, or
// "(signed)" if the header contains no host. AutomatedRequest does not verify the signature, so any client can name any
// host.
func AutomatedRequest(h http.Header) (name string, ok bool) {
	if agents := h["Signature-Agent"]; len(agents) > 0 {
		return agentHost(agents[0]), true
	}
	return Automated(h.Get("User-Agent"))
}

// agentHost returns the host of the first address in a Signature-Agent header.
func agentHost(agent string) string {
	_, rest, _ := strings.Cut(agent, "://")
	end := 0
	for end < min(len(rest), maxHost) && (isNameByte(rest[end]) && rest[end] < 0x80) {
		end++
	}
	if end == 0 {
		return "(signed)"
	}
	return strings.ToLower(rest[:end])
}

// maxHost is the maximum length of a host name.
const maxHost = 253

// maxAutomated limits how many bytes of a User-Agent are examined.
const maxAutomated = 512

// isNameByte reports whether c can be part of a product's name.
func isNameByte(c byte) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.' || c >= 0x80
}

// product returns the product name at the beginning of a User-Agent, without the version.
func product(ua string) string {
	end := 0
	for end < len(ua) && isNameByte(ua[end]) {
		end++
	}
	return ua[:end]
}

// libraries lists HTTP libraries and command-line clients, in lower case. The list does not contain libraries of phone
// apps (okhttp, CFNetwork, Dart), because a person uses such an app.
var libraries = []string{
	"aiohttp", "apache-httpclient", "axios", "bun", "colly", "commons-httpclient", "curb", "curl", "deno",
	"faraday", "fasthttp", "go-http-client", "go-resty", "got", "gotenberg", "guzzlehttp", "httpie", "httpx",
	"hyper", "java", "java-http-client", "jsoup", "lib-www-perl", "libcurl-agent", "libwww-perl", "lua-resty-http", "lwp",
	"lwp-trivial", "mechanize", "node", "node-fetch", "node.js", "perl", "php", "postmanruntime", "powershell",
	"python", "python-httpx", "python-requests", "python-urllib", "python-urllib3", "reqwest", "rest-client", "restsharp", "ruby",
	"rust", "scrapy", "symfony", "typhoeus", "undici", "ureq", "urllib", "vertx-webclient", "wget",
	"winhttp", "wininet",
}

func isLibrary(name string) bool {
	_, found := slices.BinarySearch(libraries, strings.ToLower(name))
	return found
}

// saysAutomated reports whether a word of a User-Agent names an automated client.
func saysAutomated(word string) bool {
	w := strings.ToLower(word)
	switch {
	case strings.HasPrefix(w, "cubot"): // a brand of phones
		return false
	case strings.HasPrefix(w, "headless"), strings.Contains(w, "phantomjs"), strings.Contains(w, "puppeteer"), strings.Contains(w, "playwright"), strings.Contains(w, "selenium"), w == "lighthouse", w == "chrome-lighthouse":
		return true
	case strings.Contains(w, "crawl"), strings.Contains(w, "spider"), strings.Contains(w, "scrap"):
		return true
	case strings.HasSuffix(w, "fetcher"), strings.HasSuffix(w, "monitor"), strings.HasSuffix(w, "checker"), strings.HasSuffix(w, "archiver"), strings.HasSuffix(w, "indexer"):
		return true
	}
	for rest := w; ; {
		i := strings.Index(rest, "bot")
		if i < 0 {
			return false
		}
		rest = rest[i+3:]
		if rest == "" || rest == "s" || rest[0] < 'a' || rest[0] > 'z' {
			return true
		}
	}
}

// insideURL reports whether the word at i is part of a URL.
func insideURL(ua string, i int) bool {
	start := strings.LastIndexAny(ua[:i], " ;,()\"'") + 1
	return strings.Contains(ua[start:i], "://")
}

// namesContact reports whether a User-Agent has a URL or an e-mail address.
func namesContact(ua string) bool {
	if strings.Contains(ua, "http://") || strings.Contains(ua, "https://") || strings.Contains(ua, "+www.") {
		return true
	}
	at := strings.IndexByte(ua, '@')
	if at <= 0 || at+1 == len(ua) || !isNameByte(ua[at-1]) {
		return false
	}
	host := strings.Trim(product(ua[at+1:]), ".")
	i := strings.LastIndexByte(host, '.')
	return i > 0 && host[i+1]|0x20 >= 'a' && host[i+1]|0x20 <= 'z' // "name@150.0.0.0" is a version
}

// nameBeforeContact returns the name of the client from a User-Agent that contains a URL or an e-mail address. The name
// is the last product that has a version, is not a product of browsers, and is in front of the address. If there is no
// such product, the name is the first product of the User-Agent, or "(unnamed)".
func nameBeforeContact(ua string) string {
	end := len(ua)
	for _, mark := range []string{"http://", "https://", "+www.", "@"} {
		if i := strings.Index(ua, mark); i >= 0 {
			end = min(end, i)
		}
	}
	name := product(ua)
	for i := 0; i < end; {
		if !isNameByte(ua[i]) {
			i++
			continue
		}
		word := product(ua[i:end])
		if next := i + len(word); next < end && ua[next] == '/' && !isPlatform(word) {
			name = word
		}
		i += len(word)
		for i < end && ua[i] != ' ' && ua[i] != ';' && ua[i] != '(' {
			i++ // skips the version
		}
	}
	if name == "" {
		return "(unnamed)"
	}
	return name
}

// isPlatform reports whether product, in any letter case, is part of the User-Agents of browsers.
func isPlatform(product string) bool {
	switch strings.ToLower(product) {
	case "mozilla", "applewebkit", "chrome", "safari", "gecko", "firefox", "version", "mobile", "khtml", "opera", "edg", "presto":
		return true
	}
	return false
}

// automatons lists automated programs that the other rules of [Automated] do not detect, with one name on each line.
// These programs are tools, services that send requests for their customers, and crawlers about which nothing is
// published.
//
//go:embed automatons.txt
var automatons string

var recognizeAutomatons = sync.OnceValues(func() (*Recognizer, []string) {
	names := strings.Split(strings.TrimSpace(automatons), "\n")
	patterns := make([]Pattern, len(names))
	for i, name := range names {
		patterns[i] = Pattern{name, i}
	}
	return NewRecognizer(patterns), names
})

// automaton returns the name in automatons that a User-Agent contains. If the User-Agent contains "webhook" or another
// word that only programs use, automaton returns the first product of the User-Agent instead, or "(unnamed)".
func automaton(ua string) (name string, ok bool) {
	for _, word := range []string{"webhook", "-hook", "nutch-"} {
		if strings.Contains(strings.ToLower(ua), word) {
			return cmp.Or(product(ua), "(unnamed)"), true
		}
	}
	r, names := recognizeAutomatons()
	i, ok := r.Recognize(ua)
	if !ok {
		return "", false
	}
	return strings.TrimRight(names[i], "-*"), true
}
