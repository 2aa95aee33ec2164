// SPDX-License-Identifier: Apache-2.0

package robotspolicy_test

import (
	"encoding/json"
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

// A policy file that is missing or has errors is reported with the line of the
// Caddyfile that names it, and only for the configuration that came from there.
func TestPolicyErrorsHaveTheCaddyfilesLine(t *testing.T) {
	adapted, _, err := caddyconfig.GetAdapter("caddyfile").Adapt(
		[]byte("{\n\tadmin off\n\tpersist_config off\n\tstorage file_system \""+filepath.ToSlash(t.TempDir())+"\"\n}\nhttp://localhost:0 {\n\troute {\n\t\trobots_policy nowhere.yaml\n\t}\n}\n"),
		map[string]any{"filename": "Caddyfile"})
	if err != nil {
		t.Fatal(err)
	}
	validate := func() error {
		var c caddy.Config
		if err := json.Unmarshal(adapted, &c); err != nil {
			t.Fatal(err)
		}
		return caddy.Validate(&c)
	}
	err = validate()
	if err == nil || !strings.Contains(err.Error(), "Caddyfile:8: reading the policy: ") || !strings.Contains(err.Error(), "nowhere.yaml") {
		t.Error(err)
	}
	if err := validate(); err == nil || strings.Contains(err.Error(), "Caddyfile:") {
		t.Errorf("the same JSON later: %v", err)
	}
}
