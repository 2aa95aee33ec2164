// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// The sizes of the two policies. Small is typical of a newspaper, and Large of a publishing house with many titles.
var (
	Small = PolicySize{Crawlers: 150, Rules: 60}
	Large = PolicySize{Crawlers: 1500, Rules: 10000}
)

// PolicySize holds the numbers of crawlers and rules in a policy.
type PolicySize struct {
	Crawlers, Rules int
}

// realCrawlers lists crawlers from the catalog. The generated policies name these crawlers first, and then made-up
// crawlers.
var realCrawlers = []string{
	"GPTBot", "CCBot", "ClaudeBot", "Bytespider", "Google-Extended", "Applebot-Extended", "AI2Bot", "Ai2Bot-Dolma",
	"anthropic-ai", "cohere-training-data-crawler", "Cotoyogi", "DeepSeekBot", "FacebookBot", "ICC-Crawler", "Kangaroo Bot",
	"KimiBot", "laion-huggingface-processor", "meta-externalagent", "MistralAI-Training", "PanguBot", "SBIntuitionsBot",
	"webzio-extended", "Diffbot", "Brightbot", "iAskBot", "AwarioBot", "BLEXBot", "DataForSeoBot", "DotBot", "aiHitBot",
}

// Refused returns the crawlers that the policies Small and Large block. The compared configurations without this
// module, called recipes, block the same crawlers.
func Refused() []string {
	return append(append([]string(nil), realCrawlers...), madeUp(0, Small.Crawlers-len(realCrawlers))...)
}

// madeUp returns names of crawlers that do not exist. The names have only letters and hyphens, because RFC 9309 allows
// no digits in product tokens.
func madeUp(from, to int) (names []string) {
	ends := []string{"Bot", "Crawler", "-Agent", "-Extended"}
	for i := from; i < to; i++ {
		letters := []byte{'A' + byte(i/676%26), 'a' + byte(i/26%26), 'a' + byte(i%26)}
		names = append(names, "Example"+string(letters)+ends[i%len(ends)])
	}
	return names
}

// Policy returns a policy file of the given size. The larger policy contains all rules of the smaller one. It has more
// crawlers, and more rules: for sections of this site, for the crawlers of partners, and for other hosts. The
// additional rules do not change the measured answers.
func Policy(size PolicySize) string {
	var b strings.Builder
	b.WriteString("version: 1\ncrawlers:\n")
	all := madeUp(0, size.Crawlers-len(realCrawlers))
	for _, name := range all {
		fmt.Fprintf(&b, "  %s: {category: ai-training}\n", name)
	}
	b.WriteString("publish: {acap: off}\nrules:\n" +
		"  - {for: everyone, disallow: {crawl: [/admin/, \"/search?q=\"], preserve: /, train-ai: /}}\n" +
		"  - {for: [Googlebot, Bingbot], allow: {crawl: /admin/help}}\n")
	fmt.Fprintf(&b, "  - {name: no training, for: [%s], disallow: {crawl: /}, enforce: block}\n", strings.Join(Refused(), ", "))
	partners := all[Small.Crawlers-len(realCrawlers):]
	r := rand.New(rand.NewPCG(4, 5))
	for i := 3; i < size.Rules; i++ {
		b.WriteString("  - {" + rule(r, i, partners) + "}\n")
	}
	return b.String()
}

// rule returns rule number i of a policy. The first rules are in both policies, and the further rules are only in the
// larger policy. A third of the further rules is for single crawlers in partners, about paths below /partners/. Another
// third is for other hosts.
func rule(r *rand.Rand, i int, partners []string) string {
	usage := []string{"index", "follow", "present-snippet", "present-thumbnail"}[r.IntN(4)]
	path := fmt.Sprintf("/%s/section-%d/part-%d/", []string{"api", "pages", "packed", "long"}[r.IntN(4)], r.IntN(variety), i)
	switch {
	case i >= Small.Rules && i%3 == 1:
		return fmt.Sprintf("for: %s, disallow: {%s: /partners/%d/}", partners[i/3%len(partners)], usage, i)
	case i >= Small.Rules && i%3 == 2:
		return fmt.Sprintf("for: everyone, hosts: title-%d.example.com, disallow: {%s: %s}", i%2, usage, path)
	}
	return fmt.Sprintf("for: everyone, disallow: {%s: %s}", usage, path)
}
