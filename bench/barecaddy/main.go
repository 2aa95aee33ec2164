// SPDX-License-Identifier: Apache-2.0

// Command barecaddy is Caddy with its standard modules and the handler "least", but without robots_policy. The
// benchmark compares it with a Caddy that contains robots_policy.
package main

import (
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	_ "github.com/caddyserver/caddy/v2/modules/standard"
)

func main() {
	caddycmd.Main()
}
