// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/robotspolicy/caddy-robots-policy/integration_test/internal/caddytest"
)

// kubernetesConfig returns the files of the ConfigMap in the manifests for Kubernetes.
func kubernetesConfig(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../packaging/kubernetes/caddy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for d := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var m struct {
			Kind string
			Data map[string]string
		}
		if err := d.Decode(&m); errors.Is(err, io.EOF) {
			t.Fatal("there is no ConfigMap")
		} else if err != nil {
			t.Fatal(err)
		}
		if m.Kind == "ConfigMap" {
			return m.Data
		}
	}
}

// validated runs `caddy validate` on the configuration of a container image, and returns the output. It replaces the
// folders of the image in the configuration by folders of the test.
func validated(t *testing.T, config string, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	here := strings.NewReplacer("/etc/caddy/", dir+"/", "/srv/examples/", "../examples/", "/data/", dir+"/data/", "/var/www/html", dir)
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "Caddyfile"), []byte(here.Replace(config)), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := caddytest.Command(dir, "validate", "--config", filepath.Join(dir, "Caddyfile"), "--adapter", "caddyfile").CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	return string(out)
}

// TestRecipesValidate checks that Caddy accepts the configurations of the recipes without a warning. The recipes for
// Kubernetes and for Docker Compose must contain a console, and an activity database for its data.
func TestRecipesValidate(t *testing.T) {
	cluster := kubernetesConfig(t)
	read := func(name string) string {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for name, c := range map[string]struct {
		config string
		files  map[string]string
		has    []string
	}{
		"Kubernetes": {cluster["Caddyfile"], cluster, []string{"trusted_proxies_strict\n", "activity /data/", "console\n"}},
		"compose":    {read("../packaging/compose/Caddyfile"), nil, []string{"activity /data/", "robots_policy_console {"}},
		"Debian":     {read("../packaging/deb/Caddyfile"), map[string]string{"site-policy.yaml": read("../packaging/deb/site-policy.yaml")}, nil},
		"example":    {read("../Caddyfile.example"), nil, []string{"console"}},
	} {
		t.Run(name, func(t *testing.T) {
			config := strings.NewReplacer(" examples/", " ../examples/", "caddy-data/", t.TempDir()+"/").Replace(c.config)
			if out := validated(t, config, c.files); !strings.Contains(out, "Valid configuration") || regexp.MustCompile(`"level":"warn".*robots_policy`).MatchString(out) {
				t.Errorf("caddy validate:\n%s", out)
			}
			for _, has := range c.has {
				if !strings.Contains(config+"\n", has) && !strings.Contains(c.config, has) {
					t.Errorf("the recipe lacks %q", has)
				}
			}
		})
	}
	loose := strings.Replace(cluster["Caddyfile"], "trusted_proxies_strict\n", "", 1)
	if out := validated(t, loose, cluster); !strings.Contains(out, "trusted_proxies_strict") {
		t.Errorf("no warning that clients can choose their address:\n%s", out)
	}
}

// TestTrustedProxiesAreStrict checks that no Caddyfile in this repository lets clients choose their own address.
func TestTrustedProxiesAreStrict(t *testing.T) {
	shown := map[string]string{"Kubernetes": kubernetesConfig(t)["Caddyfile"]}
	for _, b := range shownBlocks(t) {
		if b.language == "caddyfile" {
			shown[b.page+" "+b.text] = b.text
		}
	}
	for _, pattern := range []string{"../Caddyfile*", "../examples/*/Caddyfile", "../packaging/*/Caddyfile"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			shown[name] = string(text)
		}
	}
	found := 0
	for name, text := range shown {
		if !strings.Contains(text, "trusted_proxies ") {
			continue
		}
		if found++; !strings.Contains(text, "trusted_proxies_strict") {
			t.Errorf("%s has trusted_proxies without trusted_proxies_strict", name)
		}
	}
	if found < 4 {
		t.Errorf("only %d Caddyfiles with trusted_proxies", found)
	}
}
