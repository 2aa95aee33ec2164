// SPDX-License-Identifier: Apache-2.0

package pathpattern_test

import (
	"fmt"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
)

// The longest pattern that matches decides (RFC 9309 section 2.2.2).
func ExampleIndex_Longest() {
	index := pathpattern.NewIndex([]pathpattern.Entry[string]{
		{Pattern: pathpattern.MustParse("/shop/"), Value: "disallow"},
		{Pattern: pathpattern.MustParse("/shop/*.jpg$"), Value: "allow"},
	}, func(a, _ string) string { return a })
	for _, path := range []string{"/shop/cart", "/shop/lamp.jpg", "/shop/lamp.jpg?size=2"} {
		length, value := index.Longest(path)
		fmt.Println(path, length, value)
	}
	// Output:
	// /shop/cart 6 disallow
	// /shop/lamp.jpg 12 allow
	// /shop/lamp.jpg?size=2 6 disallow
}
