// SPDX-License-Identifier: Apache-2.0

package crawlertest

import (
	"slices"
	"testing"
)

func TestServedPaths(t *testing.T) {
	for _, c := range []struct {
		sent string
		want []string
	}{
		{"/a/b?c=//", []string{"/a/b?c=//", "/a/b?c=//", "/a/b?c=//"}},
		{"//admin/", []string{"//admin/", "/admin/", "/admin/"}},
		{"/x/../%61dmin", []string{"/x/../admin", "/admin", "/admin"}},
		{"/admin%2f", []string{"/admin%2F", "/admin%2F", "/admin/"}},
		{"/x/..;/a", []string{"/x/..;/a", "/x/..;/a", "/a"}},
		{"/caf\u00e9*$", []string{"/caf%C3%A9%2A%24", "/caf%C3%A9%2A%24", "/caf%C3%A9%2A%24"}},
		{"/..", []string{"/..", "/", "/"}},
		{"/%", []string{"/%25", "/%25", "/%25"}},
	} {
		if got := ServedPaths(c.sent); !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.sent, got, c.want)
		}
	}
}
