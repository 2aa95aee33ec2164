// SPDX-License-Identifier: Apache-2.0

package robotstxt

import (
	"cmp"
	"strings"
)

// keys has the keys that Google's parser does not read. It maps each accepted spelling to the standard one. A key in a
// file must be equal to one of these spellings, while for Google's keys, it is enough to begin with a spelling in
// prefixes. Spellings with a space instead of a hyphen are in keys because some parsers, such as Scrapy's, read them.
var keys = map[string]string{
	"crawl-delay": "crawl-delay", "crawl delay": "crawl-delay", "crawldelay": "crawl-delay",
	"content-signal": "content-signal", "content-usage": "content-usage",
	"app-directives": "app-directives", "app-directive": "app-directives",
	"license": "license", "user-agent-purpose": "user-agent-purpose",
	"clean-param": "clean-param", "host": "host",
	"request-rate": "request-rate", "request rate": "request-rate", "visit-time": "visit-time", "visit time": "visit-time",
}

// fileKeys holds the keys of lines that apply to the whole file, wherever they are in it.
var fileKeys = map[string]string{"clean-param": "Clean-param", "host": "Host"}

// prefixes holds the beginnings of keys, in the order in which Google's parser compares them with a line.
var prefixes = []struct{ prefix, key string }{
	{"user-agent", "user-agent"},
	{"useragent", "user-agent"},
	{"user agent", "user-agent"},
	{"allow", "allow"},
	{"disallow", "disallow"},
	{"dissallow", "disallow"},
	{"dissalow", "disallow"},
	{"disalow", "disallow"},
	{"diasllow", "disallow"},
	{"disallaw", "disallow"},
	{"sitemap", "sitemap"},
	{"site-map", "sitemap"},
}

// keyOf returns the key that a lower-case word means, or "".
func keyOf(key string) string {
	if strings.HasPrefix(key, "acap-") {
		return key
	}
	if known := keys[key]; known != "" {
		return known
	}
	for _, p := range prefixes {
		if strings.HasPrefix(key, p.prefix) {
			return p.key
		}
	}
	return ""
}

// trim removes ASCII white space, as Google's parser does.
func trim(s string) string { return strings.TrimFunc(s, isSpace) }

func isSpace(c rune) bool { return c == ' ' || c == '\t' || c == '\v' || c == '\f' }

func (r *reader) split(text string) (key, value string, ok bool) {
	if text == "" {
		return "", "", false
	}
	key, value, colon := strings.Cut(text, ":")
	ok = colon
	if words := strings.FieldsFunc(text, func(c rune) bool { return c == ' ' || c == '\t' }); len(words) == 2 && (!colon || strings.HasPrefix(value, "//") && keyOf(strings.ToLower(words[0])) == "sitemap") {
		// Google's parser accepts white space instead of a colon, but not before a URL.
		key, value, ok, colon = words[0], words[1], true, false
	}
	key = strings.ToLower(trim(key))
	known := keyOf(key)
	if !ok || known == "" {
		if r.file.unread != ErrPage {
			r.note(cmp.Or(unknownKeys[key], "import and merge leave out %q, because no search engine is known to read such lines"), text)
		}
		return "", "", false
	}
	if strings.HasPrefix(known, "acap-") {
		return known, value, true
	}
	r.misspelled = known != key || !colon
	if value = trim(value); r.misspelled {
		r.note("%q is read as %q. Some crawlers may accept such a mistake, but others ignore the line. An import or merge that copies the line corrects it", text, known+": "+value)
	}
	return known, value, true
}

// unknownKeys maps keys to notes. A note says why a line is left out, and what to write instead.
var unknownKeys = map[string]string{
	"noindex": "import and merge leave out %q, because search engines no longer read Noindex in robots.txt. To keep pages out of their results, " +
		"disallow index in the policy file, and let crawlers fetch the pages",
}
