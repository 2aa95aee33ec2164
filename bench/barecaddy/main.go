// SPDX-License-Identifier: Apache-2.0

// Command barecaddy is Caddy with its standard modules, and with a handler for the row "least". The benchmark uses it
// as the base for Caddy with robots_policy.
package main

import (
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	_ "github.com/caddyserver/caddy/v2/modules/standard"
)

func main() {
	caddycmd.Main()
}
