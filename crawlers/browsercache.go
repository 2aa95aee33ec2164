// SPDX-License-Identifier: Apache-2.0

package crawlers

import (
	"hash/maphash"
	"math/rand/v2"
	"strings"
	"sync/atomic"
)

// browsers remembers User-Agents that name no crawler: nearly all requests come with one of a
// few hundred. A new one takes the place of another, which bounds the memory, but one time in
// eight, so that a flood of different ones costs little and drives out little. It is global
// because the bound is that of the process, however many policies there are.
var browsers [4096]atomic.Pointer[browser]

type browser struct {
	userAgent string
	to        uint64 // the Recognizer that found nothing, or guess
}

// guess is [Automated] in place of a Recognizer.
const guess = 0

var recognizers atomic.Uint64

// maxBrowser is the greatest length of a User-Agent that is remembered.
const maxBrowser = 512

var browserSeed = maphash.MakeSeed()

// isBrowser reports whether a User-Agent is remembered. If not, it returns the place for it,
// or nil if it is not to be remembered.
func isBrowser(userAgent string, to uint64) (bool, *atomic.Pointer[browser]) {
	if len(userAgent) > maxBrowser {
		return false, nil
	}
	place := &browsers[(maphash.String(browserSeed, userAgent)^to)%uint64(len(browsers))]
	b := place.Load()
	if b == nil {
		return false, place
	}
	if b.to == to && b.userAgent == userAgent {
		return true, nil
	}
	if rand.Uint32()%8 != 0 { //nolint:gosec // no secret
		return false, nil
	}
	return false, place
}

// remember stores a User-Agent, without the header that it is part of.
func remember(place *atomic.Pointer[browser], userAgent string, to uint64) {
	if place != nil {
		place.Store(&browser{strings.Clone(userAgent), to})
	}
}
