// SPDX-License-Identifier: Apache-2.0

package crawlers

import "slices"

// Category says what a crawler fetches pages for.
type Category string

// The categories of crawler. A crawler has one primary category, which `category:NAME`
// in a policy refers to, and may have more.
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

// CategoryNone marks crawlers about which no source establishes what they fetch pages for. A policy can name
// such a crawler, and it is counted, but no rule for a category applies to it.
const CategoryNone Category = "none"

// CategoryOnDevice is a further category of link previews that an app fetches from its user's
// own device, so that the address belongs to a person. It is never a main category.
const CategoryOnDevice Category = "on-device"

// CategoryAI is the word for all crawlers for AI, see [Crawler.IsAI]. No crawler has it as its category.
const CategoryAI Category = "ai"

// Results is the kind of results that a search engine's crawler collects pages for.
type Results string

// The results of search engines.
const (
	ResultsWeb Results = "web" // a list of pages, whatever else the crawler feeds
	ResultsAI  Results = "ai"  // answers that an AI writes
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

// Description says in one line what crawlers of the category do. It is empty for a category that does not exist.
func (k Category) Description() string {
	if k == CategoryNone {
		return "nothing published says what it fetches pages for, so no category includes it"
	}
	if k == CategoryAI {
		return "trains AI, answers with it or acts with it, mainly or among other things; web search engines are left out"
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

// Honors says whether a crawler follows robots.txt, in its operator's words.
type Honors string

// What operators say about robots.txt.
const (
	// HonorsYes: the operator says that the crawler follows robots.txt.
	HonorsYes Honors = "yes"
	// HonorsNo: the operator says that it does not, or it is widely seen not to.
	HonorsNo Honors = "no"
	// HonorsPartly: it follows some of it, or only in some cases.
	HonorsPartly Honors = "partly"
	// HonorsUserTriggered: a person asks for each fetch, so the operator's position is that robots.txt does
	// not apply.
	HonorsUserTriggered Honors = "user-triggered"
	// HonorsUnknown: the operator says nothing.
	HonorsUnknown Honors = "unknown"
)

// Valid reports whether h is one of the constants of this package.
func (h Honors) Valid() bool {
	return slices.Contains([]Honors{HonorsYes, HonorsNo, HonorsPartly, HonorsUserTriggered, HonorsUnknown}, h)
}
