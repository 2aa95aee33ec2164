// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// ConsoleAddress is where the console is unless the configuration says otherwise.
const ConsoleAddress = "http://localhost:2020/"

// exampleAddress is that of the site in Caddyfile.example.
const exampleAddress = "http://localhost:8080"

// AnnounceExample says on the standard error what can be done with the example, if the
// command line args starts it: Caddy's own log does not.
func AnnounceExample(args []string) {
	if startsExample(args) {
		go announce(os.Stderr, exampleAddress, time.Minute)
	}
}

func startsExample(args []string) bool {
	if len(args) < 2 || args[1] != "run" {
		return false
	}
	for _, a := range args[2:] {
		if name := filepath.Base(a[strings.IndexByte(a, '=')+1:]); name == "Caddyfile.example" {
			return true
		}
	}
	return false
}

// announce waits until the address takes connections, and says what to try. It sends no
// request: the console would list it as the site's first visit.
func announce(w io.Writer, address string, limit time.Duration) {
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		conn, err := net.DialTimeout("tcp", strings.TrimPrefix(address, "http://"), time.Second)
		if err != nil {
			continue
		}
		_ = conn.Close()
		_, _ = fmt.Fprintf(w, `
The example newspaper is at %[1]s. Try in another terminal:

  curl %[1]s/robots.txt
  curl -i -A GPTBot %[1]s/

The console is at %[2]s

`, address, ConsoleAddress)
		return
	}
}
