// SPDX-License-Identifier: Apache-2.0

// Package robotsserve renders a policy as the robots.txt of a host, and serves
// it. The file means to every reader what the policy means: crawl as groups of
// RFC 9309, every usage of ACAP 1.0 as its records, application directives and
// AIPREF preferences as extensions of the groups.
package robotsserve
