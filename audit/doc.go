// SPDX-License-Identifier: Apache-2.0

// Package audit looks at a website from outside, as crawlers do: it fetches robots.txt
// and a few pages through the public address, says what each channel tells a crawler,
// and reports where the channels contradict each other or a policy.
//
// An audit is polite. It obeys robots.txt under its own product token, sends one request
// a second, says who it is, and connects to private addresses only if the URL itself
// names one.
package audit
