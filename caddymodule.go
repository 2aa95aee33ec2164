// SPDX-License-Identifier: Apache-2.0

// Package robotspolicy is a Caddy module that makes robots.txt, the response
// headers, the robots meta elements of a page and the edge say the same thing
// about what crawlers may do.
package robotspolicy
