// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"bytes"
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"

	robotspolicy "github.com/robotspolicy/caddy-robots-policy"
)

// TestDirectivePage adapts the Caddyfile on the page docs/reference/caddyfile.md, and compares the result with the JSON
// on the page. Both must contain every setting.
func TestDirectivePage(t *testing.T) {
	const name = "../docs/reference/caddyfile.md"
	page, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```caddyfile\n(.*?)```").FindSubmatch(page)
	if block == nil {
		t.Fatal("there is no Caddyfile")
	}
	config, _, err := adapt(string(block[1]))
	if err != nil {
		t.Fatal(err)
	}
	handler := findHandler(t, config)
	var shown bytes.Buffer
	if err := json.Indent(&shown, handler, "", "  "); err != nil {
		t.Fatal(err)
	}
	got := regexp.MustCompile("(?s)```json\n.*?```").ReplaceAllLiteral(page, []byte("```json\n"+shown.String()+"\n```"))
	if *update {
		if err := os.WriteFile(name, got, 0o644); err != nil {
			t.Fatal(err)
		}
	} else if !bytes.Equal(got, page) {
		t.Errorf("%s shows other JSON (-update rewrites it):\n%s", name, firstDifference(string(page), string(got)))
	}
	fields, err := json.Marshal(robotspolicy.Handler{})
	if err != nil || string(fields) != "{}" {
		t.Fatal("an empty setting is not omitted", string(fields), err)
	}
}

// findHandler returns the handler robots_policy of a configuration.
func findHandler(t *testing.T, config []byte) json.RawMessage {
	t.Helper()
	var find func(json.RawMessage) json.RawMessage
	find = func(v json.RawMessage) json.RawMessage {
		var object map[string]json.RawMessage
		var list []json.RawMessage
		if json.Unmarshal(v, &object) == nil {
			if string(object["handler"]) == `"robots_policy"` {
				return v
			}
			for _, child := range object {
				if h := find(child); h != nil {
					return h
				}
			}
		} else if json.Unmarshal(v, &list) == nil {
			for _, child := range list {
				if h := find(child); h != nil {
					return h
				}
			}
		}
		return nil
	}
	h := find(config)
	if h == nil {
		t.Fatalf("no handler in %s", config)
	}
	return h
}

// TestDurationsInJSON loads durations in all forms that docs/reference/caddyfile.md names.
func TestDurationsInJSON(t *testing.T) {
	for _, d := range []string{`7200000000000`, `"90s"`, `"1h30m"`, `"2d"`, `"-1s"`} {
		t.Run(d, func(t *testing.T) {
			h := new(robotspolicy.Handler)
			if err := json.Unmarshal([]byte(`{"policy":"p.yaml","reload":`+d+`}`), h); err != nil || h.Reload == 0 {
				t.Errorf("%v %v", h.Reload, err)
			}
		})
	}
	config := strings.NewReplacer("ADDR", freeAddr(t), "POLICY", policyIn(t)).Replace(`{"admin":{"disabled":true,"config":{"persist":false}},"apps":{"http":{"servers":{"s":{"listen":["ADDR"],"automatic_https":{"disable":true},
		"routes":[{"handle":[{"handler":"robots_policy","policy":"POLICY","reload":"90s","robots_txt_max_age":"10m","headers":["x-robots-tag"],"verify":["off"]},{"handler":"static_response","body":"hello"}]}]}}}}}`)
	if err := caddy.Load([]byte(config), true); err != nil {
		t.Fatal(err)
	}
	if err := caddy.Stop(); err != nil {
		t.Error(err)
	}
}

// policyIn writes a policy file without rules, and returns its name.
func policyIn(t *testing.T) string {
	t.Helper()
	name := t.TempDir() + "/policy.yaml"
	if err := os.WriteFile(name, []byte("version: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}
