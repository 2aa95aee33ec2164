// SPDX-License-Identifier: Apache-2.0

package channels_test

import (
	"fmt"

	"github.com/robotspolicy/caddy-robots-policy/channels"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// The policy sets the path of its RSL document, and At returns a channel only for this path.
func ExampleAt() {
	publish := &policy.Publish{RSL: "/license.xml"}
	fmt.Println(channels.At(publish, "/license.xml") != nil)
	fmt.Println(channels.At(publish, "/other.xml") != nil)
	// Output:
	// true
	// false
}
