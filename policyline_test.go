// SPDX-License-Identifier: Apache-2.0

package robotspolicy_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	_ "github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	_ "github.com/caddyserver/caddy/v2/modules/caddyhttp"
	_ "github.com/caddyserver/caddy/v2/modules/caddyhttp/standard"
	_ "github.com/caddyserver/caddy/v2/modules/filestorage"

	_ "github.com/robotspolicy/caddy-robots-policy"
)

// If a policy file is missing or has errors, the error has the line of the Caddyfile that names the file.
func TestPolicyErrorsHaveTheCaddyfilesLine(t *testing.T) {
	asValidate(t)
	adapted := adapt(t, "nowhere.yaml")
	var c caddy.Config
	if err := json.Unmarshal(adapted, &c); err != nil {
		t.Fatal(err)
	}
	err := caddy.Validate(&c)
	if err == nil || !strings.Contains(err.Error(), "Caddyfile:8: reading the policy: ") || !strings.Contains(err.Error(), "nowhere.yaml") {
		t.Error(err)
	}
}

// If a policy file cannot be read, the error says what to do.
func TestUnreadablePolicies(t *testing.T) {
	asValidate(t)
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	nowhere := filepath.Join(dir, "nowhere.yaml")
	invalid := write("invalid.yaml", "version: 1\nrules:\n  - for: Google\n    disallow: {crawl: /}\n")
	large := write("large.yaml", "version: 1\n"+strings.Repeat("# a line of many\n", 100_000))
	for path, want := range map[string]string{
		nowhere: "reading the policy: stat " + nowhere + ": no such file or directory; check the name: unless it starts with /, it is relative to the directory in which the server runs",
		dir:     "reading the policy: " + dir + " is a directory; write the path of the policy file in it, such as " + filepath.Join(dir, "site-policy.yaml"),
		large:   large + `:1:1: error: a policy file can have up to 1 MiB; use wildcards instead of listing every page [file-too-large]`,
		invalid: invalid + `:3:10: error: invalid name "Google" (did you mean "Googlebot"?): for all crawlers of this operator, write operator:Google; if this is really the name of a crawler, list it under "crawlers" [bad-audience]`,
	} {
		var c caddy.Config
		if err := json.Unmarshal(adapt(t, path), &c); err != nil {
			t.Fatal(err)
		}
		if err := caddy.Validate(&c); err == nil || !strings.HasSuffix(err.Error(), ": Caddyfile:8: "+want) {
			t.Errorf("%v\nwant Caddyfile:8: %s", err, want)
		}
	}
}

// asValidate lets a test run as `caddy validate`, for which a missing file is an error.
func asValidate(t *testing.T) {
	t.Helper()
	before := os.Args
	os.Args = []string{"caddy", "validate"}
	t.Cleanup(func() { os.Args = before })
}

// adapt returns the configuration for a Caddyfile whose line 8 names a policy.
func adapt(t *testing.T, policy string) []byte {
	t.Helper()
	adapted, _, err := caddyconfig.GetAdapter("caddyfile").Adapt(
		[]byte("{\n\tadmin off\n\tpersist_config off\n\tstorage file_system \""+filepath.ToSlash(t.TempDir())+"\"\n}\nhttp://localhost:0 {\n\troute {\n\t\trobots_policy "+policy+"\n\t}\n}\n"),
		map[string]any{"filename": "Caddyfile"})
	if err != nil {
		t.Fatal(err)
	}
	return adapted
}
