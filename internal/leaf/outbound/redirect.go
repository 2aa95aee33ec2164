// SPDX-License-Identifier: Apache-2.0

package outbound

import (
	"fmt"
	"net/http"
)

// CheckRedirect, of an http.Client, follows up to three redirects, to https only.
func CheckRedirect(r *http.Request, via []*http.Request) error {
	if len(via) > 3 || r.URL.Scheme != "https" {
		return fmt.Errorf("not following a redirect to %s", r.URL.Redacted())
	}
	return nil
}
