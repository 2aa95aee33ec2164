// SPDX-License-Identifier: Apache-2.0

package clickhouse_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/activity/store/clickhouse"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/clickhousetest"
)

// every returns texts with each possible byte, alone and before other bytes.
func every() (all []string) {
	for i := range 256 {
		b := string([]byte{byte(i)})
		all = append(all, b, b+"n", b+"'", `\`+b, "a"+b+b+"z")
	}
	return append(all, "", `\N`, `'); DROP TABLE t; --`, "/* '", "é\u202e😀", strings.Repeat("'", 1000))
}

// ClickHouse returns texts exactly as the test wrote them, as literals and as fields.
func TestTextsAgainstClickHouse(t *testing.T) {
	t.Parallel()
	s := clickhousetest.Start(t)
	c := clickhouse.Client{URL: s.URL("default")}
	if err := c.Exec(t.Context(), "CREATE TABLE t (n UInt32, text String) ENGINE = Memory"); err != nil {
		t.Fatal(err)
	}
	var rows, literals strings.Builder
	texts := every()
	for i, text := range texts {
		rows.WriteString("7\t" + clickhouse.Escape(text) + "\n")
		if i > 0 {
			literals.WriteString(", ")
		}
		literals.WriteString(clickhouse.Quote(text))
	}
	if err := c.Insert(t.Context(), "t", []string{"n", "text"}, []byte(rows.String())); err != nil {
		t.Fatal(err)
	}
	for _, query := range []string{"SELECT text FROM t", "SELECT arrayJoin([" + literals.String() + "])"} {
		i := 0
		if err := c.Query(t.Context(), query, func(f []string) error {
			if i >= len(texts) || len(f) != 1 || f[0] != texts[i] {
				t.Errorf("row %d: %q", i, f)
			}
			i++
			return nil
		}); err != nil || i != len(texts) {
			t.Errorf("%d rows, want %d: %v", i, len(texts), err)
		}
	}
}

// A failing query returns an error, even if it fails after some rows were found.
func TestErrors(t *testing.T) {
	t.Parallel()
	s := clickhousetest.Start(t)
	password := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(password, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, user, password, statement, want string }{
		{"late", "", "", "SELECT throwIf(number = 1000000) FROM system.numbers LIMIT 2000000", "throwIf"},
		{"no table", "", "", "SELECT * FROM missing", "missing"},
		{"wrong user", "nobody", "", "SELECT 1", "nobody"},
		{"wrong password", "default", password, "SELECT 1", "assword"},
		{"may only read", "reader", password, "CREATE TABLE x (n UInt8) ENGINE = Memory", "readonly"},
		{"no file", "reader", password + ".missing", "SELECT 1", "the password of ClickHouse"},
		{"right", "reader", password, "SELECT 1", ""},
	} {
		c := clickhouse.Client{URL: s.URL("default"), User: tt.user, PasswordFile: tt.password}
		rows := 0
		err := c.Query(t.Context(), tt.statement, func([]string) error { rows++; return nil })
		if tt.want == "" && (err != nil || rows != 1) || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want) || rows > 0) {
			t.Errorf("%s: %d rows, %v", tt.name, rows, err)
		}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for url, ok := range map[string]bool{
		"https://clickhouse.example.net:8443/robots": true, "http://127.0.0.1:8123/robots/": true,
		"clickhouse.example.net:8123/robots": false, "clickhouse://clickhouse.example.net:9000/robots": false,
		"http://clickhouse.example.net:8123": false, "http://clickhouse.example.net:8123/": false, "http://h/a/b": false,
		"http://robots:secret@clickhouse.example.net:8123/robots": false, "http://h/robots?user=x": false, "": false, "/robots": false,
	} {
		c := clickhouse.Client{URL: url}
		if err := c.Check(); (err == nil) != ok {
			t.Errorf("%s: %v", url, err)
		}
	}
	if err := (&clickhouse.Client{URL: "http://h/robots", PasswordFile: "f"}).Check(); err == nil {
		t.Error("a password without a user was accepted")
	}
}

// scan reads a literal as ClickHouse's lexer does: up to the first quote without an escaping backslash. It returns the
// text after the literal.
func scan(literal string) (rest string, ok bool) {
	if !strings.HasPrefix(literal, "'") {
		return "", false
	}
	for i := 1; i < len(literal); i++ {
		switch literal[i] {
		case '\\':
			i++
		case '\'':
			return literal[i+1:], true
		}
	}
	return "", false
}

func FuzzQuote(f *testing.F) {
	for _, text := range every() {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if rest, ok := scan(clickhouse.Quote(text)); !ok || rest != "" {
			t.Errorf("%q as a literal is %s: it ends before %q", text, clickhouse.Quote(text), rest)
		}
		if field := clickhouse.Escape(text); strings.ContainsAny(field, "\t\n\x00") {
			t.Errorf("%q as a field is %q", text, field)
		}
	})
}
