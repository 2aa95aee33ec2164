// SPDX-License-Identifier: Apache-2.0

// Package clients has real crawlers and a browser visit the example site under
// the example policies, on loopback, and reads in Caddy's access log whether they
// asked for what the policy allows. docs/contributing/agreement.md tells which they are and what
// is peculiar about each.
package clients
