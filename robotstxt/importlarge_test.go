// SPDX-License-Identifier: Apache-2.0

package robotstxt

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// The two largest known files of real sites can be imported. One has 40 groups with 4,200 paths, and 1,900 of the paths
// contain "*". The other has 5 groups with 1,600 paths, and 1,250 of the paths contain "*".
func TestImportOfTheLargestKnownFiles(t *testing.T) {
	t.Parallel()
	for _, size := range []struct{ groups, paths, wild int }{{40, 105, 47}, {5, 320, 250}} {
		var b strings.Builder
		for g := range size.groups {
			fmt.Fprintf(&b, "User-agent: Example%dBot\n", g)
			for i := range size.paths {
				star := ""
				if i < size.wild {
					star = "*"
				}
				fmt.Fprintf(&b, "Disallow: /section-%d/%sid=%d-%d\n", i%9, star, g, i)
			}
		}
		im, err := Import([]byte(b.String()), nil)
		if err != nil {
			t.Errorf("%d groups: %v", size.groups, err)
			continue
		}
		statements := 0
		for _, r := range im.Spec.Rules {
			statements += len(r.Statements)
		}
		if statements < size.groups*size.paths {
			t.Errorf("%d groups: %d statements", size.groups, statements)
		}
	}
	var names strings.Builder
	for i := range 2 * maxImported {
		fmt.Fprintf(&names, "Disallow: /%d\n", i)
	}
	if _, err := Import([]byte("User-agent: *\n"+names.String()), nil); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a file far larger: %v", err)
	}
}
