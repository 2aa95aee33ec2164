// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"fmt"
	"sync"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
)

// policyLines are the places in Caddyfiles, adapted by this process, that name policies:
// the JSON that is provisioned has no lines.
var policyLines sync.Map

func rememberLine(policy string, d *caddyfile.Dispenser) {
	policyLines.Store(policy, fmt.Sprintf("%s:%d", d.File(), d.Line()))
}

// withLine adds the place that names a policy to an error about it.
func withLine(policy string, err error) error {
	if at, ok := policyLines.Load(policy); ok && err != nil {
		return fmt.Errorf("%s: %w", at, err)
	}
	return err
}
