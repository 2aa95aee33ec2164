// SPDX-License-Identifier: Apache-2.0

package crawlertest

import "testing"

func TestRead8941(t *testing.T) {
	for _, good := range []string{"*;noindex", `a;b=1;c="x\"";d=?0;e=-1.5;f=x:y, g`, "a;b=:YQ==:"} {
		if _, err := Read8941(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{"*;unavailable_after=@1", `a;b=%"x"`, "a,", "a;", "a;B", "a b", "a;b=", `a;b="é"`, "a;b=1.", "9a"} {
		if got, err := Read8941(bad); err == nil {
			t.Errorf("%q is read as %v", bad, got)
		}
	}
}
