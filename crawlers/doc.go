// SPDX-License-Identifier: Apache-2.0

// Package crawlers knows the crawlers of the web: a curated catalogue of their
// product tokens, operators and purposes, and a recogniser that finds those
// tokens in a User-Agent header.
//
// The catalogue says what an operator documents. It is only ever asked for
// exact names, so a crawler that is not in it is simply not known: it is never
// recognised, never belongs to a category and is never refused.
//
// A token counts only where it stands by itself in the User-Agent, never as a
// part of a longer word and never inside a URL. See [Recognizer].
package crawlers
