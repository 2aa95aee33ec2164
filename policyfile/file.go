// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"net/url"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// Version is the version of the grammar that this package reads.
const Version = "1"

// fileFields are the keys of the file, in the order in which they must be read:
// sets, usages and crawlers before the rules that name them.
var fileFields = fields[struct{}]{
	{"version", "the version of this format, which is 1", true, shape{"const": 1}, readVersion},
	{"sitemaps", "the sitemaps of the site: an address or a list of addresses; one that starts with / is completed with the host", false,
		oneOrMore(textShape("an address, such as /sitemap.xml or https://www.example.com/sitemap.xml", `^(/|https?://)`)), readSitemaps},
	{"resources", "names for sets of paths; rules use a name wherever a path may stand", false,
		namedShape("a path or a list of paths", nameShape, oneOrMore(pathShape)), readSets},
	{"usages", "names for usages with qualifiers, and for several usages together; only allow may use them", false, usagesShape, readUsages},
	{"crawlers", "crawlers that the built-in catalogue does not know, or knows differently, by product token", false,
		namedShape("what is known of the crawler", tokenShape, rowShape()), readCrawlers},
	{"rules", "who may do what with which paths", false,
		shape{"type": "array", "items": mapShape(ruleFields), "minItems": 1}, readRules},
	{"enforcement", "what the server does about a request that the rules disallow: off, log or block, or a map with the details", false,
		shape{"anyOf": []any{modeShape, mapShape(enforcementFields)}}, readEnforcement},
	{"publish", "which of the optional records robots.txt carries", false, mapShape(publishFields), readPublish},
}

// read reads the whole file.
func (p *parser) read(root *yaml.Node) {
	p.catalogue = p.base
	p.spec.Publish = policy.Publish{ACAP: policy.Auto, ContentUsage: policy.On}
	p.spec.Enforcement = policy.Enforcement{Mode: policy.ModeOff, Status: defaultStatus, Impostors: policy.ModeOff}
	readMap(p, root, "the file", fileFields, struct{}{})
	p.browsers()
	p.spec.Crawlers = convert(p.catalogue)
	if p.errors == 0 { // else the use may be in what could not be read
		p.unused()
	}
}

// browsers adds the names of rules that browsers have too. Nobody is recognised by
// them: they stand in robots.txt only.
func (p *parser) browsers() {
	yes, seen := true, map[string]bool{}
	var rows []crawlers.Row
	for i := range p.spec.Rules {
		for _, a := range p.spec.Rules[i].For {
			token := strings.ToLower(a.Name)
			if _, ok := p.catalogue.Lookup(a.Name); a.Kind == policy.ForToken && !ok && !seen[token] && crawlers.NamesBrowser(a.Name) {
				seen[token] = true
				rows = append(rows, crawlers.Row{Token: a.Name, RobotsOnly: &yes})
			}
		}
	}
	if len(rows) == 0 {
		return
	}
	if merged, err := p.catalogue.Merge(rows...); err == nil {
		p.catalogue = merged
	}
}

// convert is the catalogue as a policy takes it. A crawler that does not read
// robots.txt at all has no group of "*" to ignore: to name it there would only
// make the file longer.
func convert(c *crawlers.Catalogue) []policy.Crawler {
	if builtIn, err := crawlers.Default(); err == nil && c == builtIn {
		return convertBuiltIn()
	}
	return convertAll(c)
}

// convertBuiltIn is the built-in catalogue, converted once for all policies.
var convertBuiltIn = sync.OnceValue(func() []policy.Crawler {
	builtIn, _ := crawlers.Default()
	return slices.Clip(convertAll(builtIn))
})

func convertAll(c *crawlers.Catalogue) []policy.Crawler {
	all := make([]policy.Crawler, c.Len())
	for i := range all {
		all[i] = convertOne(c.At(i))
	}
	return all
}

func convertOne(c *crawlers.Crawler) policy.Crawler {
	reads := c.Honours != crawlers.HonoursNo && c.Honours != crawlers.HonoursUserTriggered
	return policy.Crawler{
		Token: c.Token, Operator: c.Operator, Kind: string(c.Kind), Purposes: c.Purposes,
		Follows: c.Follows, IgnoresStar: c.IgnoresStar && reads, RobotsOnly: c.RobotsOnly,
	}
}

func readVersion(p *parser, _, n *yaml.Node, _ struct{}) {
	if text, ok := p.text(n, "version"); ok && text != Version {
		p.report(posOf(n), "unknown-version", Version, "this program reads version %s of the policy file, and this says %s", Version, quote(text))
	}
}

func readSitemaps(p *parser, _, n *yaml.Node, _ struct{}) {
	p.texts(n, "sitemaps", func(n *yaml.Node, text string) {
		if p.address(n, "a sitemap", text, true) {
			p.spec.Sitemaps = append(p.spec.Sitemaps, text)
		}
	})
}

// address checks an absolute http or https URL or, where that makes sense, a path.
func (p *parser) address(n *yaml.Node, what, text string, pathToo bool) bool {
	accepts := "an address that starts with https://"
	if pathToo {
		accepts += " or /"
	}
	switch {
	case strings.ContainsAny(text, " \t"):
		p.report(posOf(n), "bad-address", "", "%s is %s, without spaces; write a space as %%20", what, accepts)
		return false
	case strings.Contains(text, "#"):
		p.report(posOf(n), "bad-address", "", `%s is written into robots.txt, where "#" starts a comment; leave it out, or write it as %%23`, what)
		return false
	case pathToo && strings.HasPrefix(text, "/") && !strings.HasPrefix(text, "//"):
		return true
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		near := ""
		switch {
		case strings.HasPrefix(text, "//"):
			near = "https:" + text
		case strings.HasPrefix(text, "www."):
			near = "https://" + text
		}
		p.report(posOf(n), "bad-address", near, "%s is %s, and this is %s", what, accepts, quote(text))
		return false
	}
	return true
}

// unused reports names that nothing uses: often a misspelling elsewhere.
func (p *parser) unused() {
	for _, s := range p.spec.Resources {
		if !p.sets[strings.ToLower(s.Name)].used {
			p.report(s.Pos, "unused-name", "", "no rule uses the set %s; use it, or delete it", quote(s.Name))
		}
	}
	for _, u := range p.spec.Usages {
		if !p.usages[strings.ToLower(u.Name)].used {
			p.report(u.Pos, "unused-name", "", "no rule uses the usage %s; use it under allow, or delete it", quote(u.Name))
		}
	}
}

// knownKeys are all keys of the grammar that could be glued to a value.
var knownKeys map[string]bool

func init() { // not an initial value, as the tables' readers look keys up
	knownKeys = map[string]bool{}
	for _, names := range [][]string{
		fileFields.names(), ruleFields.names(), rowFields.names(), enforcementFields.names(), publishFields.names(),
		entryFields.names(), tagFields.names(), appFields.names(), qualifiedFields.names(),
	} {
		for _, name := range names {
			knownKeys[name] = true
		}
	}
	for _, u := range policy.Usages() {
		knownKeys[u.String()] = true
	}
}

func isKnownKey(s string) bool { return knownKeys[s] }
