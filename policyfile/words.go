// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policyfile/lint"
)

// The words in these tables are squashed (see squash).
var (
	// everyoneWords are words that authors may write instead of "everyone". elseWords are words for "everyone-else".
	everyoneWords = wordSet(`all any every everybody everything anyone anybody default
		bots robots crawlers spiders allbots allrobots allcrawlers allspiders wildcard star
		alle jeder tous tout todos todas tutti tutte iedereen alla wszyscy`)
	elseWords = wordSet(`others rest therest everybodyelse everyother allothers anyoneelse unknown unknownbots unknowncrawlers unlisted`)

	// groupWords are words that authors may write instead of the name of a category.
	groupWords = wordMap(map[crawlers.Category]string{
		crawlers.CategoryAI:          "ai aibots aibot aicrawlers aicrawler aiscrapers genai llm llms",
		crawlers.CategoryAITraining:  "training aitrain",
		crawlers.CategoryAIInput:     "aisearch aianswers answers answerengines",
		crawlers.CategoryAIAssistant: "aiassistants assistants",
		crawlers.CategorySearch:      "searchengine searchengines searchbots searchenginecrawler searchenginecrawlers",
		crawlers.CategorySEO:         "seobots seotools searchengineoptimization",
		crawlers.CategoryArchive:     "archives archivers archiver",
		crawlers.CategoryPreview:     "previews linkpreview linkpreviews pagepreview pagepreviews social socialmedia unfurlers messengers",
		crawlers.CategoryFeed:        "feedfetcher feedfetchers feeds rss aggregator",
		crawlers.CategoryAds:         "advertising advertisingandmarketing",
		crawlers.CategoryMonitoring:  "monitoringandanalytics uptime",
		crawlers.CategoryAcademic:    "academicresearch research",
	})

	// productWords maps products to crawlers of their operators.
	productWords = map[string][]string{
		"chatgpt": {"GPTBot", "ChatGPT-User", "OAI-SearchBot"}, "gpt": {"GPTBot", "ChatGPT-User", "OAI-SearchBot"},
		"claude": {"ClaudeBot", "Claude-User", "Claude-SearchBot"}, "mistral": {"MistralAI-Training", "MistralAI-User", "MistralAI-Index"},
		"gemini": {"Google-Extended"}, "bard": {"Google-Extended"},
		"copilot": {"Bingbot"}, "bing": {"Bingbot"},
		"appleintelligence": {"Applebot-Extended"}, "siri": {"Applebot"},
		"facebook": {"facebookexternalhit", "meta-externalagent"}, "metaai": {"meta-externalagent"}, "llama": {"meta-externalagent"},
		"grok": {"xAI-Bot", "GrokAgent"}, "tiktok": {"TikTokSpider", "Bytespider"}, "twitter": {"Twitterbot"},
		"archive.org": {"archive.org_bot", "ia_archiver"}, "wayback": {"archive.org_bot", "ia_archiver"}, "waybackmachine": {"archive.org_bot", "ia_archiver"},
		"images": {"Googlebot-Image"}, "imagesearch": {"Googlebot-Image"}, "googleimages": {"Googlebot-Image"}, "googlenews": {"Googlebot-News"}, "googleads": {"AdsBot-Google"},
	}

	// audienceKeys are the keys of other formats that correspond to "for".
	audienceKeys = wordSet(`useragent useragents agent agents bot bots robot robots crawlers who audience`)

	// usageWords are words that authors may write instead of the name of a usage, or to disallow the usage.
	usageWords = wordMap(map[string]string{
		"train-ai":          "aitrain training aitraining train ai traingenai genai noai noimageai noml tdm textanddatamining datamining tdmreservation",
		"ai-use":            "aioutput aiinput aianswers aisearch answers summarize summary grounding rag",
		"index":             "noindex indexing",
		"follow":            "nofollow links",
		"preserve":          "noarchive nocache cache archive archiving",
		"present-snippet":   "nosnippet snippet snippets",
		"present-thumbnail": "thumbnail thumbnails",
		"crawl":             "crawling fetching reading path paths url urls access fetch read visit scrape scraping download",
	})

	// blockWords are words for blocking.
	blockWords = wordSet(`block deny refuse reject ban forbid drop action`)

	// exceptWords are keys that people write for the exceptions of a rule.
	exceptWords = wordSet(`except exceptions exclude excluding unless but butnot not`)

	// endWords are keys that authors write to set the date when a rule ends.
	endWords = wordSet(`until expires`)

	// ruleLines map keys of other tools to the lines that replace them. %s stands for the value, and %.10s for its
	// date.
	ruleLines = map[string]string{
		"until": "allow: {index: {paths: /, time-limit: until-%.10s}}", "expires": "allow: {index: {paths: /, time-limit: until-%.10s}}",
		"verified": "identity: verified", "log": "enforce: log", "dryrun": "enforce: log", "redirect": "enforce: block",
		"maxsnippet": "robots-tag: max-snippet:%s", "maximagepreview": "robots-tag: max-image-preview:%s", "maxvideopreview": "robots-tag: max-video-preview:%s",
		"unavailableafter": "allow: {index: {paths: /, time-limit: until-%.10s}}", "noimageindex": "robots-tag: noimageindex", "notranslate": "robots-tag: notranslate",
		"images":    `disallow: {crawl: ["*.jpg", "*.png", "*.webp"]}`,
		"ratelimit": "limit: %s", "rate": "limit: %s", "throttle": "limit: %s", "requestrate": "limit: 60/m",
		"comment": "name: %s", "description": "name: %s", "title": "name: %s", "note": "name: %s",
	}

	// wholeRules map switches of other tools to rules.
	wholeRules = map[string]string{
		"blockaibots": "{for: category:ai, disallow: {crawl: /}, enforce: block}",
	}

	yesWords   = wordSet(`yes y true on 1 allow allowed`)
	noWords    = wordSet(`no n false off 0 none`)
	noTraining = regexp.MustCompile(`(?i)(?:ai-train|train-ai)=no?\b`)

	// limitForm matches a rate limit in words.
	limitForm = regexp.MustCompile(`(?i)^([1-9]\d{0,5}) *(?:requests?|hits|x)? *(?:/|per|an?|each) *(s|m|h|d)(?:ec|econd|in|inute|our|ay)?s?$`)

	fileKeys = map[string]string{"tests": "expect", "groups": "rules", "policies": "rules", "policy": "rules", "rule": "rules"}
)

func wordSet(words string) map[string]bool { return setOf(strings.Fields(words)) }

// wordMap inverts a map of lists of words.
func wordMap[T comparable](of map[T]string) map[string]T {
	m := map[string]T{}
	for value, words := range of {
		for word := range strings.FieldsSeq(words) {
			m[word] = value
		}
	}
	return m
}

// squash returns a name in lower case, without spaces, hyphens and underscores.
func squash(s string) string {
	return strings.Map(func(c rune) rune {
		if c == ' ' || c == '-' || c == '_' {
			return -1
		}
		return c
	}, strings.ToLower(strings.ReplaceAll(s, "&", "and")))
}

// These texts are advice about keys that no single line in a rule can replace.
const (
	endless = `rules do not expire; delete this line now, and the rule on that day. You can write the date in a comment, after "#"`
	apart   = `names of crawlers belong under "for", and paths under a usage, as in "allow: {crawl: /a/}"`
)

// These constants name a map of the file for nearestKey and misplaced, which give advice about unknown keys of the map.
const (
	theFile = "the file"
	aRule   = "a rule"
)

// nearestKey returns the key that an unknown key most likely means, or "".
func nearestKey(word, what string, known []string) string {
	switch {
	case what == aRule && audienceKeys[squash(word)]:
		return "for"
	case what == theFile:
		return cmp.Or(fileKeys[squash(word)], Nearest(word, known))
	}
	return Nearest(word, known)
}

// misplaced returns advice about a misplaced key of a map, or "".
func (p *parser) misplaced(within, key, value *yaml.Node, what string) string {
	usage, isUsage := policy.ParseUsage(key.Value)
	word := squash(key.Value)
	if what == theFile || what == aRule {
		switch {
		case endWords[word] && (what == theFile || !onlyIndexes(within)):
			return endless
		case mixesNamesAndPaths(value) && !strings.HasPrefix(word, "sitemap"), exceptWords[word] && value.Kind == yaml.MappingNode:
			return apart
		}
	}
	switch what {
	case theFile:
		if line := p.ruleInFile(key, value); line != "" {
			return "it belongs in a rule, under \"rules\": write " + quoteWhole("rules: ["+line+"]")
		}
		return writeInstead(p.settingLine(key.Value, value), "")
	case aRule:
		if isUsage && usage == policy.Crawl && noWords[squash(value.Value)] {
			return `write "disallow: {crawl: /}"`
		}
		if isUsage {
			return fmt.Sprintf(`a usage belongs under allow or disallow; write "disallow: {%s: /}" to disallow it on the whole site, or "allow: {%s: /}"`, usage, usage)
		}
		switch {
		case exceptWords[word] && pathsIn(value) != "":
			return writeInstead("allow: {crawl: "+pathsIn(value)+"}", "")
		case exceptWords[word]:
			return "to allow a crawler, write another rule: " + ownRule(namesIn(value))
		case word == "priority" || word == "order" || word == "weight":
			return "delete it, because the order of rules does not matter: the more specific rule decides"
		}
		return cmp.Or(writeInstead(ruleLine(key.Value, value), ""), writeInstead(p.settingLine(key.Value, value), " outside the rules"))
	}
	return ""
}

// onlyIndexes reports whether a rule only allows indexing. If so, its end date can be written as the time limit of the
// allow entry for index.
func onlyIndexes(rule *yaml.Node) bool {
	for i := 0; i+1 < len(rule.Content); i += 2 {
		key, value := rule.Content[i].Value, rule.Content[i+1]
		isIndex := key == "allow" && len(value.Content) == 2 && child(value, "index") != nil
		if !isIndex && !endWords[squash(key)] && !slices.Contains([]string{"name", "for", "hosts", "intended"}, key) {
			return false
		}
	}
	return true
}

func mixesNamesAndPaths(list *yaml.Node) bool {
	paths, names := 0, 0
	for _, n := range list.Content {
		switch {
		case isPath(n.Value):
			paths++
		case n.Value != "":
			names++
		}
	}
	return list.Kind == yaml.SequenceNode && paths > 0 && names > 0
}

func quoteWhole(line string) string { return `"` + line + `"` }

func writeInstead(line, where string) string {
	if line == "" {
		return ""
	}
	return "write " + quoteWhole(line) + where
}

// ruleLine returns a line with the same meaning as a key of another tool. The author can write this line in a rule. If
// there is no such line, ruleLine returns "".
func ruleLine(key string, value *yaml.Node) string {
	word, text := squash(key), value.Value
	paths, verb := pathsIn(value), "disallow"
	switch isNo := strings.HasPrefix(word, "no") || blockWords[word]; {
	case isNo && noWords[squash(text)]: // noindex: false
		return ""
	case !isNo && yesWords[squash(text)]: // ai-train: yes
		verb = "allow"
	}
	switch line, known := ruleLines[word]; {
	case known && (strings.HasPrefix(line, "identity") || strings.HasPrefix(line, "enforce")) && noWords[squash(text)]:
		return ""
	case known && strings.Contains(line, "until-"):
		if _, err := time.Parse(time.DateOnly, text[:min(len(text), len(time.DateOnly))]); err != nil {
			return ""
		}
		return strings.Replace(line, "%.10s", text[:len(time.DateOnly)], 1)
	case blockWords[word] && paths == "":
		return "enforce: block"
	case blockWords[word]:
		return "disallow: {crawl: " + paths + "}"
	case usageWords[word] != "":
		return verb + ": {" + usageWords[word] + ": " + cmp.Or(paths, "/") + "}"
	case strings.HasPrefix(word, "content") && noTraining.MatchString(text): // values of Content-Signal and Content-Usage
		return "disallow: {train-ai: /}"
	case audienceKeys[word] && text != "" && usageWords[squash(text)] != "": // robots: noindex
		return ruleLine(text, &yaml.Node{})
	case known && strings.HasPrefix(line, "limit") && !limitRate.MatchString(text):
		return "limit: " + cmp.Or(limitIn(text), "60/m")
	case known:
		return strings.ReplaceAll(line, "%s", lint.AsWritten(text))
	}
	return ""
}

// limitIn converts a rate limit in words, such as "60 per minute", to the form of the file, 60/m. If it cannot read the
// text, it returns "".
func limitIn(text string) string {
	m := limitForm.FindStringSubmatch(text)
	if m == nil || limitRate.MatchString(text) {
		return ""
	}
	return m[1] + "/" + strings.ToLower(m[2])
}

// namesIn returns the names in a value: the text of a scalar, or the items of a list as a text in brackets.
func namesIn(value *yaml.Node) string {
	names := make([]string, len(value.Content))
	for i, n := range value.Content {
		names[i] = n.Value
	}
	switch len(names) {
	case 0:
		return value.Value
	case 1:
		return names[0]
	}
	return "[" + strings.Join(names, ", ") + "]"
}

// ownRule returns the advice to exempt crawlers from a rule by writing another rule for them.
func ownRule(names string) string {
	return writeInstead("{for: "+names+", allow: {crawl: /}}", " under \"rules\", with the disallowed path instead of /")
}

// pathsIn returns the paths in a value, in the spelling of the file. If the value contains anything else, pathsIn
// returns "".
func pathsIn(value *yaml.Node) string {
	if isPath(value.Value) {
		return lint.AsWritten(value.Value)
	}
	paths := make([]string, 0, len(value.Content))
	for _, n := range value.Content {
		if !isPath(n.Value) {
			return ""
		}
		paths = append(paths, lint.AsWritten(n.Value))
	}
	if len(paths) == 0 {
		return ""
	}
	return "[" + strings.Join(paths, ", ") + "]"
}

// ruleInFile returns a rule with the same meaning as an unknown key of the file, or "".
func (p *parser) ruleInFile(key, value *yaml.Node) string {
	word, who := squash(key.Value), value.Value
	if value.Kind == yaml.SequenceNode {
		who = "[" + strings.Trim(namesIn(value), "[]") + "]"
	}
	line := ruleLine(key.Value, value)
	paths := pathsIn(value)
	switch {
	case strings.HasPrefix(word, "default") && (blockWords[squash(who)] || squash(who) == "disallow"):
		return "{for: everyone-else, disallow: {crawl: /}}"
	case (key.Value == "allow" || key.Value == "disallow") && paths != "":
		return "{for: everyone, " + key.Value + ": {crawl: " + paths + "}}"
	case key.Value == "allow" && value.Kind == yaml.SequenceNode:
		return "{for: " + who + ", allow: {crawl: /}}"
	case wholeRules[word] != "" && !noWords[squash(who)]:
		return wholeRules[word]
	case (audienceKeys[word] || key.Value == "for") && strings.Trim(who, "[]") != "":
		return "{for: " + who + ", disallow: {crawl: /}}"
	case (blockWords[word] || key.Value == "disallow") && value.Kind == yaml.SequenceNode:
		return "{for: " + who + ", disallow: {crawl: /}, enforce: block}"
	case line != "":
		return "{for: everyone, " + line + "}"
	case p.ofRules[key.Value] && key.Value != "enforce":
		return "{for: everyone, " + key.Value + ": " + cmp.Or(who, "…") + "}"
	}
	if u, ok := policy.ParseUsage(key.Value); ok {
		return fmt.Sprintf("{for: everyone, disallow: {%s: /}}", u)
	}
	return ""
}

// settingLine is called for a misplaced key, for example a key in a rule. It returns the line that the author should
// write outside the rules instead. It knows the keys of the sections publish, rights and enforcement, the key
// "enforce", and keys for sitemaps. For other keys it returns "".
func (p *parser) settingLine(key string, value *yaml.Node) string {
	text := lint.AsWritten(value.Value)
	switch key {
	case "enforce":
		return "enforcement: " + text
	case "contact":
		text = lint.AsWritten(withScheme(value.Value))
	}
	for name, keys := range p.settings {
		if slices.Contains(keys, key) && value.Kind == yaml.ScalarNode {
			return fmt.Sprintf("%s: {%s: %s}", name, key, text)
		}
	}
	if strings.HasPrefix(squash(key), "sitemap") {
		return "sitemaps: " + text
	}
	return ""
}

// withScheme adds mailto: to an e-mail address.
func withScheme(contact string) string {
	if strings.Contains(contact, "@") && !strings.Contains(contact, ":") {
		return "mailto:" + contact
	}
	return contact
}

// unknownUsage reports that text is not a usage, and suggests a usage with a similar name. The function whole returns
// the text to suggest, with this name in it. If localToo is true, the suggestion may be a name from the section usages
// of the file.
func (p *parser) unknownUsage(n, value *yaml.Node, text string, localToo bool, whole func(string) string) {
	if whole == nil {
		whole = func(near string) string { return near }
	}
	known := usageNames()
	candidates := slices.Clone(known)
	if localToo {
		for _, u := range p.usages {
			candidates = append(candidates, u.name)
		}
	}
	near, unknown := usageWords[squash(text)], "unknown usage "+quote(text)
	if near == "" && blockWords[squash(text)] {
		near = policy.Crawl.String()
	}
	if near == "" && value != nil {
		advice := writeInstead(ruleLine(text, value), " in the rule itself")
		if endWords[squash(text)] {
			advice = endless
		}
		if audience, _ := p.known().group(text); advice == "" && audience != "" {
			advice = fmt.Sprintf(`the crawlers of a rule are under "for": write "for: %s", and "disallow: {crawl: /}"`, audience)
		}
		if advice != "" {
			p.reportAdvice(posOf(n), "unknown-usage", "", unknown, advice)
			return
		}
	}
	p.reportChoice(posOf(n), "unknown-usage", whole(cmp.Or(near, Nearest(text, candidates))), unknown, append(known, "a name under \"usages\""))
}
