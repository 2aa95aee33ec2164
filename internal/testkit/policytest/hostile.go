// SPDX-License-Identifier: Apache-2.0

package policytest

import (
	"fmt"
	"strings"
)

// Hostile returns policy files of nearly a given size. Each file makes one part of loading do as much work as
// possible.
func Hostile(size int) map[string][]byte {
	shapes := map[string][]byte{}
	build := func(name, head, tail string, line func(i int) string) {
		var b strings.Builder
		b.WriteString(head)
		for i := 0; ; i++ {
			text := line(i)
			if b.Len()+len(text)+len(tail) > size {
				break
			}
			b.WriteString(text)
		}
		b.WriteString(tail)
		shapes[name] = []byte(b.String())
	}
	const head = "version: 1\nrules:\n"
	rule := func(i int) string {
		return fmt.Sprintf("  - for: [%s, %s, category:search]\n    hosts: [a%d.example.com, '*.b%d.example.com']\n    disallow: {crawl: [/a%d/, '/*.x%d']}\n    allow: {crawl: /a%d/b/}\n",
			HostileName(2*i), HostileName(2*i+1), i, i, i, i, i)
	}
	build("rules-hosts-crawlers", head, "", rule)
	build("acap-full", "version: 1\npublish: {acap: full}\nrules:\n", "", rule)
	build("everyone-with-hosts", head, "", func(i int) string {
		return fmt.Sprintf("  - for: [everyone, %s]\n    hosts: '*.%s.example'\n    disallow: {crawl: /, index: /}\n", HostileName(i), strings.Repeat("x.", i%60)+fmt.Sprint("h", i))
	})
	build("wildcards", head+"  - for: everyone\n    disallow:\n      crawl:\n", "  - for: Googlebot\n    allow: {crawl: ['/*', /a, '/*b*c']}\n", func(i int) string {
		return fmt.Sprintf("        - '/*%d*a'\n", i)
	})
	build("allow-and-disallow", head, "", func(i int) string {
		return fmt.Sprintf("  - for: %s\n    allow: {crawl: '/*%d'}\n  - for: category:search\n    disallow: {crawl: '/%d*'}\n", HostileName(i), i, i)
	})
	build("nested-paths", head+"  - for: everyone\n    disallow:\n      crawl:\n", "  - for: [category:search, category:seo, operator:Google]\n    allow: {crawl: /}\n", func(i int) string {
		return fmt.Sprintf("        - /%s\n", strings.Repeat("a/", i%1000))
	})
	build("misspelled-names", head+"  - for:\n", "    disallow: {crawl: /}\n", func(i int) string {
		return "      - Googelbot" + HostileName(i) + "\n"
	})
	build("tests", head+"  - for: everyone\n    hosts: [a.example, b.example, '*.c.example']\n    disallow: {crawl: /a}\nexpect:\n", "", func(i int) string {
		return fmt.Sprintf("  - everyone may not crawl https://a.example/a%d\n", i)
	})
	build("purposes", head, "", func(i int) string {
		return fmt.Sprintf("  - for: 'purpose:%s'\n    usage-purposes: [p%d]\n    disallow: {crawl: /p%d/, train-ai: '/*%d'}\n", HostileName(i), i, i, i)
	})
	build("crawlers-times-hosts", head, "", func(i int) string {
		return fmt.Sprintf("  - for: %s\n    disallow: {crawl: /c%d/}\n  - for: everyone\n    hosts: h%d.example\n    disallow: {crawl: /h%d/}\n", HostileName(i), i, i, i)
	})
	build("one-rule-of-hosts", head+"  - for: [category:search, everyone]\n    disallow: {crawl: /a, index: /b}\n    hosts:\n", "", func(i int) string {
		return fmt.Sprintf("      - h%d.example\n", i)
	})
	return shapes
}

// ManyRules returns a policy file whose rules each have three audiences and two hosts. With 2,400 rules, the file has
// 454 KB, which is realistic for a large publisher.
func ManyRules(rules int) []byte {
	var b strings.Builder
	b.WriteString("version: 1\nrules:\n")
	for i := range rules {
		fmt.Fprintf(&b, "  - for: [%s, category:search, everyone]\n    hosts: [host%d.example.com, '*.site%d.example.com']\n    disallow: {crawl: [/private%d/, /drafts/%d]}\n    allow: {crawl: /private%d/public/}\n",
			HostileName(i), i, i, i, i, i)
	}
	return []byte(b.String())
}

// HostileName returns a name that is not similar to any known crawler or word.
func HostileName(i int) string {
	name := []byte("Qzjx-")
	for n := i; n >= 0; n = n/26 - 1 {
		name = append(name, 'a'+byte(n%26))
	}
	return string(name)
}
