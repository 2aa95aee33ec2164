// SPDX-License-Identifier: Apache-2.0

package effect

import (
	"math/bits"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// Loss is a set of rows of the table of losses, as bits. Each row is a use of pages that a crawler loses in part or
// in full.
type Loss uint16

// The rows.
const (
	LossBlocked     Loss = 1 << iota // the server blocks requests
	LossCrawl                        // crawling is disallowed, and requests are not blocked
	LossIndex                        // pages must not be indexed
	LossUnavailable                  // pages must not be indexed from an earlier date on
	LossSearch                       // pages must not be used for search
	LossSnippet                      // snippets must be shorter, or none
	LossLink                         // links to pages must not be shown
	LossLimit                        // requests are limited, or more than before
	LossFollow                       // links of pages must not be followed
	LossImage                        // images of pages must not be indexed
	LossPreview                      // previews of images must be smaller, or none
	LossVideo                        // previews of videos must be shorter, or none
	LossCopy                         // copies of pages must not be shown, or less of them
	LossDelay                        // a longer crawl-delay is asked for
	LossTrain                        // AI must not be trained with pages
	LossAIUse                        // AI must not answer with pages
	numLosses       = iota
)

// The safety checks that the key intended waives.
const (
	SafetyBlocks    = "blocks-search"
	SafetyDisallows = "disallows-search"
	SafetyIndex     = "site-not-indexed"
	SafetyWWW       = "includes-www"

	// SafetyLimits exempts search engines from limits, unless it is waived.
	SafetyLimits = "limits-search"
)

// row is one kind of loss. For every row, a policy leaves a crawler a value, and less than before is lost.
type row struct {
	word   string // in JSON
	text   string // follows "is" and "are"
	waived string // the safety check that the key intended names
	counts bool   // against the search-loss limit
	from   string // the usages, rules and settings that cause it, each between spaces
}

var table = [numLosses]row{
	{"blocked", "blocked", SafetyBlocks, true, " crawl "},
	{"crawl", "disallowed", SafetyDisallows, true, " crawl "},
	{"index", "not to be indexed", SafetyIndex, true, " index noindex unavailable_after "},
	{"unavailable", "not to be indexed from some date on", SafetyIndex, true, " index unavailable_after "},
	{"search", "not to be used for search", SafetyIndex, true, " search "},
	{"snippet", "to be shown with a shorter snippet, or none", SafetyIndex, true, " present-snippet nosnippet max-snippet "},
	{"link", "not to be linked", SafetyIndex, true, " present-link "},
	{"limit", "limited", SafetyLimits, true, " limit crawl-delay "},
	{"follow", "not to be followed by its links", SafetyIndex, false, " follow nofollow "},
	{"image", "to be shown without its images", SafetyIndex, false, " noimageindex "},
	{"preview", "to be shown with smaller images, or none", SafetyIndex, false, " present-thumbnail max-image-preview "},
	{"video", "to be shown with shorter videos, or none", SafetyIndex, false, " present-thumbnail max-video-preview "},
	{"copy", "not to be shown from a copy", SafetyIndex, false, " preserve present-currentcopy present-oldcopy present-oldsnippet present-oldthumbnail noarchive nocache "},
	{"crawl-delay", "to be crawled more slowly", SafetyDisallows, false, " crawl-delay "},
	{"train-ai", "not to be used to train AI", SafetyIndex, false, " train-ai "},
	{"ai-use", "not to be used in AI answers", SafetyIndex, false, " ai-use "},
}

// Counted are the losses that are counted against the search-loss limit.
var Counted = rows(func(r *row) bool { return r.counts })

func rows(fits func(*row) bool) (all Loss) {
	for i := range table {
		if fits(&table[i]) {
			all |= 1 << i
		}
	}
	return all
}

// LossesFrom returns the losses that a change of a usage, a search engine's rule or a setting can cause.
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

// row returns the place of a single loss in the table.
func (l Loss) row() int { return bits.TrailingZeros16(uint16(l)) }

func (l Loss) words(word func(*row) string, sep string) string {
	each := l.Each()
	all := make([]string, len(each))
	for i, one := range each {
		all[i] = word(&table[one.row()])
	}
	return strings.Join(all, sep)
}

// MarshalText writes the names of the losses: "crawl", "index snippet".
func (l Loss) MarshalText() ([]byte, error) {
	return []byte(l.words(func(r *row) string { return r.word }, " ")), nil
}

// String returns the losses in words: "blocked", "not to be indexed and limited".
func (l Loss) String() string { return l.words(func(r *row) string { return r.text }, " and ") }

// Intended returns the line for a rule that declares the losses as intended.
func (l Loss) Intended() string {
	var checks []string
	for _, one := range l.Each() {
		if check := table[one.row()].waived; !slices.Contains(checks, check) {
			checks = append(checks, check)
		}
	}
	return "intended: [" + strings.Join(checks, ", ") + "]"
}

// Waives reports whether safety checks that the key intended names include one. Waiving blocks-search waives
// disallows-search too.
func Waives(intended []string, check string) bool {
	return slices.Contains(intended, check) || check == SafetyDisallows && slices.Contains(intended, SafetyBlocks)
}

// intends reports whether a rule, or the policy's entry for a crawler, declares a loss as intended.
func (r *row) intends(rule *policy.Rule, crawler *policy.Crawler) bool {
	return Waives(crawler.IntendedChecks, r.waived) || rule != nil && (rule.Intended || Waives(rule.IntendedChecks, r.waived))
}
