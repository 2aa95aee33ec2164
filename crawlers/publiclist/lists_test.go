// SPDX-License-Identifier: Apache-2.0

// Package publiclist reads public collections of crawlers that other projects maintain, and compares the catalog with
// them. It counts the User-Agents that the catalog recognizes, by kind, and lists the unrecognized ones.
package publiclist

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
)

const maxFile = 16 << 20

// Formats of public collections.
const (
	FormatUserAgents = "crawler-user-agents" // github.com/monperrus/crawler-user-agents
	FormatWellKnown  = "well-known-bots"     // github.com/arcjet/well-known-bots
	FormatAI         = "ai.robots.txt"       // github.com/ai-robots-txt/ai.robots.txt
)

// KindAI stands for all kinds of AI crawlers, because the collections do not distinguish them.
const KindAI = "ai"

// KindTool stands for HTTP libraries and browser automation. Anyone can run such software, so it is not a crawler.
const KindTool = "tool"

// KindNone stands for entries without a kind in the collection.
const KindNone = "(none)"

// Entry is one crawler of a collection.
type Entry struct {
	// Name is the crawler's name in the collection: a pattern, an identifier or a token.
	Name string
	// Kinds are the categories of the crawler: categories of the catalog, [KindAI], [KindTool] or [KindNone].
	Kinds []string
	// UserAgents are User-Agent headers that the crawler sends.
	UserAgents []string
}

// List is the content of a collection.
type List struct {
	Format  string
	Entries []Entry
}

// Parse reads a collection, and detects which of the three formats it has. It returns an error for a collection without
// entries.
func Parse(data []byte) (*List, error) {
	if len(data) > maxFile {
		return nil, fmt.Errorf("the file is larger than %d bytes", maxFile)
	}
	var list *List
	var err error
	switch data = bytes.TrimSpace(data); {
	case bytes.HasPrefix(data, []byte("{")):
		list, err = parseAI(data)
	case bytes.HasPrefix(data, []byte("[")):
		list, err = parseArray(data)
	default:
		err = errors.New("the file is not JSON")
	}
	if err != nil {
		return nil, fmt.Errorf("%w; expected crawler-user-agents.json, well-known-bots.json or the robots.json of ai.robots.txt", err)
	}
	return list, nil
}

// parseAI reads the robots.json of ai.robots.txt, which maps tokens to objects.
func parseAI(data []byte) (*List, error) {
	var byToken map[string]struct {
		Respect  *string
		Function *string
	}
	if err := json.Unmarshal(data, &byToken); err != nil {
		return nil, err
	}
	list := &List{Format: FormatAI}
	for token, e := range byToken {
		if e.Respect == nil || e.Function == nil {
			return nil, fmt.Errorf("%q has no function and no respect", token)
		}
		list.Entries = append(list.Entries, Entry{Name: token, Kinds: []string{KindAI}, UserAgents: []string{token}})
	}
	slices.SortFunc(list.Entries, func(a, b Entry) int { return cmp.Compare(a.Name, b.Name) })
	return list, list.check()
}

// parseArray reads crawler-user-agents.json and well-known-bots.json.
func parseArray(data []byte) (*List, error) {
	var rows []struct {
		ID         string
		Pattern    json.RawMessage
		Tags       []string
		Categories []string
		Instances  json.RawMessage
	}
	if err := json.Unmarshal(data, &rows); err != nil {
		return nil, err
	}
	list := &List{Format: FormatUserAgents}
	if len(rows) > 0 && rows[0].ID != "" {
		list.Format = FormatWellKnown
	}
	for _, row := range rows {
		e := Entry{Name: row.ID}
		if list.Format == FormatWellKnown {
			var instances struct{ Accepted []string }
			if err := json.Unmarshal(row.Instances, &instances); err != nil {
				return nil, fmt.Errorf("%q: %w", row.ID, err)
			}
			e.Kinds, e.UserAgents = kindsOf(wellKnownKinds, row.Categories), instances.Accepted
		} else {
			if err := json.Unmarshal(row.Pattern, &e.Name); err != nil {
				return nil, fmt.Errorf("an entry has no pattern: %w", err)
			}
			if err := json.Unmarshal(row.Instances, &e.UserAgents); err != nil {
				return nil, fmt.Errorf("%q: %w", e.Name, err)
			}
			e.Kinds = kindsOf(userAgentsKinds, row.Tags)
		}
		list.Entries = append(list.Entries, e)
	}
	return list, list.check()
}

func (l *List) check() error {
	if len(l.Entries) == 0 {
		return errors.New("the file has no entries")
	}
	for _, e := range l.Entries {
		if e.Name == "" {
			return errors.New("an entry has no name")
		}
	}
	return nil
}

// userAgentsKinds and wellKnownKinds map the categories of two collections to categories of the catalog, or to KindAI
// or KindTool. Names of operators, such as google, are not categories.
var (
	userAgentsKinds = map[string]string{
		"search-engine": string(crawlers.CategorySearch), "ai-crawler": KindAI, "archiver": string(crawlers.CategoryArchive), "seo": string(crawlers.CategorySEO),
		"monitoring": string(crawlers.CategoryMonitoring), "scanner": string(crawlers.CategorySecurity), "advertising": string(crawlers.CategoryAds),
		"social-preview": string(crawlers.CategoryPreview), "feed-reader": string(crawlers.CategoryFeed), "academic": string(crawlers.CategoryAcademic),
		"http-library": KindTool, "browser-automation": KindTool,
	}
	wellKnownKinds = map[string]string{
		"search-engine": string(crawlers.CategorySearch), "ai": KindAI, "archive": string(crawlers.CategoryArchive), "optimizer": string(crawlers.CategorySEO),
		"monitor": string(crawlers.CategoryMonitoring), "advertising": string(crawlers.CategoryAds), "social": string(crawlers.CategoryPreview),
		"preview": string(crawlers.CategoryPreview), "feedfetcher": string(crawlers.CategoryFeed), "academic": string(crawlers.CategoryAcademic),
		"programmatic": KindTool, "tool": KindTool,
	}
)

func kindsOf(known map[string]string, names []string) (kinds []string) {
	for _, name := range names {
		if k, ok := known[name]; ok && !slices.Contains(kinds, k) {
			kinds = append(kinds, k)
		}
	}
	if kinds == nil {
		kinds = []string{KindNone}
	}
	return kinds
}
