// SPDX-License-Identifier: Apache-2.0

package accesslog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
)

// truth holds the true values of a request in a generated log.
type truth struct {
	at                   time.Time // with a precision of a millisecond
	ip, host, uri, agent string
	size                 int
}

func (q *truth) caddy(agent string) string {
	b, _ := json.Marshal(map[string]any{
		"level": "info", "ts": float64(q.at.UnixMilli()) / 1000, "logger": "http.log.access.log0", "msg": "handled request",
		"request": map[string]any{"client_ip": q.ip, "remote_ip": "10.0.0.1", "proto": "HTTP/2.0", "method": "GET", "host": q.host, "uri": q.uri, "headers": map[string][]string{agent: {q.agent}}},
		"size":    q.size, "status": 200, "resp_headers": map[string][]string{"Content-Type": {"text/html"}},
	})
	return string(b)
}

func (q *truth) with(replace ...string) string {
	line := q.caddy("User-Agent")
	for i := 0; i < len(replace); i += 2 {
		if !strings.Contains(line, replace[i]) {
			panic("no " + replace[i] + " in " + line)
		}
		line = strings.Replace(line, replace[i], replace[i+1], 1)
	}
	return line
}

func (q *truth) combined() string {
	return fmt.Sprintf(`%s - - [%s] "GET %s HTTP/1.1" 200 %d "-" "%s"`, q.ip, q.at.Format("02/Jan/2006:15:04:05 -0700"), q.uri, q.size, q.agent)
}

func object(pairs ...any) string {
	m := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i].(string)] = pairs[i+1]
	}
	b, _ := json.Marshal(m)
	return string(b)
}

// ts returns the field with the time in a line of Caddy's log.
func (q *truth) ts() string {
	b, _ := json.Marshal(float64(q.at.UnixMilli()) / 1000)
	return `"ts":` + string(b)
}

// forms lists the log formats that can be read without an option. name is the program that writes the format. Each
// letter in lost stands for data that the format does not write: h for the host, and m for the milliseconds. A + means
// that the format writes spaces in the User-Agent as plus signs.
var forms = []struct {
	name, head, lost string
	line             func(q *truth) string
}{
	{"Caddy", "", "", func(q *truth) string { return q.caddy("User-Agent") }},
	{"Caddy, time_format iso8601", "", "", func(q *truth) string {
		return q.with(q.ts(), `"ts":"`+q.at.Format("2006-01-02T15:04:05.000Z0700")+`"`)
	}},
	{"Caddy, time_format wall", "", "", func(q *truth) string {
		return q.with(q.ts(), `"ts":"`+q.at.Format("2006/01/02 15:04:05.000")+`"`)
	}},
	{"Caddy, time_key and milliseconds", "", "", func(q *truth) string { return q.with(q.ts(), fmt.Sprintf(`"time":%d`, q.at.UnixMilli())) }},
	{"Caddy, console", "", "", func(q *truth) string {
		return q.at.Format("2006/01/02 15:04:05.000") + "\tINFO\thttp.log.access.log0\thandled request\t" + q.with(","+q.ts(), "")
	}},
	{"Caddy before 2.5", "", "", func(q *truth) string {
		return q.with(`"client_ip":"`+q.ip+`"`, `"remote_addr":"`+q.ip+`:41234"`, `"remote_ip":"10.0.0.1",`, "")
	}},
	{"journald", "", "", func(q *truth) string {
		return q.at.Format("Jan _2 15:04:05") + " web1 caddy[123]: " + q.caddy("User-Agent")
	}},
	{"compose", "", "", func(q *truth) string { return "\x1b[36mcaddy-1  | \x1b[0m" + q.caddy("User-Agent") }},
	{"CRI", "", "", func(q *truth) string {
		return q.at.Add(time.Second).Format(time.RFC3339Nano) + " stderr F " + q.caddy("User-Agent")
	}},
	{"docker's json-file", "", "", func(q *truth) string {
		return object("log", q.caddy("User-Agent")+"\n", "stream", "stderr", "time", q.at.Add(time.Second).Format(time.RFC3339Nano))
	}},
	{"docker's json-file of nginx", "", "hm", func(q *truth) string {
		return object("log", q.combined()+"\n", "stream", "stdout", "time", q.at.Format(time.RFC3339Nano))
	}},
	{"journald as JSON", "", "", func(q *truth) string {
		return object("__REALTIME_TIMESTAMP", fmt.Sprint(q.at.UnixMicro()), "MESSAGE", q.caddy("User-Agent"), "_SYSTEMD_UNIT", "caddy.service")
	}},
	{"nginx, JSON", "", "m", func(q *truth) string {
		return object("time_local", q.at.Format("02/Jan/2006:15:04:05 -0700"), "remote_addr", q.ip, "host", q.host, "request", "GET "+q.uri+" HTTP/1.1", "uri", "/index.html", "status", "200", "body_bytes_sent", q.size, "http_user_agent", q.agent)
	}},
	{"Logpush", "", "", func(q *truth) string {
		return object("ClientIP", q.ip, "ClientRequestHost", q.host, "ClientRequestURI", q.uri, "ClientRequestPath", "/else", "EdgeResponseBytes", q.size, "EdgeStartTimestamp", q.at.Format(time.RFC3339Nano), "ClientRequestUserAgent", q.agent)
	}},
	{"Logpush, nanoseconds", "", "", func(q *truth) string {
		return object("ClientIP", q.ip, "ClientRequestHost", q.host, "ClientRequestURI", q.uri, "EdgeResponseBytes", q.size, "EdgeStartTimestamp", q.at.UnixNano(), "ClientRequestUserAgent", q.agent)
	}},
	{"Traefik, JSON", "", "", func(q *truth) string {
		return object("ClientAddr", "10.0.0.1:5", "ClientHost", q.ip, "DownstreamContentSize", q.size, "RequestHost", q.host, "RequestAddr", q.host+":443", "RequestPath", q.uri, "StartUTC", q.at.Format(time.RFC3339Nano), "request_User-Agent", q.agent, "time", q.at.Add(time.Second).Format(time.RFC3339))
	}},
	{"Traefik, text", "", "hm", func(q *truth) string {
		return q.combined() + ` 7 "web@docker" "http://10.0.0.2:80" 5ms`
	}},
	{"Combined", "", "hm", (*truth).combined},
	{"Combined with the virtual host", "", "m", func(q *truth) string { return q.host + ":443 " + q.combined() }},
	{"ALB", "", "", func(q *truth) string {
		return fmt.Sprintf(`h2 %s app/lb/1 %s:4711 10.0.0.1:80 0.0 0.001 0.0 200 200 34 %d "GET https://%s%s HTTP/2.0" "%s" ECDHE TLSv1.2 arn:aws:x "Root=1" "-" "-" 0 %[1]s "forward" "-" "-" "10.0.0.1:80" "200" "-" "-"`,
			q.at.Format("2006-01-02T15:04:05.000000Z"), q.ip, q.size, q.host, q.uri, q.agent)
	}},
	{"CloudFront", "#Version: 1.0\n#Fields: date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem sc-status cs(Referer) cs(User-Agent) cs-uri-query x-host-header\n", "m", func(q *truth) string {
		path, search := stem(q.uri)
		return strings.Join([]string{
			q.at.Format("2006-01-02\t15:04:05"), "FRA1", fmt.Sprint(q.size), q.ip, "GET", "d111.cloudfront.net", path, "200", "-", strings.ReplaceAll(url.PathEscape(q.agent), "+", "%2B"), search, q.host,
		}, "\t")
	}},
	{"IIS", "#Software: Microsoft Internet Information Services 10.0\n#Fields: date time s-ip cs-method cs-uri-stem cs-uri-query s-port cs-username c-ip cs(User-Agent) cs-host sc-status sc-bytes\n", "m+", func(q *truth) string {
		path, search := stem(q.uri)
		return fmt.Sprintf("%s 10.0.0.1 GET %s %s 443 - %s %s %s 200 %d", q.at.Format("2006-01-02 15:04:05"), path, search, q.ip, strings.ReplaceAll(q.agent, " ", "+"), q.host, q.size)
	}},
}

func stem(uri string) (path, query string) {
	path, query, _ = strings.Cut(uri, "?")
	if query == "" {
		query = "-"
	}
	return path, query
}

var someAgents = []string{
	"Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.2; +https://openai.com/gptbot)",
	"Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)", "curl/8.5.0",
}

func requests(rnd *rand.Rand, n int) (all []truth) {
	at := time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)
	for range n {
		at = at.Add(time.Duration(rnd.IntN(9000)) * time.Millisecond)
		q := truth{at, fmt.Sprintf("203.0.113.%d", rnd.IntN(256)), []string{"www.example.com", "shop.example.com"}[rnd.IntN(2)], fmt.Sprintf("/a/%d", rnd.IntN(50)), someAgents[rnd.IntN(3)], rnd.IntN(1 << 20)}
		if rnd.IntN(3) == 0 {
			q.uri += fmt.Sprintf("?q=%d", rnd.IntN(9))
		}
		all = append(all, q)
	}
	return all
}

// known returns the request as text, but without the data that a line of the log cannot contain. lost describes this
// data with the same letters as in the variable forms.
func (q truth) known(lost string) string {
	if strings.Contains(lost, "h") {
		q.host = ""
	}
	if strings.Contains(lost, "m") {
		q.at = q.at.Truncate(time.Second)
	}
	if strings.Contains(lost, "+") { // IIS writes a plus sign instead of a space
		q.agent = strings.ReplaceAll(q.agent, "+", " ")
	}
	return fmt.Sprint(q.at.UTC(), q.ip, q.host, q.uri, q.agent, q.size)
}

func asTruth(r *Record) string {
	ip := string(r.ClientIP)
	if host, _, ok := strings.Cut(ip, ":"); ok {
		ip = host
	}
	target := string(r.Target)
	if _, rest, ok := strings.Cut(target, "://"); ok {
		target = rest[strings.IndexByte(rest, '/'):]
	}
	return truth{r.Time, ip, string(r.Host), target, string(r.UserAgent), int(r.Bytes)}.known("")
}

// readAll returns how often each request is in a log.
func readAll(t *testing.T, r Reading, log []byte) (map[string]int, Result, error) {
	t.Helper()
	var mu sync.Mutex
	all := map[string]int{}
	r.Workers, r.Stdin = 3, bytes.NewReader(log)
	res, err := r.Read(t.Context(), []string{Stdin}, func(_ int, r *Record) {
		mu.Lock()
		all[asTruth(r)]++
		mu.Unlock()
	})
	return all, res, err
}

func same(a, b map[string]int) string {
	for k, n := range a {
		if b[k] != n {
			return fmt.Sprintf("%s: %d, want %d", k, b[k], n)
		}
	}
	if len(a) != len(b) {
		return fmt.Sprintf("%d different requests, want %d", len(b), len(a))
	}
	return ""
}

// The requests are read correctly from each log format, whatever the format of the previous log was.
func TestForms(t *testing.T) {
	t.Parallel()
	var mixed bytes.Buffer
	inMixed := map[string]int{}
	lines := 1000
	if testkit.Thorough() {
		lines = 10_000
	}
	for i, f := range forms {
		rnd := rand.New(rand.NewPCG(uint64(i), 1))
		log := bytes.NewBufferString(f.head)
		want := map[string]int{}
		for _, q := range requests(rnd, lines) {
			log.WriteString(f.line(&q) + "\n")
			want[q.known(f.lost)]++
		}
		got, res, err := readAll(t, Reading{}, log.Bytes())
		if diff := same(want, got); err != nil || diff != "" || res.Lines != int64(lines) || res.Bad != 0 || res.Other != 0 || len(res.Gaps) != 0 {
			t.Errorf("%s: %v %+v\n%s", f.name, err, res, diff)
		}
		mixed.Write(log.Bytes())
		for k, n := range want {
			inMixed[k] += n
		}
	}
	got, res, err := readAll(t, Reading{}, mixed.Bytes())
	if diff := same(inMixed, got); err != nil || diff != "" || res.Bad != 0 || len(res.Gaps) != 0 {
		t.Errorf("all formats in one log: %v %+v\n%s", err, res, diff)
	}
}

// NewJSON returns a parser for JSON logs with unusual field names. The fields may be in nested objects, or have dots in
// their names.
func TestMap(t *testing.T) {
	t.Parallel()
	q := requests(rand.New(rand.NewPCG(1, 1)), 1)[0]
	for _, c := range []struct {
		names map[string]string
		line  string
	}{
		{
			map[string]string{"time": "@ts", "ip": "client.address", "host": "url.domain", "uri": "url.original", "agent": "user_agent.original", "size": "http.bytes"},
			object("@ts", q.at, "client", map[string]any{"address": q.ip}, "url", map[string]any{"domain": q.host, "original": q.uri}, "user_agent.original", q.agent, "http", map[string]any{"bytes": q.size}),
		},
		{
			map[string]string{"request": "line", "agent": "headers.ua"},
			object("timestamp", q.at, "remote_addr", q.ip, "host", q.host, "line", "GET "+q.uri+" HTTP/1.1", "uri", "/not-this", "http_user_agent", "not this", "headers", map[string]any{"ua": q.agent}, "bytes_sent", q.size),
		},
	} {
		p, err := NewJSON(c.names)
		if err != nil {
			t.Fatal(err)
		}
		got, _, err := readAll(t, Reading{Parser: p}, []byte(c.line+"\n"))
		if diff := same(map[string]int{q.known(""): 1}, got); err != nil || diff != "" {
			t.Errorf("%v: %v\n%s", c.names, err, diff)
		}
	}
	for _, names := range []map[string]string{{"path": "url"}, {"uri": ""}} {
		if _, err := NewJSON(names); err == nil || !strings.Contains(err.Error(), "agent, host, ip, request, size, time or uri") {
			t.Errorf("%v: %v", names, err)
		}
	}
}

// A field that a site adds to Caddy's log is not mistaken for a field of the request.
func TestAddedFields(t *testing.T) {
	t.Parallel()
	q := requests(rand.New(rand.NewPCG(2, 1)), 1)[0]
	line := q.caddy("User-Agent")
	line = `{"host":"other","uri":"/other","remote_addr":"192.0.2.1","message":"x","time":"2020-01-01T00:00:00Z",` + line[1:len(line)-1] + `,"host":"other","uri":"/other","http_user_agent":"other","time":7}`
	got, _, err := readAll(t, Reading{}, []byte(line+"\n"))
	if diff := same(map[string]int{q.known(""): 1}, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}

// Missing data in a log is reported as a gap, wherever in the log it is missing.
func TestGaps(t *testing.T) {
	testkit.SkipRace(t)
	t.Parallel()
	all := requests(rand.New(rand.NewPCG(3, 1)), 5000)
	write := func(line func(q *truth) string) []byte {
		var b bytes.Buffer
		for i := range all {
			b.WriteString(line(&all[i]) + "\n")
		}
		return b.Bytes()
	}
	combined, caddy := write((*truth).combined), write(func(q *truth) string { return q.caddy("User-Agent") })
	pack := func(log []byte) []byte {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = z.Write(log)
		_ = z.Close()
		return b.Bytes()
	}
	line, _, _ := bytes.Cut(combined, []byte("\n"))
	cut := func(log []byte, n int) []byte { return append(bytes.Clone(log[:n]), append([]byte("\n"), log...)...) }
	half := pack(caddy)
	for _, c := range []struct {
		name   string
		log    []byte
		atMost int // number of readable requests; 0 means all
		want   string
	}{
		{"a Combined line that is cut in its User-Agent", cut(combined, len(line)-5), 0, "that could not be read"},
		{"a Combined line that is cut after its size", cut(combined, bytes.Index(line, []byte(` "-"`))), 0, "1 request without a User-Agent, in -: other lines of the log have a User-Agent"},
		{"a Combined line that is cut in its size", cut(combined, bytes.Index(line, []byte(` "-"`))-1), 0, "1 request without a User-Agent, in -: other lines of the log have a User-Agent"},
		{"a Caddy line that is cut", cut(caddy, 300), 0, "1 line that could not be read, in -: the first of them (its JSON is cut"},
		{"a Caddy line without its start", append([]byte(`n":["x"]}},"status":200}`+"\n"), caddy...), 0, "that could not be read"},
		{"a gzip file that ends early", half[:len(half)/3], 4000, "an unknown number of requests in the missing part of a compressed file"},
		{"a gzip file with a wrong byte", append(bytes.Clone(half[:len(half)/2]), append([]byte{1, 2, 3}, half[len(half)/2+3:]...)...), 4900, "an unknown number of requests in the missing part of a compressed file"},
		{"Common", write(func(q *truth) string { s := q.combined(); return s[:strings.Index(s, ` "-"`)] }), 0, "5,000 requests without a User-Agent, in -: no line of the log has a User-Agent"},
		{"User-Agents that are deleted", write(func(q *truth) string { return q.caddy("Accept") }), 0, "5,000 requests without a User-Agent, in -: no line of the log has a User-Agent"},
		{"User-Agents that are blotted out", write(func(q *truth) string { return strings.Replace(q.caddy("User-Agent"), q.agent, "REDACTED", 1) }), 0, "5,000 requests without a User-Agent, in -: no line of the log has a User-Agent"},
		{"no gap: lines of other loggers and programs", append([]byte("Nov 22 09:00:00 web1 systemd[1]: Started Caddy.\n"+`{"level":"info","ts":1622829915.95,"logger":"admin","msg":"admin endpoint started"}`+"\n"), caddy...), 0, ""},
		{"no gap: journald's JSON, with a line of systemd", append([]byte(`{"MESSAGE":"Started Caddy."}`+"\n"), write(func(q *truth) string { return object("MESSAGE", q.caddy("User-Agent")) })...), 0, ""},
		{"no gap: docker's JSON, with a line of the container's start", append([]byte(`{"log":"/entrypoint.sh: ready\n"}`+"\n"), write(func(q *truth) string { return object("log", q.caddy("User-Agent")+"\n") })...), 0, ""},
		{"docker's JSON, with a Combined line that is cut", append([]byte(object("log", string(line[:len(line)-5]))+"\n"), write(func(q *truth) string { return object("log", q.combined()+"\n") })...), 0, "1 line that could not be read, in -: the first of them (the line ends before field 9 of the format combined) is 203.0."},
		{"no gap: a handshake sent to a plain port", append([]byte(`192.0.2.7 - - [22/Nov/2026:09:34:56 +0000] "\x16\x03\x01" 400 150 "-" "-"`+"\n"), combined...), 0, ""},
		{"no gap: some requests without a User-Agent", append([]byte(`192.0.2.7 - - [22/Nov/2026:09:34:56 +0000] "GET / HTTP/1.1" 200 150 "-" "-"`+"\n"), combined...), 0, ""},
	} {
		got, res, err := readAll(t, Reading{}, c.log)
		n, gaps := 0, ""
		for _, k := range got {
			n += k
		}
		for _, g := range res.Gaps {
			gaps += g.What + "\n"
			if g.Name == "" || g.Close == "" {
				t.Errorf("%s: %+v", c.name, g)
			}
		}
		if err != nil || !strings.Contains(gaps, c.want) || (c.want == "") != (gaps == "") || c.atMost > 0 && (n == 0 || n > c.atMost) || c.atMost == 0 && n < 5000 {
			t.Errorf("%s: %d requests, %v, gaps:\n%swant %s", c.name, n, err, gaps, c.want)
		}
	}
}

// If no line of a log can be read, the error says what the user can do, such as which option to add.
func TestRefusals(t *testing.T) {
	t.Parallel()
	q := requests(rand.New(rand.NewPCG(3, 1)), 1)[0]
	for text, want := range map[string]string{
		"{\n  \"level\": \"info\",\n  \"ts\": 1\n}\n":                                                   "each JSON object is spread over several lines; run: jq -c . FILE |",
		object("when", 1, "path", "/a", "ua", "x") + "\n":                                               "give them with --map, as in --map time=ts,ip=client.ip,host=host,uri=path,agent=ua; the first line has the fields path, ua and when",
		`{"level":"info","ts":1622829915.95,"logger":"admin","msg":"admin endpoint started"}` + "\n":    "turn on Caddy's access log",
		"2026/11/22 09:00:00 [error] 7#7: *1 open() failed\n":                                           "this is an error log of nginx",
		"[Sun Nov 22 09:00:00.1 2026] [core:error] [pid 7] x\n":                                         "this is an error log of Apache",
		"Nov 22 09:00:00 lb haproxy[7]: 192.0.2.7:1 [22/Nov/2026:09:00:00.1] f b/s 0/0/1/2/3 200 7 -\n": "capture request header User-Agent",
		"<html>\n": "this is a web page",
		"time:[22/Nov/2026:09:00:00 +0000]\thost:192.0.2.7\treq:GET / HTTP/1.1\tua:x\n": "--format 'time:$time_local",
		"hello\n": "unknown log format: describe it with --format", "\xfd7zXZ\x00\x00\x04": "run: xz -dc FILE | caddy robots-policy replay",
		"LPKSHHRH\x00\x00": "journalctl --file FILE", "SQLite format 3\x00": "--database",
		strings.Replace(q.caddy("User-Agent"), `"ts"`, `"t"`, 1) + "\n": "the time in the line is missing or invalid); give them with --map, as in --map time=",
	} {
		if _, _, err := readAll(t, Reading{}, []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v\nwant %s", text, err, want)
		}
	}
	ltsv, err := ParseFormat(`time:[$time_local]\thost:$remote_addr\treq:$request\tua:$http_user_agent`)
	if err != nil {
		t.Fatal(err)
	}
	var r Record
	if err := ltsv.Parse([]byte("time:[22/Nov/2026:09:00:00 +0000]\thost:192.0.2.7\treq:GET /b HTTP/1.1\tua:x"), &r); err != nil || string(r.Target) != "/b" || string(r.UserAgent) != "x" {
		t.Errorf("%v %s", err, show(&r))
	}
}

// Logs written by real servers can be read. An environment variable names the folder with these logs.
func TestRealForms(t *testing.T) {
	dir := os.Getenv("ROBOTSPOLICY_DATA")
	if dir == "" {
		t.Skip("ROBOTSPOLICY_DATA is not set")
	}
	names, err := filepath.Glob(filepath.Join(dir, "cases", "replay-formats", "*.log"))
	if err != nil || len(names) == 0 {
		t.Fatal("no logs in ", dir, err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		got, res, err := readAll(t, Reading{}, text)
		switch base := filepath.Base(name); {
		case base == "pretty.log":
			if err == nil || !strings.Contains(err.Error(), "jq -c") {
				t.Errorf("%s: %v", base, err)
			}
		case strings.HasPrefix(base, "redact"):
			if err != nil || len(res.Gaps) != 1 {
				t.Errorf("%s: %v %+v", base, err, res)
			}
		default:
			for k := range got {
				if !strings.Contains(k, "203.0.113.9") || !strings.Contains(k, "GPTBot") || !strings.Contains(k, "www.example.com") || !strings.Contains(k, "2026-11-26 ") {
					t.Errorf("%s: %s", base, k)
				}
			}
			if err != nil || len(got) != 1 || len(res.Gaps) != 0 {
				t.Errorf("%s: %v %v %+v", base, err, got, res)
			}
		}
	}
}

func FuzzAnyFormat(f *testing.F) {
	q := requests(rand.New(rand.NewPCG(4, 1)), 1)[0]
	for _, form := range forms {
		f.Add(form.head, form.line(&q))
	}
	f.Fuzz(func(t *testing.T, head, line string) {
		json, err := NewJSON(nil)
		if err != nil {
			t.Fatal(err)
		}
		p := newAnyFormat(json.(*jsonFormat).root)
		p.w3c = lastW3C([]byte(head), nil)
		var a, b Record
		first := p.Parse([]byte(line), &a)
		was := show(&a)
		_ = p.Parse([]byte(q.combined()), &b)
		if second := p.Parse([]byte(line), &b); (first == nil) != (second == nil) || first == nil && was != show(&b) {
			t.Errorf("%q is %s (%v), and after another line %s (%v)", line, was, first, show(&b), second)
		}
		if first == nil && (a.Time.IsZero() || a.Target == nil) {
			t.Errorf("%q: %s without an error", line, was)
		}
	})
}
