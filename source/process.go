// SPDX-License-Identifier: Apache-2.0

package source

import (
	"os"

	"github.com/caddyserver/caddy/v2"
)

// validatingOnly reports whether Caddy was started only to check a configuration
// (caddy validate, caddy adapt --validate). Caddy does not tell its modules, so this
// looks at the command line. A broken policy must then be reported although there is
// a last good one, and nothing is saved: the user who validates is often not the
// one whom Caddy runs as.
func validatingOnly() bool {
	return len(os.Args) > 1 && (os.Args[1] == "validate" || os.Args[1] == "adapt")
}

// startingUp reports whether Caddy is loading its first configuration to run it.
func startingUp() bool {
	return !validatingOnly() && caddy.ActiveContext().Context == nil
}
