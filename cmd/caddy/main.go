// SPDX-License-Identifier: Apache-2.0

// Command caddy is Caddy with its standard modules, the robots_policy plugin and the plugin's console.
package main

import (
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/robotspolicy/caddy-robots-policy"
	_ "github.com/robotspolicy/caddy-robots-policy/console"
)

func main() {
	caddycmd.Main()
}
