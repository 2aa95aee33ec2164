// SPDX-License-Identifier: Apache-2.0

package storecmd

import (
	_ "embed" // the policy
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

//go:embed demo-policy.yaml
var demoPolicy []byte

// demoFolder is a folder with all files for the demo. The demo can run next to another Caddy.
type demoFolder struct {
	dir, policy   string // absolute
	console, site string // addresses
	own           bool   // true if the demo uses its built-in policy
}

// newDemoFolder determines the names of the demo's files in the folder dir, and finds free ports for its site and its
// console. It does not create files. policy is the name of a policy file. If it is "", the demo uses its built-in
// policy.
func newDemoFolder(dir, policy string) (f *demoFolder, err error) {
	f = &demoFolder{own: policy == ""}
	if f.dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	if f.console, err = freeAddress(2020); err != nil {
		return nil, err
	}
	if f.site, err = freeAddress(8080); err != nil {
		return nil, err
	}
	if f.own {
		policy = filepath.Join(f.dir, "site-policy.yaml")
	}
	f.policy, err = filepath.Abs(policy)
	return f, err
}

func (f *demoFolder) activity() string { return filepath.Join(f.dir, "activity") }

// write writes the Caddyfile of the demo and, unless the user has chosen a policy file, the built-in policy. With this
// Caddyfile, Caddy does not disturb another Caddy on this machine: it uses free ports and its own storage, and has no
// admin API.
func (f *demoFolder) write(hosts []string) error {
	if f.own {
		if err := os.WriteFile(f.policy, demoPolicy, 0o600); err != nil {
			return err
		}
	}
	_, port, _ := net.SplitHostPort(f.site)
	sites := make([]string, len(hosts))
	for i, h := range hosts {
		sites[i] = "http://" + h + ":" + port
	}
	text := fmt.Sprintf(`{
	admin off
	persist_config off
	auto_https off
	storage file_system %q

	robots_policy {
		activity %q
		console %s
	}
}

%s {
	bind 127.0.0.1
	robots_policy %q
	respond "A page of the demo."
}
`, filepath.Join(f.dir, "storage"), f.activity(), f.console, strings.Join(sites, ", "), f.policy)
	return os.WriteFile(filepath.Join(f.dir, "Caddyfile"), []byte(text), 0o600)
}

// freeAddress returns an address on this machine with a free port. It tries port numbers upward, beginning with from.
func freeAddress(from int) (string, error) {
	for port := from; port < from+100; port++ {
		l, err := net.Listen("tcp", net.JoinHostPort("", strconv.Itoa(port)))
		if err == nil {
			return net.JoinHostPort("localhost", strconv.Itoa(port)), l.Close()
		}
	}
	return "", fmt.Errorf("none of the ports %d to %d is free", from, from+99)
}
