// SPDX-License-Identifier: Apache-2.0

package crawlers

import "slices"

// Category describes why a crawler fetches pages, for example for search or AI training.
type Category string

// These are the categories of crawlers. Each crawler has one main category, and `category:NAME` in a policy refers to
// this main category. A crawler may also have further categories.
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

// CategoryNone is the category of crawlers whose purpose is not documented by any source. A policy can name such a
// crawler, and the crawler's requests are counted. But rules for a category do not apply to the crawler.
const CategoryNone Category = "none"

// CategoryOnDevice is a further category of apps such as WhatsApp, which fetch link previews on their user's own
// device. A request from such an app comes from the IP address of a person. CategoryOnDevice is never a main category.
const CategoryOnDevice Category = "on-device"

// CategoryAI stands for all crawlers for AI; see [Crawler.IsAI]. No crawler has CategoryAI as its stored category.
const CategoryAI Category = "ai"

// Results is the kind of search results that a search engine shows from the pages that its crawler fetches.
type Results string

// These are the kinds of search results.
const (
	ResultsWeb Results = "web" // a list of pages, possibly with other results
	ResultsAI  Results = "ai"  // only answers written by an AI
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
	{CategoryAds, "reads pages to place or check advertisements"},
	{CategoryPreview, "fetches a page that a person shared, to show its title and image"},
	{CategoryFeed, "reads feeds and the pages that the feeds link to"},
	{CategoryMonitoring, "checks that a site is up, fast and correct"},
	{CategorySecurity, "looks for vulnerable or malicious servers and pages"},
	{CategoryAcademic, "collects pages for research, or for archives that anyone can use"},
}

// Categories returns the categories that rules can name, in the order in which the documentation lists them. The caller
// may change the slice.
func Categories() []Category {
	categories := make([]Category, len(categoryTexts))
	for i, k := range categoryTexts {
		categories[i] = k.category
	}
	return categories
}

// Valid reports whether k is one of [Categories].
func (k Category) Valid() bool { return slices.Contains(Categories(), k) }

// Crawlers names the crawlers of the category, as in "search crawlers".
func (k Category) Crawlers() string {
	if k == CategoryNone {
		return "crawlers without a category"
	}
	return string(k) + " crawlers"
}

// Description describes in one line what crawlers of the category do. It returns "" for an unknown category.
func (k Category) Description() string {
	if k == CategoryNone {
		return "no source says why the crawler fetches pages, so no category includes it"
	}
	if k == CategoryAI {
		return "trains AI, or uses AI to answer or act, even if this is not its main purpose; web search engines are not included"
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

// Honors describes whether a crawler follows robots.txt, according to its operator.
type Honors string

// Values of Honors.
const (
	// HonorsYes means that the operator says that the crawler follows robots.txt.
	HonorsYes Honors = "yes"
	// HonorsNo means that the crawler does not follow robots.txt, according to its operator or to many observers.
	HonorsNo Honors = "no"
	// HonorsPartly means that the crawler follows some parts of robots.txt, or follows it in some cases.
	HonorsPartly Honors = "partly"
	// HonorsUserTriggered means that each request is triggered by a person, and that the operator therefore does not
	// apply robots.txt.
	HonorsUserTriggered Honors = "user-triggered"
	// HonorsUnknown means that the operator does not document whether the crawler follows robots.txt.
	HonorsUnknown Honors = "unknown"
)

// Valid reports whether h is one of the constants above.
func (h Honors) Valid() bool {
	return slices.Contains([]Honors{HonorsYes, HonorsNo, HonorsPartly, HonorsUserTriggered, HonorsUnknown}, h)
}
