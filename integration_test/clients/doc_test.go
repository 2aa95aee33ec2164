// SPDX-License-Identifier: Apache-2.0

// Package clients lets real crawlers and a browser visit the example site under the example policies, on loopback. It
// checks in Caddy's access log whether they have requested exactly the pages that the policy allows.
// docs/contributing/agreement.md lists the crawlers and their peculiarities.
package clients
