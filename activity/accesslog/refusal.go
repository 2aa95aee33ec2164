// SPDX-License-Identifier: Apache-2.0

package accesslog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
)

// packed lists kinds of files that are not text. Such files are recognized by their first bytes. command is a command
// that converts them to text.
var packed = []struct{ start, name, command string }{
	{"\xfd7zXZ\x00", "packed with xz", "xz -dc FILE"},
	{"BZh", "packed with bzip2", "bzip2 -dc FILE"},
	{"PK\x03\x04", "a ZIP archive", "unzip -p FILE"},
	{"LPKSHHRH", "a journal of systemd", "journalctl --file FILE -o cat"},
	{"PAR1", "a Parquet file", `duckdb -c "COPY (FROM 'FILE') TO '/dev/stdout' (FORMAT json)"`},
	{"SQLite format 3", "a database", ""},
}

// refusedFile returns an error if start, the first bytes of a file, identify a kind of files that the variable packed
// lists.
func refusedFile(start []byte) error {
	for _, p := range packed {
		switch {
		case !bytes.HasPrefix(start, []byte(p.start)):
		case p.command == "":
			return fmt.Errorf("the file is %s, not an access log; use the option --database for the activity database", p.name)
		default:
			return fmt.Errorf("the file is %s; run: %s | caddy robots-policy replay POLICY -", p.name, p.command)
		}
	}
	return nil
}

// strange lists kinds of log lines that cannot be parsed, with advice for each.
var strange = []struct {
	line *regexp.Regexp
	what string
}{
	{regexp.MustCompile(`^\{\s*$`), "each JSON object is spread over several lines; run: jq -c . FILE | caddy robots-policy replay POLICY -"},
	{regexp.MustCompile(`^\d{4}/\d\d/\d\d [0-9:]+ \[\w+\] \d+#`), "this is an error log of nginx; give the access log instead"},
	{regexp.MustCompile(`^\[\w{3} \w{3} \d\d [0-9:.]+ \d{4}\] \[`), "this is an error log of Apache; give the access log instead"},
	{regexp.MustCompile(`haproxy\[\d+\]:`), "HAProxy's usual log has no User-Agent; add it with HAProxy's directive \"capture request header User-Agent len 200\", and describe the lines with --format"},
	{regexp.MustCompile(`^\s*<`), "this is a web page or XML, not an access log"},
	{regexp.MustCompile(`^\w+:[^\t]*\t\w+:`), "this is LTSV, which is not supported; describe the lines with --format, as in --format 'time:$time_local\thost:$remote_addr\treq:$request\tua:$http_user_agent'"},
}

// refusal returns an error that says why no line of a log could be read. The error describes the first unreadable line,
// and names an option that may help.
func refusal(first *badLine) error {
	for _, s := range strange {
		if s.line.MatchString(first.text) {
			return errors.New(s.what)
		}
	}
	if start := strings.IndexByte(first.text, '{'); start >= 0 && (start == 0 || namesIn(first.text[start:]) != nil) {
		const example = "--map time=ts,ip=client.ip,host=host,uri=path,agent=ua"
		if strings.Contains(first.text, `"logger":`) && first.why == errNoRequest {
			return errors.New("no line of this log is about a request; turn on Caddy's access log with the directive \"log\"")
		}
		fields := ""
		if names := namesIn(first.text[start:]); names != nil {
			fields = "; the first line has the fields " + english.Some(names, 12)
		}
		return fmt.Errorf("the field names of this JSON log are unknown (%w); give them with --map, as in %s%s", first.why, example, fields)
	}
	return fmt.Errorf(`unknown log format: describe it with --format, as in --format '$remote_addr [$time_local] "$request" $status "$http_user_agent"'; the first line cannot be read (%w): %s`, first.why, first.shown())
}

// namesIn returns the names of the fields in a JSON object. The text may end before the object does.
func namesIn(text string) (names []string) {
	d := json.NewDecoder(strings.NewReader(text))
	depth, isName := 0, false
	for {
		t, err := d.Token()
		if err != nil {
			return names
		}
		switch {
		case t == json.Delim('{') || t == json.Delim('['):
			depth++
			isName = depth == 1
		case t == json.Delim('}') || t == json.Delim(']'):
			depth--
			isName = depth == 1
		case depth == 1 && isName:
			names, isName = append(names, fmt.Sprint(t)), false
		case depth == 1:
			isName = true
		}
	}
}
