// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/integration_test/internal/caddytest"
	"github.com/robotspolicy/caddy-robots-policy/integration_test/internal/otherservers"
)

// nodeModes, phpModes and pythonModes list the ways in which the programs in testdata can read targets.
var (
	nodeModes   = []string{"new URL", "new URL", "url.parse", "url.parse of references"}
	phpModes    = []string{"parse_url", "parse_url", "strtok", "script"}
	pythonModes = []string{"PATH_INFO", "urlsplit", "RAW_URI"}
)

// programNames holds the words that stand for the programs in the bodies of sites.
var programNames = []string{"NODE", "PHPCGI", "NGINXCHAIN", "NGINX", "GUNICORN"}

// programIn returns the program that a site needs, or "" if it needs none.
func programIn(body string) string {
	for _, name := range programNames {
		if strings.HasSuffix(body, " "+name) {
			return name
		}
	}
	return ""
}

// programs starts those upstreams that read targets in unusual ways and are installed. It returns their addresses,
// keyed by the names that stand for them in the bodies of sites. dir is the directory of the files.
func programs(t *testing.T, dir string) map[string]string {
	t.Helper()
	addrs := map[string]string{"PHPROOT": filepath.Join(dir, "php")}
	list := filepath.Join(dir, "closed.json")
	if otherservers.Installed("node") {
		addrs["NODE"] = node(t, dir)
	}
	if otherservers.Installed("php-cgi") {
		copyTo(t, addrs["PHPROOT"], "index.php", "testdata/upstream.php")
		copyTo(t, addrs["PHPROOT"], "closed.json", list)
		addrs["PHPCGI"] = caddytest.FreeAddr(t)
		t.Setenv("PHP_FCGI_MAX_REQUESTS", "0")
		otherservers.Run(t, "", []string{addrs["PHPCGI"]}, "php-cgi", "-b", addrs["PHPCGI"])
	}
	if otherservers.Installed("gunicorn") {
		addrs["GUNICORN"] = caddytest.FreeAddr(t)
		copyTo(t, dir, "upstream.py", "testdata/upstream.py") // a separate directory, because Python also writes there
		otherservers.Run(t, "", []string{addrs["GUNICORN"]}, "gunicorn", "-b", addrs["GUNICORN"], "-k", "gthread", "--threads", "4",
			"--worker-tmp-dir", t.TempDir(), "--chdir", dir, "-e", "CLOSED="+list, "upstream:app")
	}
	if otherservers.Installed("nginx") {
		free := caddytest.FreeAddrs(t, 2)
		addrs["NGINX"] = free[0]
		config := "server {\nlisten " + free[0] + ";\nroot " + filepath.Join(dir, "files") + ";\n}\n"
		if node := addrs["NODE"]; node != "" {
			addrs["NGINXCHAIN"] = free[1]
			// Because of the path "/" in proxy_pass, nginx decodes the target and encodes it again.
			config += fmt.Sprintf("server {\nlisten %s;\nmerge_slashes off;\nlocation / {\nproxy_pass http://%s/;\n}\n}\n", free[1], node)
		} else {
			free = free[:1]
		}
		otherservers.Nginx(t, "../..", config, free...)
	}
	return addrs
}

// node starts the upstream of Node.
func node(t *testing.T, dir string) (addr string) {
	t.Helper()
	addr = caddytest.FreeAddr(t)
	otherservers.Run(t, "", []string{addr}, "node", "--no-deprecation", "testdata/upstream.js", port(addr), filepath.Join(dir, "closed.json"))
	return addr
}

func copyTo(t *testing.T, dir, name, from string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
		t.Fatal(err)
	}
}
