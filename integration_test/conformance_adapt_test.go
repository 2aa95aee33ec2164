// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
)

const adaptSeparator = "\n----------\n"

// TestAdapt converts the Caddyfiles in the folder adapt to JSON. Each file contains a Caddyfile, a line of hyphens, and
// the expected JSON, or "error: " and a part of the expected message.
func TestAdapt(t *testing.T) {
	needsCaddy(t, "a Caddyfile becomes JSON")
	files, err := filepath.Glob("adapt/*.caddyfiletest")
	if err != nil || len(files) == 0 {
		t.Fatal("no files in adapt", err)
	}
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".caddyfiletest"), func(t *testing.T) {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			in, want, ok := strings.Cut(string(text), adaptSeparator)
			if !ok {
				t.Fatal("no line of hyphens")
			}
			config, warnings, err := adapt(in + "\n")
			got := ""
			if err != nil {
				part, isError := strings.CutPrefix(strings.TrimSpace(want), "error: ")
				if isError && part != "" && strings.Contains(err.Error(), part) {
					if !strings.Contains(err.Error(), "Caddyfile:") && !strings.HasPrefix(part, "unrecognized matcher") { // this message comes from Caddy
						t.Errorf("the error has no file and line: %v", err)
					}
					return
				}
				got = "error: " + err.Error() + "\n"
			} else {
				var b bytes.Buffer
				if err := json.Indent(&b, config, "", "\t"); err != nil {
					t.Fatal(err)
				}
				got = b.String() + "\n"
				if len(warnings) > 0 {
					t.Errorf("warnings: %v", warnings)
				}
				if formatted := string(caddyfile.Format([]byte(in + "\n"))); formatted != in+"\n" {
					t.Errorf("caddy fmt would write\n%s", formatted)
				}
			}
			if got == want {
				return
			}
			if !*update {
				t.Fatalf("%s\n(-update rewrites the file)", firstDifference(want, got))
			}
			if err := os.WriteFile(name, []byte(in+adaptSeparator+got), 0o644); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// Caddyfile.example is formatted like the output of caddy fmt.
func TestExampleIsFormatted(t *testing.T) {
	needsCaddy(t, "caddy fmt")
	text, err := os.ReadFile("../Caddyfile.example")
	if err != nil {
		t.Fatal(err)
	}
	if formatted := caddyfile.Format(text); !bytes.Equal(formatted, text) {
		t.Error(firstDifference(string(text), string(formatted)))
	}
}

// behavior describes, as text, how a site answers clients.
func (s *server) behavior() string {
	var b strings.Builder
	for _, agent := range []string{firefox, gptBot, "LogBot/1.0"} {
		for _, path := range []string{"/robots.txt", "/drafts/x", "/admin/", "/"} {
			r := s.get(path, "User-Agent", agent, "Head", `<meta name=robots content=nosnippet>`, "Etag", `"v1"`)
			fmt.Fprintln(&b, agent, path, r.StatusCode, fieldsOf(r.Header), r.Header.Get("Etag"), r.Header.Values("Vary"), r.body)
		}
	}
	return b.String()
}

// A configuration has the same effect in a Caddyfile and in JSON, whether its defaults are written out or omitted.
func TestCaddyfileAndJSONAgree(t *testing.T) {
	needsCaddy(t, "a Caddyfile and Caddy's JSON")
	up := httptest.NewServer(http.HandlerFunc(pageUpstream))
	defer up.Close()
	seen := map[string]string{}
	for _, c := range []struct{ name, block, json string }{
		{"nothing said", "", ``},
		{
			"defaults", "enforce block\nrobots_txt replace\nheaders robots-tag x-robots-tag content-usage\nmeta merge",
			`,"enforce":"block","robots_txt":"replace","headers":["robots-tag","x-robots-tag","content-usage"],"meta":"merge"`,
		},
		{"all off", "enforce off\nrobots_txt off\nheaders off\nmeta off", `,"enforce":"off","robots_txt":"off","headers":["off"],"meta":"off"`},
		{"merged", "robots_txt merge\nrobots_txt_max_age 90s", `,"robots_txt":"merge","robots_txt_max_age":"90s"`},
		{"tailored", "headers tailored", `,"tailored":true`},
		{"some", "enforce log\nheaders x-robots-tag\nmeta replace", `,"enforce":"log","headers":["x-robots-tag"],"meta":"replace"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := startSites(t, slicePolicy, nil, map[string]string{"": ""})
			policy := filepath.Join(s.dir, "policy.yaml")
			caddyfile := fmt.Sprintf("{\nadmin off\npersist_config off\nauto_https off\n}\nhttp://:%s {\nrobots_policy %s {\n%s\n}\nreverse_proxy %s\n}\n", port(s.addr), policy, c.block, up.Listener.Addr())
			s.load(caddyfile)
			fromCaddyfile := s.behavior()
			raw := fmt.Sprintf(`{"admin":{"disabled":true,"config":{"persist":false}},"apps":{"http":{"servers":{"s":{"listen":[":%s"],"automatic_https":{"disable":true},"routes":[{"handle":[
				{"handler":"robots_policy","policy":%q%s},{"handler":"reverse_proxy","upstreams":[{"dial":%q}]}]}]}}}}}`, port(s.addr), policy, c.json, up.Listener.Addr())
			if err := caddy.Load([]byte(raw), true); err != nil {
				t.Fatal(err)
			}
			justLoaded.Store(true)
			if fromJSON := s.behavior(); fromJSON != fromCaddyfile {
				t.Error(firstDifference(fromCaddyfile, fromJSON))
			}
			seen[c.name] = fromCaddyfile
		})
	}
	if seen["nothing said"] != seen["defaults"] {
		t.Error("the written-out defaults behave differently from omitted options")
	}
	if seen["defaults"] == seen["all off"] || seen["defaults"] == seen["tailored"] || seen["some"] == seen["all off"] {
		t.Error("configurations that differ behave the same")
	}
}

func port(addr string) string {
	_, p, err := net.SplitHostPort(addr)
	if err != nil {
		panic(err)
	}
	return p
}

// JSON is read strictly, and its values are checked like a Caddyfile's.
func TestJSONIsStrict(t *testing.T) {
	needsCaddy(t, "Caddy's JSON")
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(policy, []byte(slicePolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ fields, want string }{
		{`"policy":"POLICY"`, ""},
		{`"policy":"POLICY","headers":[]`, ""},
		{`"policy":"POLICY","mode":"x"`, `unknown field "mode"`},
		{`"policy":"POLICY","Live":{}`, `unknown field "Live"`},
		{`"policy":1`, "cannot unmarshal number"},
		{`"policy":"POLICY","headers":"off"`, "cannot unmarshal string"},
		{`"policy":"POLICY","enforce":"Block"`, `invalid enforce "Block"`},
		{`"policy":"POLICY","robots_txt":"merge-ish"`, `invalid robots_txt`},
		{`"policy":"POLICY","meta":"on"`, `invalid meta "on"`},
		{`"policy":"POLICY","headers":["X-Robots-Tag"]`, `invalid headers "X-Robots-Tag"`},
		{`"policy":"POLICY","headers":["off","robots-tag"]`, `"headers off" cannot be combined`},
		{``, "no policy file is given"},
		{`"policy":"{nobody.knows}"`, "nobody.knows"},
		{`"policy":"/"`, "is a directory; write the path of the policy file in it"},
		{`"policy":"POLICY","reload":"soon"`, "soon"},
		{`"policy":"POLICY","reload":"1ms"`, "reload"},
		{`"policy":"POLICY","block_with":"politely"`, `invalid block_with "politely": must be respond or error`},
		{`"policy":"POLICY","robots_txt_max_age":"-1s"`, "invalid robots_txt_max_age"},
		{`"policy":"POLICY","tailored":"yes"`, "cannot unmarshal string"},
		{`"policy":"POLICY","verify":["maybe"]`, "maybe"},
		{`"policy":"POLICY","verify_from":["everywhere"]`, "everywhere"},
	} {
		fields := strings.ReplaceAll(c.fields, "POLICY", policy)
		if fields != "" {
			fields = "," + fields
		}
		err := validate(t, `{"admin":{"disabled":true},"apps":{"http":{"servers":{"s":{"routes":[{"handle":[{"handler":"robots_policy"`+fields+`}]}]}}}}}`)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.fields, err, c.want)
		}
	}
}

func validate(t *testing.T, config string) error {
	t.Helper()
	var c caddy.Config
	if err := caddy.StrictUnmarshalJSON([]byte(config), &c); err != nil {
		t.Fatal(err)
	}
	return caddy.Validate(&c)
}

// caddy validate rejects a policy with a mistake, and names the place of the mistake.
func TestValidateCommand(t *testing.T) {
	needsCaddy(t, "caddy validate")
	dir := t.TempDir()
	for name, text := range map[string]string{
		"good.yaml": slicePolicy, "typo.yaml": strings.Replace(slicePolicy, "disallow:", "dissallow:", 1),
		"Caddyfile": "{\n\tadmin off\n}\n\n:0 {\n\trobots_policy {$POLICY}\n}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{
		"good.yaml":    `Valid configuration`,
		"typo.yaml":    `typo\.yaml:4:5: error: .*dissallow`,
		"missing.yaml": `missing\.yaml: no such file`,
	} {
		cmd := asCaddyCommand(dir, "validate", "--config", filepath.Join(dir, "Caddyfile"))
		cmd.Env = append(cmd.Env, "POLICY="+filepath.Join(dir, name))
		out, err := cmd.CombinedOutput()
		if (err == nil) != (name == "good.yaml") || !regexp.MustCompile(want).Match(out) {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}
