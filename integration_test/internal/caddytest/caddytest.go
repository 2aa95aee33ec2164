// SPDX-License-Identifier: Apache-2.0

// Package caddytest runs Caddy with this module in the process of a test.
package caddytest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	_ "github.com/caddyserver/caddy/v2/modules/standard" // modules that a Caddyfile needs
	"github.com/gofrs/flock"

	_ "github.com/robotspolicy/caddy-robots-policy"
	_ "github.com/robotspolicy/caddy-robots-policy/console" // the tested module
	"github.com/robotspolicy/caddy-robots-policy/crawlers/verify"
)

// FreeAddr returns an unused loopback address as host:port.
func FreeAddr(t testing.TB) string {
	t.Helper()
	return FreeAddrs(t, 1)[0]
}

// FreeAddrs returns n different addresses. Their ports are outside the range that systems use for outgoing connections.
// Within that range, any program could take a port before the test listens on it. Test programs that run at the same
// time get different ports. Otherwise two of them could listen on the same port without an error, because Caddy allows
// other Caddy processes to share a port.
func FreeAddrs(t testing.TB, n int) (addrs []string) {
	t.Helper()
	first := firstPort()
	for tries := 0; len(addrs) < n; tries++ {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", first+int(nextPort.Add(1))%portsEach))
		if err != nil {
			if tries > 1000 {
				t.Fatal(err)
			}
			continue
		}
		defer l.Close()
		addrs = append(addrs, l.Addr().String())
	}
	return addrs
}

const portsEach = 2000 // the number of ports for a test program

var (
	nextPort atomic.Uint32
	portLock *flock.Flock // reserved until the program ends
)

// firstPort returns the first port of this test program. It locks a file to reserve the ports. If ten other test
// programs have already reserved all ports, it shares the ports of one of these programs, chosen at random.
var firstPort = sync.OnceValue(func() int {
	for i := range 10 {
		portLock = flock.New(filepath.Join(os.TempDir(), fmt.Sprintf("robots-policy-test-ports-%d", i)))
		if locked, err := portLock.TryLock(); locked && err == nil {
			return 10_000 + i*portsEach
		}
	}
	return 10_000 + rand.IntN(10)*portsEach
})

// Adapt returns the JSON of a Caddyfile, and Caddy's warnings about it except warnings about formatting.
func Adapt(caddyfile string) ([]byte, []caddyconfig.Warning, error) {
	config, all, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(caddyfile), map[string]any{"filename": "Caddyfile"})
	var warnings []caddyconfig.Warning
	for _, w := range all {
		if !strings.Contains(w.Message, "not formatted") {
			warnings = append(warnings, w)
		}
	}
	return config, warnings, err
}

// ownStorage is true if Main has set the storage.
var ownStorage bool

// Load runs Caddy with a Caddyfile, and stops the previous configuration. A process has only one Caddy, so tests that
// use Load do not run in parallel. A warning about the Caddyfile is returned as an error. The package's TestMain must
// call Main.
func Load(caddyfile string) error {
	if !ownStorage {
		return errors.New("the package has no TestMain that calls caddytest.Main")
	}
	config, warnings, err := Adapt(caddyfile)
	if err != nil {
		return err
	}
	if len(warnings) > 0 {
		return fmt.Errorf("warnings: %v", warnings)
	}
	return caddy.Load(config, true)
}

// asCaddy is the name of an environment variable. If the variable is set, a test program behaves like the command
// caddy.
const asCaddy = "ROBOTSPOLICY_TEST_AS_CADDY"

// Main runs the tests of a package. If Command started the program, Main instead runs Caddy's command, so that no test
// has to build Caddy. In both cases, it first calls setup, and asCaddy is true if it will run Caddy's command. In
// tests, the default storage of Caddy is an empty folder. So a developer's own Caddy storage, for example with a
// catalog of crawlers, does not affect a test. Tests also do not change Caddy's saved configuration.
func Main(m interface{ Run() int }, setup func(asCaddy bool)) {
	command := os.Getenv(asCaddy) != ""
	os.Unsetenv(asCaddy)
	verify.SetSnapshotDate(time.Now().AddDate(0, -2, 0)) // at this age, the embedded lists verify clients, but do not detect impostors
	setup(command)
	if command {
		caddycmd.Main()
		return
	}
	dir, err := os.MkdirTemp("", "robots-policy-storage")
	if err != nil {
		panic(err)
	}
	caddy.DefaultStorage.Path, ownStorage = dir, true
	caddy.ConfigAutosavePath = filepath.Join(dir, "autosave.json")
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// Command returns the command `caddy ARGS…` with this module. It runs in a new process that stores its data in the
// folder dir. The package's TestMain must call Main.
func Command(dir string, args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), asCaddy+"=1", "XDG_DATA_HOME="+filepath.Join(dir, "data"), "XDG_CONFIG_HOME="+dir)
	return cmd
}
