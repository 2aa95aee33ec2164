// SPDX-License-Identifier: Apache-2.0

package crawlers

import "slices"

// Category tells why a crawler fetches pages.
type Category string

// The categories of crawler. A crawler has one main category, to which `category:NAME` in a policy refers. It may
// have further categories.
const (
	CategorySearch      Category = "search"
	CategoryAITraining  Category = "ai-training"
	CategoryAIInput     Category = "ai-input"
	CategoryAIAssistant Category = "ai-assistant"
	CategoryAIAgent     Category = "ai-agent"
	CategoryArchive     Category = "archive"
	CategorySEO         Category = "seo"
	CategoryAds         Category = "ads"
	CategoryPreview     Category = "preview"
	CategoryFeed        Category = "feed"
	CategoryMonitoring  Category = "monitoring"
	CategorySecurity    Category = "security"
	CategoryAcademic    Category = "academic"
)

// CategoryNone is the category of crawlers of which no source establishes why they fetch pages. A policy can name
// such a crawler, and it is counted, but no rule for a category applies to it.
const CategoryNone Category = "none"

// CategoryOnDevice is a further category of link previews that an app fetches on its user's own device. The address
// of such a request belongs to a person. It is never a main category.
const CategoryOnDevice Category = "on-device"

// CategoryAI stands for all crawlers for AI, see [Crawler.IsAI]. No crawler has it as its category.
const CategoryAI Category = "ai"

// Results is the kind of results that a search engine's crawler collects pages for.
type Results string

// The results of search engines.
const (
	ResultsWeb Results = "web" // a list of pages, and perhaps more
	ResultsAI  Results = "ai"  // only answers that an AI writes
)

var categoryTexts = []struct {
	category Category
	text     string
}{
	{CategorySearch, "builds the index of a search engine"},
	{CategoryAITraining, "collects text, images or other works to train AI models"},
	{CategoryAIInput, "collects pages that AI products quote or answer from"},
	{CategoryAIAssistant, "fetches a page because a person asked an AI assistant about it"},
	{CategoryAIAgent, "acts on websites for a person, like a browser steered by AI"},
	{CategoryArchive, "keeps copies of pages for later"},
	{CategorySEO, "measures links, rankings and brands, or sells such data"},
	{CategoryAds, "looks at pages for placing or checking advertising"},
	{CategoryPreview, "fetches a page that a person shared, to show its title and image"},
	{CategoryFeed, "reads feeds and the pages they name"},
	{CategoryMonitoring, "checks that a site is up, fast and correct"},
	{CategorySecurity, "looks for weak or harmful servers and pages"},
	{CategoryAcademic, "collects pages for research or for the public"},
}

// Categories returns the categories that rules can name, in the order in which the documentation lists them.
// The slice is the caller's.
func Categories() []Category {
	categories := make([]Category, len(categoryTexts))
	for i, k := range categoryTexts {
		categories[i] = k.category
	}
	return categories
}

// Valid reports whether k is one of [Categories].
func (k Category) Valid() bool { return slices.Contains(Categories(), k) }

// Description describes in one line what crawlers of the category do. It returns "" for an unknown category.
func (k Category) Description() string {
	if k == CategoryNone {
		return "no source says why it fetches pages, so no category includes it"
	}
	if k == CategoryAI {
		return "trains AI, or uses AI to answer or act, mainly or among other things; web search engines are not included"
	}
	if k == CategoryOnDevice {
		return "an app on its user's own device"
	}
	for _, t := range categoryTexts {
		if t.category == k {
			return t.text
		}
	}
	return ""
}

// Honors tells whether a crawler follows robots.txt according to its operator.
type Honors string

// Values of Honors.
const (
	// HonorsYes means that the operator says that the crawler follows robots.txt.
	HonorsYes Honors = "yes"
	// HonorsNo means that the operator says that the crawler does not follow robots.txt, or that many have observed
	// this.
	HonorsNo Honors = "no"
	// HonorsPartly means that the crawler follows some parts of robots.txt, or follows it in some cases.
	HonorsPartly Honors = "partly"
	// HonorsUserTriggered means that a person asks for each request, so that the operator does not apply
	// robots.txt.
	HonorsUserTriggered Honors = "user-triggered"
	// HonorsUnknown means that the operator says nothing about it.
	HonorsUnknown Honors = "unknown"
)

// Valid reports whether h is one of the constants above.
func (h Honors) Valid() bool {
	return slices.Contains([]Honors{HonorsYes, HonorsNo, HonorsPartly, HonorsUserTriggered, HonorsUnknown}, h)
}
