// SPDX-License-Identifier: Apache-2.0

package accesslog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

func caddyFormat() Parser {
	p, err := ParseFormat("caddy")
	if err != nil {
		panic(err)
	}
	return p
}

func show(r *Record) string {
	at := "-"
	if !r.Time.IsZero() {
		at = r.Time.UTC().Format("2006-01-02T15:04:05.999Z")
	}
	return fmt.Sprintf("%s %s host=%q %q ua=%q %d identity=%q", at, r.ClientIP, r.Host, r.Target, r.UserAgent, r.Bytes, r.Identity)
}

const caddyLine = `{"level":"info","ts":1795340096.123456,"logger":"http.log.access.log0","msg":"handled request","request":{"remote_ip":"10.0.0.1","remote_port":"41342","client_ip":"192.0.2.7","proto":"HTTP/2.0","method":"GET","host":"www.example.com","uri":"/a%20b?c=\"d\"&e=\u00e9\ud83d\ude00","headers":{"Accept":["*/*"],"User-Agent":["Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot)","second"]},"tls":{"resumed":false,"version":772,"cipher_suite":4865,"proto":"h2","server_name":"www.example.com"}},"bytes_read":0,"user_id":"","duration":0.000929675,"size":10900,"status":200,"resp_headers":{"Server":["Caddy"],"X":["}\"]{"]},"robots_policy":{"crawler":"GPTBot","identity":"verified","decision":"allowed"}}`

func TestParse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, format, line, want string }{
		{
			"Caddy", "caddy", caddyLine,
			`2026-11-22T09:34:56.123Z 192.0.2.7 host="www.example.com" "/a%20b?c=\"d\"&e=é😀" ua="Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot)\nsecond" 10900 identity="verified"`,
		},
		{
			"Caddy, an older version, another time format", "caddy", `{"ts":"2026-11-22T10:00:00.5+01:00","request":{"remote_ip":"192.0.2.7","method":"HEAD","host":"h:8080","uri":"/","headers":{}},"status":404}`,
			`2026-11-22T09:00:00.5Z 192.0.2.7 host="h:8080" "/" ua="" 0 identity=""`,
		},
		{
			"Caddy, the connection's address after the client's", "caddy", `{"ts":1795340096,"request":{"client_ip":"192.0.2.7","remote_ip":"10.0.0.1","uri":"/"}}`,
			`2026-11-22T09:34:56Z 192.0.2.7 host="" "/" ua="" 0 identity=""`,
		},
		{"Caddy, wall clock in milliseconds", "caddy", `{"ts":1795340096123,"request":{"uri":"/"}}`, `2026-11-22T09:34:56.123Z  host="" "/" ua="" 0 identity=""`},
		{
			"Combined", "combined", `192.0.2.7 - frank [22/Nov/2026:10:34:56 +0100] "GET /a?b HTTP/1.1" 200 2326 "https://example.com/" "Mozilla/5.0 \"quoted\" \x22hex\x22"`,
			`2026-11-22T09:34:56Z 192.0.2.7 host="" "/a?b" ua="Mozilla/5.0 \"quoted\" \"hex\"" 2326 identity=""`,
		},
		{
			"Combined without User-Agent and body", "combined", `2001:db8::1 - - [22/Nov/2026:09:34:56 +0000] "GET / HTTP/2.0" 304 - "-" "-"`,
			`2026-11-22T09:34:56Z 2001:db8::1 host="" "/" ua="" 0 identity=""`,
		},
		{
			"Common", "common", `192.0.2.7 - - [22/Nov/2026:09:34:56 +0000] "POST /x y HTTP/1.0" 500 12`,
			`2026-11-22T09:34:56Z 192.0.2.7 host="" "/x y" ua="" 12 identity=""`,
		},
		{
			"with the virtual host", "vhost_combined", `www.example.com:443 192.0.2.7 - - [22/Nov/2026:09:34:56 +0000] "GET / HTTP/1.1" 200 1 "-" "curl/8"`,
			`2026-11-22T09:34:56Z 192.0.2.7 host="www.example.com" "/" ua="curl/8" 1 identity=""`,
		},
		{
			"nginx log_format", `${host}|$remote_addr|$time_iso8601|$request_method $request_uri|$status|$body_bytes_sent|"$http_user_agent"|$request_time`,
			`www.example.com|192.0.2.7|2026-11-22T09:34:56+00:00|GET /a?b|200|7|"a \x22b\x22|c"|0.001`,
			`2026-11-22T09:34:56Z 192.0.2.7 host="www.example.com" "/a?b" ua="a \"b\"|c" 7 identity=""`,
		},
		{
			"nginx log_format escape=json", `$remote_addr [$time_local] "$request" $status $body_bytes_sent "$http_user_agent"`,
			`192.0.2.7 [22/Nov/2026:09:34:56 +0000] "GET /\u0001\/\xe9 HTTP/1.1" 200 7 "a \u0022b\u0022 \ud83d\ude00 \ud83d \q \u12 \x1"`,
			`2026-11-22T09:34:56Z 192.0.2.7 host="" "/\x01/\xe9" ua="a \"b\" 😀 � \\q \\u12 \\x1" 7 identity=""`,
		},
		{
			"Apache LogFormat", `%v %h %l %u %{sec}t "%r" %>s %b "%{User-Agent}i"`, `h:80 192.0.2.7 - - 1795340096 "GET /a HTTP/1.1" 200 7 "x \"y\""`,
			`2026-11-22T09:34:56Z 192.0.2.7 host="h:80" "/a" ua="x \"y\"" 7 identity=""`,
		},
		{"Apache LogFormat without a request", `%h %t "%{User-Agent}i"`, "", `invalid format "%h %t \"%{User-Agent}i\"": it lacks the request ("$request" in nginx, "%r" in Apache)`},
		{"no text between fields", `$remote_addr$time_local`, "", `invalid format "$remote_addr$time_local": write text between any two fields`},
		{"no time", `$remote_addr "$request" "$http_user_agent"`, "", `invalid format "$remote_addr \"$request\" \"$http_user_agent\"": it lacks the time ($time_local in nginx, %t in Apache)`},
		{"no name", `$ ${time_local} "$request" "$http_user_agent"`, "", `invalid format "$ ${time_local} \"$request\" \"$http_user_agent\"": a $ must be followed by the name of a variable, such as $host or ${host}`},
		{"unknown name", "nginx", "", `invalid format "nginx": must be json, common, combined, vhost_combined, alb, a LogFormat of Apache, or a log_format of nginx, such as '$remote_addr [$time_local] "$request" $status "$http_user_agent"'`},
		{"not JSON", "caddy", `192.0.2.7 - -`, errNoJSON.Error()},
		{"JSON that is cut", "caddy", caddyLine[:len(caddyLine)-30], errJSON.Error()},
		{"another logger's line", "caddy", `{"ts":1795340096,"logger":"tls","msg":"x"}`, errNoRequest.Error()},
		{"no time in the line", "caddy", `{"request":{"uri":"/"}}`, errNoTime.Error()},
		{"a TLS handshake sent to a plain port", "combined", `192.0.2.7 - - [22/Nov/2026:09:34:56 +0000] "\x16\x03\x01" 400 150 "-" "-"`, errNoRequest.Error()},
		{"too short", "combined", `192.0.2.7 - - [22/Nov/2026:09:34:56 +0000]`, `the line ends before field 4 of the format combined`},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := ParseFormat(c.format)
			got := ""
			if err == nil {
				var r Record
				if err = p.Clone().Parse([]byte(c.line), &r); err == nil {
					got = show(&r)
				}
			}
			if err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestFieldsOfOurs(t *testing.T) {
	t.Parallel()
	p, err := ParseFormat("caddy")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ line, crawler, identity, unsigned string }{
		{caddyLine, "GPTBot", "verified", "true"},
		{`{"ts":1,"request":{"uri":"/","headers":{"User-Agent":["x"],"Signature-Input":["sig1=()"]}}}`, "", "", "false"},
		{`{"ts":1,"request":{"uri":"/"}}`, "", "", "false"}, // the log has no header fields, so it is not known whether the request was signed
	} {
		var r Record
		if err := p.Parse([]byte(c.line), &r); err != nil {
			t.Fatal(err)
		}
		if string(r.Crawler) != c.crawler || string(r.Identity) != c.identity || fmt.Sprint(r.Unsigned) != c.unsigned {
			t.Errorf("%s:\n%s %s unsigned %v", c.line, r.Crawler, r.Identity, r.Unsigned)
		}
	}
}

func TestReadFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var text bytes.Buffer
	const lines = 30_000 // several chunks
	for i := range lines {
		fmt.Fprintf(&text, `{"ts":%d.5,"request":{"uri":"/%d","host":"h"},"status":200}`+"\n", 1795340096+i, i)
	}
	text.WriteString("no JSON\n\n")
	text.WriteString(`{"ts":1,"request":{"uri":"` + strings.Repeat("x", 3*chunkSize) + `"}}` + "\n")
	text.WriteString(`{"ts":1795340096,"request":{"uri":"/last"}}`) // without a line end
	packed := map[string][]byte{"plain.log": text.Bytes()}
	var z bytes.Buffer
	gz := gzip.NewWriter(&z)
	_, _ = gz.Write(text.Bytes())
	_ = gz.Close()
	packed["rotated.log.1"] = z.Bytes()
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	packed["rotated.log.2"] = enc.EncodeAll(text.Bytes(), nil)
	for name, data := range packed {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	files, err := Expand([]string{filepath.Join(dir, "plain.log"), filepath.Join(dir, "rotated.*")})
	if err != nil || len(files) != 3 {
		t.Fatal(files, err)
	}
	const workers = 3
	var sums [workers]int64
	res, err := Reading{Workers: workers, Stdin: bytes.NewReader(text.Bytes())}.Read(t.Context(), append(files, Stdin),
		func(w int, r *Record) { sums[w] += r.Time.Unix() })
	if err != nil {
		t.Fatal(err)
	}
	want, got := int64(0), int64(0)
	for i := range lines {
		want += 4 * int64(1795340096+i)
	}
	want += 4 * 1795340096
	for _, s := range sums {
		got += s
	}
	if got != want || res.Bad != 4 || res.Other != 4 || res.Lines != 4*(lines+3) {
		t.Errorf("sum %d, want %d; %+v", got, want, res)
	}
	if len(res.Gaps) != 8 { // two gaps for each file: unreadable lines, and missing User-Agents
		t.Errorf("%+v", res.Gaps)
	}
	for _, c := range []struct{ name, want string }{
		{filepath.Join(dir, "none.log"), "check the name and the folder"},
		{filepath.Join(dir, "none*"), "no file matches"},
		{dir, "is a directory; give the files in it"},
	} {
		if _, err := Expand([]string{c.name}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	if _, err := Expand([]string{files[0], files[0]}); err == nil {
		t.Error("a file that was named twice was accepted")
	}
	linked := filepath.Join(dir, "linked.log")
	if err := os.Link(files[0], linked); err != nil {
		t.Fatal(err)
	}
	if _, err := Expand([]string{files[0], linked}); err == nil || !strings.Contains(err.Error(), "are the same file") {
		t.Errorf("a file with two names: %v", err)
	}
}

// Times and sizes are parsed in every form that Caddy's encoders write. Other values are not treated as times or sizes.
func TestNumbersOfCaddy(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"1795340096": "2026-11-22T09:34:56Z", "1795340096.25": "2026-11-22T09:34:56.25Z", "1.795340096e9": "2026-11-22T09:34:56Z",
		"1795340096123": "2026-11-22T09:34:56.123Z", "1795340096123456789": "2026-11-22T09:34:56.123457Z",
		`"1795340096"`: "2026-11-22T09:34:56Z", `"2026/11/22 09:34:56.5"`: "2026-11-22T09:34:56.5Z", `"2026/11/22 09:34:56"`: "2026-11-22T09:34:56Z",
		`"2026-11-22T10:34:56.500+0100"`: "2026-11-22T09:34:56.5Z", `"22/Nov/2026:10:34:56 +0100"`: "2026-11-22T09:34:56Z",
		"1": "1970-01-01T00:00:01Z", "0.5": "", "0": "", "-1795340096": "", "1e19": "", `"soon"`: "", `""`: "", "null": "", "{}": "",
	} {
		var r Record
		err := caddyFormat().Parse([]byte(`{"ts":`+text+`,"request":{"uri":"/"}}`), &r)
		got := ""
		if err == nil {
			got = r.Time.UTC().Format(time.RFC3339Nano)
		}
		if got != want || want == "" && !errors.Is(err, errNoTime) {
			t.Errorf("ts %s is %q (%v), want %q", text, got, err, want)
		}
	}
	for text, want := range map[string]int64{"12": 12, "1.5e3": 1500, "-1": -1, "1e300": 0, `"12"`: 0, "true": 0, "[1]": 0} {
		var r Record
		if err := caddyFormat().Parse([]byte(`{"ts":1,"request":{"uri":"/"},"size":`+text+`}`), &r); err != nil || r.Bytes != want {
			t.Errorf("size %s is %d (%v), want %d", text, r.Bytes, err, want)
		}
	}
}

// A damaged line is never parsed as a record, whichever part of the line is damaged.
func TestDamagedJSON(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		`{"ts":1,"request":{"uri":"/"},}`, `{"ts":1,"request":{"uri":"/"}`, `{"ts":1,"request":{"uri":"/"}}}`, `{"ts":1 "request":{"uri":"/"}}`,
		`{"ts",1,"request":{"uri":"/"}}`, `{"ts":1,"request":{"uri":"/}}`, `{"ts":1,"request":{"uri":"/","headers":{"User-Agent":["a","b"}}}`,
		`{"ts":1,"request":{"uri":"/"},"x":[{"}"}`, `{"ts":1,"request":{"uri":"/"},"x":}`, `{"ts":1,"request":{"uri":"/\\\"}}`,
	} {
		var r Record
		if err := caddyFormat().Parse([]byte(line), &r); !errors.Is(err, errJSON) {
			t.Errorf("%s: %v", line, err)
		}
	}
	var r Record
	line := ` { "ts" : 1 , "request" : { "uri" : "\/a\\" , "headers" : { "User-Agent" : [ ] } } , "x" : {} } `
	if err := caddyFormat().Parse([]byte(line), &r); err != nil || string(r.Target) != `/a\` || r.UserAgent != nil {
		t.Errorf("%s: %s, %v", line, show(&r), err)
	}
}

// FuzzCaddyJSON parses the random bytes junk as a log line, which must not panic. Then it writes a line of Caddy's log
// with the values uri, host and ua. This line also has junk in fields that the parser must skip, if junk is valid JSON.
// From this line, the parser must read uri, host and ua.
func FuzzCaddyJSON(f *testing.F) {
	f.Add("/a?b", "h", "curl/8 \"x\"\n\u00e9", []byte(`{"a":[1,{"b":"\\"}],"c":"}"}`))
	f.Add("\\", "", "", []byte(caddyLine))
	f.Fuzz(func(t *testing.T, uri, host, ua string, junk []byte) {
		var r Record
		_ = caddyFormat().Parse(junk, &r) // must not panic or hang
		if !json.Valid(junk) {
			junk = []byte("null")
		}
		valid := func(s string) string { return strings.ToValidUTF8(s, "") }
		uri, host, ua = "/"+valid(uri), valid(host), valid(ua)
		line, err := json.Marshal([]any{map[string]any{
			"A": json.RawMessage(junk), "ts": 1795340096.5, "zz": json.RawMessage(junk), "size": 12, "status": 404,
			"request": map[string]any{"a": json.RawMessage(junk), "uri": uri, "host": host, "headers": map[string][]string{"Accept": {ua}, "User-Agent": {ua, uri}}, "z": json.RawMessage(junk)},
		}})
		if err != nil {
			t.Fatal(err)
		}
		line = line[1 : len(line)-1]
		if err := caddyFormat().Parse(line, &r); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if string(r.Target) != uri || string(r.Host) != host || string(r.UserAgent) != ua+"\n"+uri || r.Bytes != 12 || r.Time.UnixMilli() != 1795340096500 {
			t.Errorf("%s: %s", line, show(&r))
		}
	})
}

func FuzzTextFormat(f *testing.F) {
	f.Add(`192.0.2.7 - - [22/Nov/2026:09:34:56 +0000] "GET / HTTP/1.1" 200 1 "-" "curl/8"`)
	f.Add(`h:80 192.0.2.7 - - [22/Nov/2026:09:34:56 +0000] "GET /\" HTTP/1.1" 200 1 "\\" "\x"`)
	p, err := ParseFormat("combined")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, line string) {
		var r Record
		if p.Parse([]byte(line), &r) == nil && (len(r.Target) == 0 || r.Time.IsZero()) {
			t.Errorf("%s without an error", show(&r))
		}
	})
}

func BenchmarkCaddyJSON(b *testing.B) {
	line := []byte(caddyLine)
	b.Run("this package", func(b *testing.B) {
		p := caddyFormat()
		var r Record
		b.SetBytes(int64(len(line)))
		b.ReportAllocs()
		for b.Loop() {
			if err := p.Parse(line, &r); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("encoding/json", func(b *testing.B) {
		b.SetBytes(int64(len(line)))
		b.ReportAllocs()
		for b.Loop() {
			var v struct {
				Ts      float64
				Request struct {
					ClientIP string `json:"client_ip"`
					Method   string
					Host     string
					URI      string
					Headers  map[string][]string
				}
				Size   int64
				Status int
			}
			if err := json.Unmarshal(line, &v); err != nil {
				b.Fatal(err)
			}
		}
	})
}
