// SPDX-License-Identifier: Apache-2.0

// Package policyfile reads the policy file of a site. It parses YAML into a [policy.Policy], and reports problems
// as diagnostics. It also checks a policy for probable mistakes, prints a policy as YAML, and provides the JSON
// Schema.
//
// The authors of policy files are publishers. So every diagnostic names the place, describes the problem in plain
// words, and tells the author how to fix it. The values of YAML scalars are their source texts: on, 1e3 and 2027-01-31
// stand for exactly these characters.
package policyfile

import (
	"cmp"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/effect"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policyfile/lint"
	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
)

// File is a loaded policy file.
type File struct {
	Name    string
	Spec    *policy.Spec      // the statements of the file, with defaults, and with the whole catalog as Crawlers
	Policy  *policy.Policy    // the compiled Spec, with the lines of Options.Below as its fallback
	Catalog *crawlers.Catalog // Options.Catalog with the file's own crawlers
	Effect  *effect.Engine    // effects of Policy

	lines []string
}

// Options changes how a file is loaded. The zero value loads it like Load.
type Options struct {
	Now      time.Time         // the time for time limits; the zero value means the time of the call
	Catalog  *crawlers.Catalog // without the file's own crawlers; nil means the catalog in use (crawlers.Default)
	Accepted bool              // the same text was accepted before, so failing tests and exceeded limits are only warnings
	Below    *robotstxt.File   // the site's own robots.txt, the fallback for crawling; nil if there is none
}

// Load parses, checks, compiles and tests a policy file. Messages show name as the name of the file. The diagnostics
// are sorted. If at least one diagnostic is an error, the File is nil.
func Load(name string, data []byte) (*File, Diagnostics) {
	return LoadWith(name, data, Options{})
}

// LoadWith is like Load with options.
func LoadWith(name string, data []byte, o Options) (*File, Diagnostics) {
	p := newParser(name)
	var f *File
	if root := p.document(data); root != nil {
		f = p.load(root, o)
	}
	return f, p.list.Sorted()
}

func newParser(name string) *parser {
	return &parser{
		reporter:   reporter{file: name},
		skip:       map[*yaml.Node]bool{},
		keys:       allKeys(),
		ofRules:    setOf(ruleFields.names()),
		settings:   map[string][]string{"publish": publishFields.names(), "rights": rightsFields.names(), "enforcement": enforcementFields.names()},
		spec:       &policy.Spec{File: name},
		sets:       map[string]*resourceSet{},
		usages:     map[string]*localUsage{},
		intended:   map[string][]string{},
		ruleTokens: map[string]bool{},
	}
}

func (p *parser) load(root *yaml.Node, o Options) *File {
	if o.Now.IsZero() {
		o.Now = time.Now()
	}
	if p.base = o.Catalog; p.base == nil {
		p.base, _ = crawlers.Default() // the built-in catalog is valid
	}
	p.read(root)
	p.checkScopes(o.Accepted)
	if p.errors > 0 {
		return nil
	}
	engine := effect.New(policy.Compile(p.spec), p.catalog)
	p.lint(engine, o.Now)
	if o.Below != nil {
		engine = engine.Over(o.Below)
	}
	p.checkExpectations(engine, o)
	if p.errors > 0 {
		return nil
	}
	return &File{Name: p.file, Spec: p.spec, Policy: engine.Policy, Catalog: p.catalog, Effect: engine, lines: p.lines}
}

// maxScopes limits the pairs of an audience and a host that rules name, because each pair takes memory. The number of
// pairs of an audience is at least audienceScopes, because it takes memory even if its rule names no hosts.
const (
	maxScopes      = 600_000
	audienceScopes = 12
)

// checkScopes counts the pairs of an audience and a host in all rules, and reports if there are more than maxScopes.
// That is an error. It is only a warning if the same text was accepted before.
func (p *parser) checkScopes(accepted bool) {
	code, more := "too-many-rules", ""
	if accepted {
		code, more = "more-than-allowed", "; this policy is served because it was accepted before"
	}
	seen, pairs := map[string]bool{}, 0
	for i := range p.spec.Rules {
		r := &p.spec.Rules[i]
		key := fmt.Sprint(r.For, r.Hosts)
		if seen[key] {
			continue
		}
		seen[key] = true
		if pairs += len(r.For) * max(audienceScopes, len(r.Hosts)); pairs > maxScopes {
			p.report(r.Pos, code, "", "this rule and the rules above it name too many crawlers, or too many pairs of a crawler and a host; use categories and wildcards%s", more)
			return
		}
	}
}

func (p *parser) lint(engine *effect.Engine, now time.Time) {
	problems := lint.Check(lint.Input{
		Policy: engine.Policy, Effect: engine, Catalog: p.catalog, Sources: p.sources, Enforcement: p.enforcementAt, Now: now,
	})
	for _, problem := range problems {
		p.report(problem.Pos, problem.Code, "", "%s", problem.Message)
	}
}

// Add converts problems of channels to diagnostics, in the order of the file.
func (f *File) Add(problems []policy.Problem) Diagnostics {
	r := reporter{file: f.Name, lines: f.lines}
	for _, p := range problems {
		r.list = append(r.list, r.diagnostic(p, ""))
	}
	return r.list.Sorted()
}

const formatVersion = "1"

// fileFields are the keys of the file in the order of parsing. Names come before the rules that use them.
var fileFields = fields[*policy.Spec]{
	key("version", "the version of this format, which is 1", shape{"const": 1}, readVersion, nil).must(),
	textKey("catalog", "the date of the crawler catalog that the policy was written for. While the policy is in force, Caddy does not install a catalog of another date, even with \"catalog auto\" in the Caddyfile",
		textShape("a date, such as 2026-11-24", `^\d{4}-\d{2}-\d{2}$`), (*parser).pin, func(spec *policy.Spec) *string { return &spec.Catalog }),
	key("sitemaps", "the sitemaps of the site: an address or a list of addresses for all hosts, or a map of hosts to addresses, with \"*\" for all other hosts. An address that starts with / is completed with each host's name",
		shape{"anyOf": []any{sitemapsShape, namedShape("addresses by host", hostKeyShape, sitemapsShape)}}, readSitemaps, printSitemaps),
	key("resources", "names for sets of paths; rules can use a name wherever they can have a path",
		namedShape("a path or a list of paths", nameShape, oneOrMore(pathShape)), readSets, printSets),
	key("usages", "names for usages with conditions (qualifiers), and for several usages together; only allow entries may use these names",
		usagesShape, readUsages, printUsages),
	key("crawlers", "crawlers that are missing in the built-in catalog, or whose data you want to change. Each key is the name of a crawler in robots.txt (its product token)",
		namedShape("the crawler", tokenShape, rowShape()), readCrawlers, printCrawlers),
	key("rules", "the rules: what each crawler may do with which paths",
		shape{"type": "array", "items": mapShape(ruleFields), "minItems": 1}, readRules, printRules),
	key("enforcement", "what the server does with a request that the rules disallow: off, log or block, or a map with the details",
		shape{"anyOf": []any{modeShape, mapShape(enforcementFields)}}, readEnforcement, printEnforcement),
	subMap("publish", "the optional channels that Caddy publishes, such as rights documents and usage signals", publishFields,
		func(spec *policy.Spec) *policy.Publish { return &spec.Publish }),
	subMap("rights", "the owner of the content, and the terms of licenses; for TDMRep and RSL", rightsFields,
		func(spec *policy.Spec) *policy.Rights { return &spec.Rights }),
	key("expect", "tests of the form AGENT may USAGE PATH, or AGENT may not USAGE PATH. If a test fails, the policy is not loaded",
		oneOrMore(textShape("a test, such as: Googlebot may crawl /news/", ` may `)), readExpect,
		func(w *printer, spec *policy.Spec) { w.under("expect", func() { w.items(texts(spec.Expect)) }) }),
}

func (p *parser) read(root *yaml.Node) {
	p.catalog = p.base
	p.spec.Publish = defaultPublish
	p.spec.Enforcement = policy.Enforcement{Mode: policy.ModeOff, Status: defaultStatus, Impostors: policy.ModeOff}
	readMap(p, root, theFile, fileFields, p.spec)
	p.misspelled()
	p.browsers()
	p.signers()
	p.checkRights()
	p.setCrawlers()
	if p.errors == 0 { // after an error, a part that the parser skipped may use a name
		p.unused()
	}
}

// browsers finds rules for names that are also in the User-Agents of browsers, such as Mozilla. It adds a crawler to
// the catalog for each of these names. The server cannot tell the requests of such a crawler from requests by browsers,
// so rules for it have an effect only in robots.txt.
func (p *parser) browsers() {
	yes, seen := true, map[string]bool{}
	var rows []crawlers.Row
	for i := range p.spec.Rules {
		for _, a := range p.spec.Rules[i].For {
			token := strings.ToLower(a.Name)
			if _, ok := p.catalog.Lookup(a.Name); a.Kind == policy.ForToken && !ok && !seen[token] && crawlers.NamesBrowser(a.Name) {
				seen[token] = true
				rows = append(rows, crawlers.Row{Token: a.Name, RobotsOnly: &yes})
			}
		}
	}
	p.add(rows)
}

func (p *parser) signers() {
	var rows []crawlers.Row
	for i := range p.spec.Rules {
		r := &p.spec.Rules[i]
		for j, a := range r.For {
			if a.Kind != policy.ForToken || !crawlers.IsSigner(a.Name) {
				continue
			}
			if r.Identity != policy.DemandAny {
				p.report(p.sources[i].Audiences[j], "bad-audience", "", "a request matches %s only if its signature is valid, so this rule cannot have the key \"identity\"; put signed:HOST in a separate rule", quote(a.Name))
			}
			if row := p.catalog.SignerRow(a.Name); !slices.ContainsFunc(rows, func(r crawlers.Row) bool { return r.Token == row.Token }) {
				if rows = append(rows, row); len(rows) == maxSigners+1 {
					p.report(p.sources[i].Audiences[j], "too-many-rules", "", "a policy file can have signed:HOST for at most %d different hosts", maxSigners)
				}
			}
		}
	}
	p.add(rows)
}

// maxSigners limits the number of key directories that the server fetches because of a policy file.
const maxSigners = 32

func (p *parser) add(rows []crawlers.Row) {
	if len(rows) == 0 {
		return
	}
	if merged, err := p.catalog.Merge(rows...); err == nil {
		p.catalog = merged
	}
}

func (p *parser) setCrawlers() {
	table := convert(p.catalog)
	if p.spec.Crawlers, p.spec.Table = table.Crawlers(), table; len(p.intended) == 0 {
		return
	}
	p.spec.Crawlers, p.spec.Table = slices.Clone(p.spec.Crawlers), nil
	for i := range p.spec.Crawlers {
		p.spec.Crawlers[i].IntendedChecks = p.intended[strings.ToLower(p.spec.Crawlers[i].Token)]
	}
}

func convert(c *crawlers.Catalog) *policy.CrawlerTable {
	build := func() *policy.CrawlerTable {
		all := make([]policy.Crawler, c.Len())
		for i := range all {
			all[i] = convertOne(c.At(i))
			addControls(&all[i], c)
		}
		return policy.NewCrawlerTable(all)
	}
	if table, ok := converted.Get(c, build); ok {
		return table
	}
	return build()
}

// converted holds the crawlers of the catalog in use, converted to the type of package policy. All policies share this
// table.
var converted crawlers.Derived[*policy.CrawlerTable]

// productName matches a product token of RFC 9309 section 2.2.1, or one with digits, which most readers accept.
var productName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// documentsToken reports whether the operator, or a list that publishers copy, documents the name for robots.txt.
func documentsToken(c *crawlers.Crawler) bool {
	return slices.Contains(c.Sources, "operator") || slices.Contains(c.Sources, "ai.robots.txt")
}

// convertOne converts a crawler. It does not set IgnoresStar for a crawler that does not read robots.txt.
func convertOne(c *crawlers.Crawler) policy.Crawler {
	reads := c.Honors != crawlers.HonorsNo && c.Honors != crawlers.HonorsUserTriggered
	return policy.Crawler{
		Token: c.Token, Operator: c.Operator, Category: string(c.Category), AI: c.IsAI(), Purposes: c.Purposes,
		Follows: c.Follows, IgnoresStar: c.IgnoresStar && reads, RobotsOnly: c.RobotsOnly, ReadsMeta: c.ReadsMeta,
		Signer:           c.IsSigner(),
		NoToken:          c.IsSigner() || !c.FromPolicy && !productName.MatchString(c.Token) && !documentsToken(c),
		Rare:             !c.FromPolicy && !c.RobotsOnly && !documentsToken(c) && c.Honors != crawlers.HonorsYes && c.Honors != crawlers.HonorsPartly,
		ControlsTraining: c.RobotsOnly && c.Category == crawlers.CategoryAITraining,
	}
}

func readVersion(p *parser, n *yaml.Node, _ *policy.Spec) {
	if text, ok := p.text(n, "version"); ok && text != formatVersion {
		p.report(posOf(n), "unknown-version", formatVersion, "invalid version %s: this program reads version %s", quote(text), formatVersion)
	}
}

func (p *parser) pin(n *yaml.Node, _, text string) bool {
	if _, err := time.Parse(time.DateOnly, text); err != nil {
		return p.refuse(n, "bad-value", "", "invalid catalog %s: must be a date such as 2026-11-24", quote(text))
	}
	if text != p.base.AsOf() {
		p.report(posOf(n), "another-catalog", "", `this policy was written for the crawler catalog of %s, but another catalog is in use, where crawlers may have other names or categories. Compare the catalogs with "diff --catalog", and write here the date that the command "crawlers" prints`, text)
	}
	return true
}

var sitemapsShape = oneOrMore(textShape("an address, such as /sitemap.xml or https://www.example.com/sitemap.xml", `^(/|https?://)`))

func readSitemaps(p *parser, n *yaml.Node, spec *policy.Spec) {
	p.eachHost(n, "sitemaps", func(value *yaml.Node, host policy.Host) {
		all := policy.Sitemaps{Host: host}
		p.texts(value, "sitemaps", func(n *yaml.Node, text string) {
			if p.addressOrPath(n, "a sitemap", text) {
				all.Addresses = append(all.Addresses, text)
			}
		})
		if len(all.Addresses) > 0 {
			spec.Sitemaps = append(spec.Sitemaps, all)
		}
	})
}

func printSitemaps(w *printer, spec *policy.Spec) {
	if len(spec.Sitemaps) == 1 && spec.Sitemaps[0].Host == "" {
		w.texts("sitemaps", spec.Sitemaps[0].Addresses)
		return
	}
	w.under("sitemaps", func() {
		for _, s := range spec.Sitemaps {
			w.texts(Scalar(cmp.Or(string(s.Host), otherHosts)), s.Addresses)
		}
	})
}

func (p *parser) addressOrPath(n *yaml.Node, what, text string) bool {
	return p.address(n, what, text, true)
}

// address checks an absolute http or https URL. If pathToo is true, the text may also be a path.
func (p *parser) address(n *yaml.Node, what, text string, pathToo bool) bool {
	accepts := "an address that starts with https://"
	if pathToo {
		accepts += " or /"
	}
	switch {
	case strings.ContainsAny(text, " \t"):
		return p.refuse(n, "bad-address", "", "%s must be %s, without spaces; write a space as %%20", what, accepts)
	case strings.Contains(text, "#"):
		return p.refuse(n, "bad-address", "", `%s is published in robots.txt, where "#" starts a comment; leave "#" out, or write %%23`, what)
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
		return p.refuse(n, "bad-address", near, "invalid address %s: %s must be %s", quote(text), what, accepts)
	}
	return true
}

// unused reports names that no rule uses. Often such a name is misspelled in a rule.
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

// allKeys returns all keys of the format. isJoined and isGlued need them, because authors sometimes join a key to its
// value.
func allKeys() map[string]bool {
	keys := slices.Concat(
		fileFields.names(), ruleFields.names(), rowFields.names(), enforcementFields.names(), publishFields.names(),
		rightsFields.names(), offerFields.names(), usageTokenFields.names(),
		entryFields.names(), tagFields.names(), appFields.names(), qualifiedFields.names(), usageNames(),
	)
	return setOf(keys)
}

func setOf(names []string) map[string]bool {
	set := map[string]bool{}
	for _, name := range names {
		set[name] = true
	}
	return set
}
