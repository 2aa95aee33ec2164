// SPDX-License-Identifier: Apache-2.0

package effect

import (
	"math/bits"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// Loss is a set of losses, with a bit for each row of the table of losses. Each row stands for a use of pages that a
// crawler can lose, in part or completely.
type Loss uint16

// The losses.
const (
	LossBlocked     Loss = 1 << iota // the server blocks requests
	LossCrawl                        // crawling is disallowed, and requests are not blocked
	LossIndex                        // pages must not be indexed
	LossUnavailable                  // pages must not be indexed after a date, or after an earlier date than before
	LossSearch                       // pages must not be used for search
	LossSnippet                      // snippets must be shorter, or must not be shown
	LossLink                         // search results must not link to pages
	LossLimit                        // requests have a rate limit, or a stricter one than before
	LossFollow                       // links on pages must not be followed
	LossImage                        // images of pages must not be indexed
	LossPreview                      // previews of images must be smaller, or must not be shown
	LossVideo                        // previews of videos must be shorter, or must not be shown
	LossCopy                         // copies of pages must not be shown, or only parts of the copies
	LossDelay                        // robots.txt has a longer crawl-delay
	LossTrain                        // pages must not be used to train AI
	LossAIUse                        // pages must not be used in AI answers
	numLosses       = iota
)

// The safety checks that the key "intended" waives.
const (
	SafetyBlocks    = "blocks-search"
	SafetyDisallows = "disallows-search"
	SafetyIndex     = "site-not-indexed"
	SafetyWWW       = "includes-www"

	// SafetyLimits is the check that exempts search engines from rate limits, unless a rule waives it.
	SafetyLimits = "limits-search"
)

// row describes one kind of loss. For each row, the type left has a value that says how much a policy allows to a
// crawler. If this value is less than under the old policy, the difference is a loss.
type row struct {
	word   string // the name of the loss in JSON
	text   string // a text for people, which follows "is" or "are"
	waived string // the safety check that a rule must waive to declare the loss as intended
	counts bool   // the loss is counted against the search-loss limit
	from   string // the usages, rules and settings that can cause the loss, each between spaces
}

var table = [numLosses]row{
	{"blocked", "blocked", SafetyBlocks, true, " crawl "},
	{"crawl", "disallowed", SafetyDisallows, true, " crawl "},
	{"index", "kept out of the index", SafetyIndex, true, " index noindex unavailable_after "},
	{"unavailable", "kept out of the index from a certain date on", SafetyIndex, true, " index unavailable_after "},
	{"search", "disallowed for search", SafetyIndex, true, " search "},
	{"snippet", "shown with a shorter snippet or no snippet", SafetyIndex, true, " present-snippet nosnippet max-snippet "},
	{"link", "shown without a link", SafetyIndex, true, " present-link "},
	{"limit", "limited", SafetyLimits, true, " limit crawl-delay "},
	{"follow", "not used to find other pages", SafetyIndex, false, " follow nofollow "},
	{"image", "shown without its images", SafetyIndex, false, " noimageindex "},
	{"preview", "shown with smaller images or none", SafetyIndex, false, " present-thumbnail max-image-preview "},
	{"video", "shown with shorter videos or none", SafetyIndex, false, " present-thumbnail max-video-preview "},
	{"copy", "not shown from a copy", SafetyIndex, false, " preserve present-currentcopy present-oldcopy present-oldsnippet present-oldthumbnail noarchive nocache "},
	{"crawl-delay", "crawled more slowly", SafetyDisallows, false, " crawl-delay "},
	{"train-ai", "disallowed for AI training", SafetyIndex, false, " train-ai "},
	{"ai-use", "disallowed for AI answers", SafetyIndex, false, " ai-use "},
}

// Counted is the set of losses that count against the search-loss limit.
var Counted = rows(func(r *row) bool { return r.counts })

func rows(fits func(*row) bool) (all Loss) {
	for i := range table {
		if fits(&table[i]) {
			all |= 1 << i
		}
	}
	return all
}

// LossesFrom returns the losses that the usage, the robots control rule or the setting with the given name can cause.
func LossesFrom(name string) Loss {
	return rows(func(r *row) bool { return strings.Contains(r.from, " "+name+" ") })
}

// Each lists the single losses in l.
func (l Loss) Each() (all []Loss) {
	for ; l != 0; l &= l - 1 {
		all = append(all, l&-l)
	}
	return all
}

// row returns the index of a single loss in the table.
func (l Loss) row() int { return bits.TrailingZeros16(uint16(l)) }

func (l Loss) words(word func(*row) string, sep string) string {
	each := l.Each()
	all := make([]string, len(each))
	for i, one := range each {
		all[i] = word(&table[one.row()])
	}
	return strings.Join(all, sep)
}

// MarshalText returns the names of the losses, such as "crawl" or "index snippet".
func (l Loss) MarshalText() ([]byte, error) {
	return []byte(l.words(func(r *row) string { return r.word }, " ")), nil
}

// String returns a text for people, such as "blocked" or "kept out of the index and limited".
func (l Loss) String() string { return l.words(func(r *row) string { return r.text }, " and ") }

// Intended returns a line of a policy file. In a rule, this line declares the losses as intended.
func (l Loss) Intended() string {
	var checks []string
	for _, one := range l.Each() {
		if check := table[one.row()].waived; !slices.Contains(checks, check) {
			checks = append(checks, check)
		}
	}
	return "intended: [" + strings.Join(checks, ", ") + "]"
}

// Waives reports whether the values of the key "intended" waive a safety check. The value blocks-search also waives
// disallows-search.
func Waives(intended []string, check string) bool {
	return slices.Contains(intended, check) || check == SafetyDisallows && slices.Contains(intended, SafetyBlocks)
}

// intends reports whether a rule, or the policy's entry for a crawler, declares a loss as intended.
func (r *row) intends(rule *policy.Rule, crawler *policy.Crawler) bool {
	return Waives(crawler.IntendedChecks, r.waived) || rule != nil && (rule.Intended || Waives(rule.IntendedChecks, r.waived))
}
