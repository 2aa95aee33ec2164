// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"fmt"
	"mime"
	"slices"
)

// documents speak to AI crawlers and agents beside robots.txt, by their paths, and the
// media types that they have. This program publishes none of them.
var documents = []struct {
	path  string
	types []string
}{
	{"/llms.txt", []string{"text/plain", "text/markdown"}},
	{"/agents.txt", []string{"text/plain", "text/markdown"}},
	{"/.well-known/agent-permissions.json", []string{"application/json"}},
}

// listDocuments notes the documents that the site has.
func (a *auditor) listDocuments(ctx context.Context) {
	for _, d := range documents {
		u := *a.base
		u.Path, u.RawPath, u.RawQuery = d.path, "", ""
		if !a.mayFetch(&u) {
			continue
		}
		r := a.fetch.get(ctx, &u, a.own)
		if !r.ok() {
			continue
		}
		if media, _, err := mime.ParseMediaType(r.header.Get("Content-Type")); err == nil && slices.Contains(d.types, media) {
			a.add(finding(codeDocument, u.String(), "", fmt.Sprintf("the site has %s, which no policy states and this program does not publish", d.path),
				"see that it says what the policy says"))
		}
	}
}
