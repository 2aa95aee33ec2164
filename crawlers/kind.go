// SPDX-License-Identifier: Apache-2.0

package crawlers

import "slices"

// Kind says what a crawler fetches pages for.
type Kind string

// The kinds of crawler. A crawler has one primary kind, which `category:KIND`
// in a policy refers to, and may have more.
const (
	KindSearch      Kind = "search"
	KindAITraining  Kind = "ai-training"
	KindAIInput     Kind = "ai-input"
	KindAIAssistant Kind = "ai-assistant"
	KindAIAgent     Kind = "ai-agent"
	KindArchive     Kind = "archive"
	KindSEO         Kind = "seo"
	KindAds         Kind = "ads"
	KindPreview     Kind = "preview"
	KindFeed        Kind = "feed"
	KindMonitoring  Kind = "monitoring"
	KindSecurity    Kind = "security"
	KindAcademic    Kind = "academic"
)

// KindUnclassified is the kind of crawlers about which no source establishes what they fetch pages for. It is no
// category: a policy can name such a crawler, and it is counted, but no rule for a category speaks to it.
const KindUnclassified Kind = "unclassified"

// KindOnDevice is a further kind of link previews that an app fetches from its user's
// own device, so that the address is that of a person. It is no category.
const KindOnDevice Kind = "on-device"

var kindTexts = []struct {
	kind Kind
	text string
}{
	{KindSearch, "builds the index of a search engine"},
	{KindAITraining, "collects text, images or other works to train AI models"},
	{KindAIInput, "collects pages that AI products quote or answer from"},
	{KindAIAssistant, "fetches a page because somebody asked an AI assistant about it"},
	{KindAIAgent, "acts on websites for somebody, as a browser steered by AI"},
	{KindArchive, "keeps copies of pages for later"},
	{KindSEO, "measures links, rankings and brands, or sells such data"},
	{KindAds, "looks at pages for placing or checking advertising"},
	{KindPreview, "fetches a page that somebody shared, to show its title and image"},
	{KindFeed, "reads feeds and the pages they name"},
	{KindMonitoring, "checks that a site is up, fast and correct"},
	{KindSecurity, "looks for weak or harmful servers and pages"},
	{KindAcademic, "collects pages for research or for the public"},
}

// Kinds returns the kinds that are categories, in the order in which the documentation lists them.
// The slice is the caller's.
func Kinds() []Kind {
	kinds := make([]Kind, len(kindTexts))
	for i, k := range kindTexts {
		kinds[i] = k.kind
	}
	return kinds
}

// Valid reports whether k is one of [Kinds].
func (k Kind) Valid() bool { return slices.Contains(Kinds(), k) }

// Description says in one line what crawlers of the kind do. It is empty for a kind that does not exist.
func (k Kind) Description() string {
	if k == KindUnclassified {
		return "nothing published says what it fetches pages for, so no category includes it"
	}
	if k == KindOnDevice {
		return "an app on its user's own device"
	}
	for _, t := range kindTexts {
		if t.kind == k {
			return t.text
		}
	}
	return ""
}

// Honours says whether a crawler follows robots.txt, in its operator's words.
type Honours string

// What operators say about robots.txt.
const (
	// HonoursYes: the operator says that the crawler follows robots.txt.
	HonoursYes Honours = "yes"
	// HonoursNo: the operator says that it does not, or it is widely seen not to.
	HonoursNo Honours = "no"
	// HonoursPartly: it follows some of it, or only in some cases.
	HonoursPartly Honours = "partly"
	// HonoursUserTriggered: somebody asks for each fetch, so the operator holds that robots.txt does not apply.
	HonoursUserTriggered Honours = "user-triggered"
	// HonoursUnknown: the operator says nothing.
	HonoursUnknown Honours = "unknown"
)

// Valid reports whether h is one of the constants of this package.
func (h Honours) Valid() bool {
	return slices.Contains([]Honours{HonoursYes, HonoursNo, HonoursPartly, HonoursUserTriggered, HonoursUnknown}, h)
}
