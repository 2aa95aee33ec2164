// SPDX-License-Identifier: Apache-2.0

package console

import (
	"github.com/robotspolicy/caddy-robots-policy/activity/store"
	"github.com/robotspolicy/caddy-robots-policy/internal/recorders"
)

// runningStore returns the store of the running configuration, nil if it has none.
func runningStore() *store.Reader {
	a, ok := recorders.Find[*Activity]()
	if !ok {
		return nil
	}
	return a.Reader()
}

// storeError is why the store cannot write at the moment, nil if it can.
func storeError() error {
	if a, ok := recorders.Find[*Activity](); ok {
		return a.Err()
	}
	return nil
}
