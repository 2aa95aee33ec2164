// SPDX-License-Identifier: Apache-2.0

package pathpattern_test

import (
	"fmt"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
)

func ExampleIndex_Matches() {
	index := pathpattern.NewIndex([]pathpattern.Entry[string]{
		{Pattern: pathpattern.MustParse("/shop/"), Value: "disallow"},
		{Pattern: pathpattern.MustParse("/shop/*.jpg$"), Value: "allow"},
	}, func(a, _ string) string { return a })
	for _, path := range []string{"/shop/cart", "/shop/lamp.jpg", "/shop/lamp.jpg?size=2"} {
		fmt.Print(path)
		index.Matches(path, func(value string) { fmt.Print(" ", value) })
		fmt.Println()
	}
	// Output:
	// /shop/cart disallow
	// /shop/lamp.jpg disallow allow
	// /shop/lamp.jpg?size=2 disallow
}
