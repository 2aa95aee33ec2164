// SPDX-License-Identifier: Apache-2.0

package crawlers

import (
	"hash/maphash"
	"strings"
	"sync/atomic"
)

// recent caches what recognisers have found in User-Agent headers lately, the last one
// in each slot. A few hundred browsers send most requests, so that most of them take
// one comparison. The cache is shared by all recognisers and so has a fixed size: one
// for each policy would cost more than many policies do.
var recent [recentSlots]atomic.Pointer[finding]

const (
	recentSlots = 4096
	maxRecentUA = 512 // bytes; longer headers are not cached
)

// finding is what RecognizeEach finds in one header line.
type finding struct {
	by    uint64 // Recognizer.id
	ua    string
	found []int
}

var (
	recentSeed     = maphash.MakeSeed()
	lastRecognizer atomic.Uint64
)

// RecognizeRecent is [Recognizer.RecognizeEach] for the usual request, which has one
// User-Agent line, through a cache.
func (r *Recognizer) RecognizeRecent(dst []int, uas []string) []int {
	if len(uas) != 1 || len(uas[0]) > maxRecentUA || r.id == 0 || len(dst) > 0 {
		return r.RecognizeEach(dst, uas)
	}
	ua := uas[0]
	slot := &recent[(maphash.String(recentSeed, ua)+r.id)%recentSlots]
	if f := slot.Load(); f != nil && f.by == r.id && f.ua == ua {
		return append(dst, f.found...)
	}
	dst = r.RecognizeEach(dst, uas)
	f := &finding{by: r.id, ua: strings.Clone(ua)} // it may be part of all headers of a request
	if len(dst) > 0 {
		f.found = append(f.found, dst...)
	}
	slot.Store(f)
	return dst
}
