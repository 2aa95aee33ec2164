// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
)

// sample is a path that a pattern matches and that patterns match only if they
// say so in general: what is free in the pattern is filled with control octets,
// which no path pattern names.
func sample(p pathpattern.Pattern) string {
	text := p.String()
	if p.Anchored() {
		text = text[:len(text)-1]
	} else {
		text += "%01"
	}
	if text[0] == '*' {
		text = "/" + text
	}
	return strings.ReplaceAll(text, "*", "%02")
}

// covers reports whether p matches everything that q matches. It may say no where
// both have wildcards and the answer is yes.
func covers(p, q pathpattern.Pattern) bool {
	text := q.String()
	if q.Anchored() {
		text = text[:len(text)-1]
	} else if p.Anchored() && !strings.HasSuffix(p.String(), "*$") {
		return false
	}
	if text[0] == '*' && p.String()[0] == '/' {
		if p.IsAll() {
			return true
		}
		text = "/" + text
	}
	return p.Match(text) // the "*" of q is an octet that only a "*" of p matches
}

// overlap reports whether some path matches both of two patterns.
func overlap(p, q string) bool {
	a, b := glob(p), glob(q)
	if !strings.Contains(a[:len(a)-1], "*") && !strings.Contains(b[:len(b)-1], "*") {
		return plainOverlap(a, b)
	}
	// row[j] says whether the rest of a and the rest of b from j on can match.
	row := make([]bool, len(b)+1)
	for i := len(a); i >= 0; i-- {
		last := row
		row = make([]bool, len(b)+1)
		for j := len(b); j >= 0; j-- {
			switch {
			case i == len(a) && j == len(b):
				row[j] = true
			case i < len(a) && a[i] == '*':
				row[j] = last[j] || j < len(b) && row[j+1]
			case j < len(b) && b[j] == '*':
				row[j] = row[j+1] || i < len(a) && last[j]
			default:
				row[j] = i < len(a) && j < len(b) && a[i] == b[j] && last[j+1]
			}
		}
	}
	return row[0]
}

// glob is a pattern as a text in which only "*" is special.
func glob(pattern string) string {
	if len(pattern) > 1 && pattern[len(pattern)-1] == '$' {
		return pattern[:len(pattern)-1]
	}
	return pattern + "*"
}

// plainOverlap is overlap for texts whose only "*" is at the end.
func plainOverlap(a, b string) bool {
	x, wildA := strings.CutSuffix(a, "*")
	y, wildB := strings.CutSuffix(b, "*")
	return x == y || wildA && strings.HasPrefix(y, x) || wildB && strings.HasPrefix(x, y)
}

// narrower compares two patterns by ACAP 1.0 section 2.4.5, without regard to case
// (section 2.8): -1 when p has the narrower scope, 1 when q has, 0 when that
// cannot be told.
func narrower(p, q string) int {
	p, q = strings.ToLower(p), strings.ToLower(q)
	for i := 0; ; i++ {
		switch {
		case i == len(p) && i == len(q):
			return 0
		case i == len(p):
			return 1
		case i == len(q):
			return -1
		case p[i] == q[i]:
			continue
		case p[i] == '$':
			return 1
		case q[i] == '$':
			return -1
		case p[i] == '*':
			return 1
		case q[i] == '*':
			return -1
		}
		return 0
	}
}
