// SPDX-License-Identifier: Apache-2.0

package policytest

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotsrule"
)

// PatternKind selects the patterns in a policy that Full makes.
type PatternKind string

// The kinds of patterns.
const (
	AnyPatterns     PatternKind = "any"                      // patterns of few letters, "*" and "$"
	PlainPatterns   PatternKind = "plain"                    // prefixes of few letters
	EncodedPatterns PatternKind = "percent-encoded and case" // patterns with bytes that have several spellings
	SitePatterns    PatternKind = "as on a site"
	TiedPatterns    PatternKind = "ties" // patterns of equal length that match the same paths
)

var patternKinds = []PatternKind{AnyPatterns, PlainPatterns, PlainPatterns, EncodedPatterns, SitePatterns, SitePatterns, TiedPatterns}

// RealTokens lists crawlers of the built-in catalog. The rules of a policy that Full makes are for some of them.
var RealTokens = []string{"Googlebot", "Bingbot", "GPTBot", "CCBot", "Google-Extended", "Applebot", "Applebot-Extended", "Bytespider", "AhrefsBot"}

// Full makes a random policy with all parts that a policy file can have. Its effect does not depend on the current
// time: its time limits are far in the past or in the future.
func Full(r *rand.Rand) (*policy.Spec, PatternKind) {
	kind := patternKinds[r.IntN(len(patternKinds))]
	o := Options{
		NoWildcards: kind == PlainPatterns, Limits: []string{"until-2001-02-03", "until-2999-12-31", "until-2999-06-15", "3-days", "until-recrawled"},
		NoIdentity: r.IntN(3) > 0, NoPurposes: r.IntN(2) > 0, NoHosts: r.IntN(3) == 0, MaxRules: 3 + r.IntN(12),
	}
	switch crawl := []policy.Usage{policy.Crawl}; r.IntN(3) {
	case 0:
		o.Usages = crawl
	case 1:
		o.Usages = append(slices.Repeat(crawl, 8), policy.Usages()...)
	}
	if kind == TiedPatterns { // ties only matter if many rules match the same path
		o.Usages, o.NoHosts, o.MaxRules = []policy.Usage{policy.Crawl}, true, 14
	}
	spec := Random(r, o)
	for i := range spec.Rules {
		dress(r, kind, &spec.Rules[i])
	}
	repurpose(r, spec)
	repattern(r, kind, spec)
	if r.IntN(2) == 0 {
		AddDirectives(r, spec, kind == PlainPatterns || r.IntN(2) == 0)
	}
	if r.IntN(8) == 0 {
		spec.Rules = append(spec.Rules, policy.Rule{For: []policy.Audience{{Kind: policy.ForToken, Name: "ThetaBot"}}, PermissionsReference: "/thetabot.txt"})
	}
	finish(r, spec)
	return spec, kind
}

func oneOf[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// dress completes a rule that Random has made: it adds the parts that rules of Random never have, such as a name.
func dress(r *rand.Rand, kind PatternKind, rule *policy.Rule) {
	if r.IntN(4) == 0 {
		rule.For = append(rule.For, policy.Audience{Kind: policy.ForToken, Name: oneOf(r, RealTokens...)})
	}
	if r.IntN(4) == 0 {
		rule.Name = oneOf(r, "staff", "no training", "archive: old", "caf\u00e9")
	}
	rule.Intended = true
	rule.Enforce = oneOf(r, policy.ModeUnset, policy.ModeUnset, policy.ModeOff, policy.ModeLog, policy.ModeBlock, policy.ModeBlock)
	if r.IntN(6) == 0 {
		rule.CrawlDelay = oneOf(r, time.Second, 1500*time.Millisecond, 10*time.Second)
	}
	for j := range rule.Statements {
		if s := &rule.Statements[j]; s.Allow && s.Qualifiers == nil && r.IntN(2) == 0 {
			s.Qualifiers = qualified(r, s.Usage)
		}
	}
	seen := map[string]bool{}
	for range r.IntN(3) * r.IntN(2) {
		name, value, _ := strings.Cut(oneOf(r, "max-image-preview:large", "max-image-preview:none", "max-image-preview:standard",
			"max-video-preview:10", "max-video-preview:-1", "notranslate", "noimageindex", "nocache"), ":")
		pattern := NewPattern(r, kind)
		if seen[name+pattern.String()] {
			continue
		}
		seen[name+pattern.String()] = true
		text := name
		if value != "" {
			text += ":" + value
		}
		rule.EngineRules = append(rule.EngineRules, policy.EngineRule{Pattern: pattern, Name: name, Rule: robotsrule.Of(text)})
	}
}

// Purposes lists the purposes in the rules that Full makes. Clients may name them in any case.
var Purposes = []string{"news", "research", "sport"}

// repurpose gives each audience that is a purpose a random name from the first few elements of Purposes. The number of
// these elements is random, too. repurpose also adds a purpose to the audiences of some rules.
func repurpose(r *rand.Rand, spec *policy.Spec) {
	names := Purposes[:1+r.IntN(len(Purposes))]
	for i := range spec.Rules {
		rule := &spec.Rules[i]
		if r.IntN(8) == 0 {
			rule.For = append(rule.For, policy.Audience{Kind: policy.ForPurpose})
		}
		for j := range rule.For {
			if a := &rule.For[j]; a.Kind == policy.ForPurpose {
				a.Name = oneOf(r, names...)
			}
		}
	}
}

func qualified(r *rand.Rand, u policy.Usage) *policy.Qualifiers {
	q := &policy.Qualifiers{}
	ok := false
	for _, c := range []struct {
		name  policy.QualifierName
		value string
	}{
		{policy.QualifierMaxLength, oneOf(r, "250-chars", "40-words", "1-words", "1-chars")},
		{policy.QualifierProhibitedModification, oneOf(r, "any", "translation", "format", "style")},
		{policy.QualifierMustUseResource, "http://www.example.com/other"},
		{policy.QualifierProhibitedContext, "within-user-frame"},
	} {
		if r.IntN(2) == 0 && q.SetQualifier(u, c.name, c.value) == nil {
			ok = true
		}
	}
	if !ok {
		return nil
	}
	return q
}

// repattern gives the statements new patterns of a kind. If two statements of a rule then have the same usage and
// pattern, repattern drops the second. Otherwise, the rule might both allow and disallow the usage, which a policy file
// must not do.
func repattern(r *rand.Rand, kind PatternKind, spec *policy.Spec) {
	for i := range spec.Rules {
		seen := map[string]bool{}
		rule := &spec.Rules[i]
		for j := range rule.Statements {
			rule.Statements[j].Pattern = NewPattern(r, kind)
		}
		rule.Statements = slices.DeleteFunc(rule.Statements, func(s policy.Statement) bool {
			key := s.Usage.String() + s.Pattern.String()
			said := seen[key]
			seen[key] = true
			return said
		})
	}
}

// NewPattern makes a random pattern of the given kind.
func NewPattern(r *rand.Rand, kind PatternKind) pathpattern.Pattern {
	var text string
	switch kind {
	case EncodedPatterns:
		text = "/" + oneOf(r, "%41", "A", "a", "%C3%A9", "%e2%82%ac", "%2F", "/", "%2a", "%24", "b*", "@", "%40", "(a", "%28a") + oneOf(r, "", "/", "$", "*%41", "A*")
	case SitePatterns:
		text = oneOf(r, "/", "/", "/news/", "/news", "/News/", "/premium/", "/premium/*.html$", "/*.pdf$", "/*.pdf", "/search?q=", "/*?print=", "/news/2026/",
			"/premium/free/", "/admin/", "/$", "*/draft", "/*/draft/", "/.well-known/", "/news/*/photos/")
	case TiedPatterns:
		text = "/" + oneOf(r, "a*b", "*ab", "ab*", "a*a", "aa*", "*ba", "b*a", "a/*", "*/a", "abab", "a$", "*a$", "*b$", "ab$", "a*$")
	case AnyPatterns, PlainPatterns:
		text = Pattern(r, kind == PlainPatterns)
	}
	return pathpattern.MustParse(text)
}

func finish(r *rand.Rand, spec *policy.Spec) {
	onOff := func() policy.Switch { return policy.Switch(r.IntN(2)) }
	spec.Publish = policy.Publish{
		ACAP: oneOf(r, policy.Off, policy.On, policy.Auto), UserAgentPurpose: onOff(),
		ContentUsage: oneOf(r, policy.On, policy.On, policy.Off), ContentSignal: onOff(),
	}
	if r.IntN(3) == 0 {
		spec.Publish.License = "https://www.example.com/license.xml"
	}
	if r.IntN(3) == 0 {
		spec.Sitemaps = []policy.Sitemaps{{Addresses: []string{"/sitemap.xml", "https://cdn.example.com/news.xml"}[:1+r.IntN(2)]}}
	}
	spec.Enforcement = policy.Enforcement{
		Mode: oneOf(r, policy.ModeOff, policy.ModeLog, policy.ModeBlock, policy.ModeBlock), Impostors: oneOf(r, policy.ModeOff, policy.ModeLog, policy.ModeBlock),
		Status: oneOf(r, 403, 403, 401, 402, 404, 410, 429, 451),
	}
	switch r.IntN(8) {
	case 0:
		spec.Enforcement.RetryAfter = time.Minute
	case 1:
		spec.Enforcement.Message = "Please ask licenses@example.com."
	case 2:
		spec.Enforcement.Close = true
	}
	finishRights(spec)
}

// AddLifts adds some permissions with OverSite for everyone. Like finishRights, it derives its random numbers from the
// rest of the policy.
func AddLifts(kind PatternKind, spec *policy.Spec) {
	h := fnv.New64a()
	fmt.Fprint(h, kind, spec.Publish, spec.Rights.Offers)
	r := rand.New(rand.NewPCG(h.Sum64(), 1))
	if r.IntN(2) == 0 {
		return
	}
	var s []policy.Statement
	for _, u := range []policy.Usage{policy.Index, policy.PresentSnippet} {
		if r.IntN(3) > 0 {
			s = append(s, policy.Statement{Allow: true, Usage: u, Pattern: NewPattern(r, kind), OverSite: true})
		}
	}
	if s == nil {
		return
	}
	rule := policy.Rule{For: []policy.Audience{{}}, Statements: s, Intended: true}
	if r.IntN(3) == 0 {
		rule.Hosts = []policy.Host{oneOf(r, ruleHosts...)}
	}
	spec.Rules = append(spec.Rules, rule)
}

// UsageTokens holds the usage tokens in policies that Full makes. None of them is a part of a crawler's name.
var UsageTokens = policy.UsageTokens{"No-Training-Token", "No-Answers-Token", "No-Search-Token"}

// finishRights switches rights documents and signals on and off. It derives its random numbers from the rest of the
// policy instead of r in Full, so that Full still makes the same rules from a seed when this function changes.
func finishRights(spec *policy.Spec) {
	h := fnv.New64a()
	fmt.Fprint(h, spec.Publish, spec.Enforcement, spec.SitemapsOf(""), len(spec.Rules))
	for i := range spec.Rules {
		fmt.Fprint(h, spec.Rules[i].For, len(spec.Rules[i].Statements))
	}
	r := rand.New(rand.NewPCG(h.Sum64(), 0))
	onOff := func() policy.Switch { return policy.Switch(r.IntN(2)) }
	p := &spec.Publish
	p.Controls, p.TDMRep = oneOf(r, policy.Auto, policy.Auto, policy.Off), onOff()
	if p.ContentSignal == policy.On {
		p.ContentSignalUse = oneOf(r, "", "immediate", "reference", "full")
	}
	for i := range p.UsageTokens {
		if r.IntN(2) == 0 {
			p.UsageTokens[i] = UsageTokens[i]
		}
	}
	if p.License == "" {
		p.RSL = oneOf(r, "", "/license.xml", "/licenses/site.xml")
	}
	if r.IntN(2) == 0 {
		spec.Rights.TDMPolicy = "https://www.example.com/tdm.json?a=1&b=2"
	}
	if r.IntN(2) == 0 {
		spec.Rights.Copyright, spec.Rights.Contact = "Example <Media> & Co", oneOf(r, "mailto:a@example.com", "https://example.com/ask")
	}
	for _, u := range policy.RightsUsages() {
		if r.IntN(4) == 0 {
			o := policy.Offer{Usage: u, Payment: oneOf(r, policy.OfferPayments()...), URL: "https://www.example.com/buy?a=1&b=2"}
			if r.IntN(2) == 0 {
				o.Amount, o.Currency, o.Users = "0.015", "EUR", []string{"commercial"}
			}
			spec.Rights.Offers = append(spec.Rights.Offers, o)
		}
	}
	p.NoAI = onOff()
	if spec.Sitemaps != nil && r.IntN(2) == 0 {
		spec.Sitemaps = append(spec.Sitemaps, policy.Sitemaps{Host: oneOf[policy.Host](r, "example.com", "*.example.com"), Addresses: []string{"/own.xml"}})
	}
}

// AllRegisters switches on every rights document and signal.
func AllRegisters(spec *policy.Spec) {
	p := &spec.Publish
	p.Controls, p.UsageTokens, p.TDMRep, p.ContentSignal, p.NoAI = policy.Auto, UsageTokens, policy.On, policy.On, policy.On
	if p.ContentUsage == policy.Off {
		p.ContentUsage = policy.On
	}
	if p.License = ""; p.RSL == "" {
		p.RSL = "/license.xml"
	}
}

// AddDirectives adds random application directives to the rules of a policy. If plain is true, their patterns have
// neither "*" nor "$".
func AddDirectives(r *rand.Rand, spec *policy.Spec, plain bool) {
	for i := range spec.Rules {
		for j := range r.IntN(3) {
			text := oneOf(r, "examplesearch;widgets=?0", "examplesearch;b;a=1", "other;x", `other;text="b"`, "third")
			app, _, _ := strings.Cut(text, ";")
			pattern := pathpattern.MustParse(Pattern(r, plain))
			if slices.ContainsFunc(spec.Rules[i].AppDirectives, func(d policy.AppDirective) bool { return d.App == app && d.Pattern == pattern }) {
				continue
			}
			spec.Rules[i].AppDirectives = append(spec.Rules[i].AppDirectives, policy.AppDirective{
				Pos: policy.Pos{Line: 1000*i + j, Column: 1}, Pattern: pattern, App: app, Text: text,
			})
		}
	}
}

// PathFor makes a random path as a client might send it, which may not be in normal form. If Full has made a policy
// with patterns of the given kind, the policy's patterns are likely to match the path.
func PathFor(r *rand.Rand, kind PatternKind) string {
	var path string
	switch kind {
	case EncodedPatterns:
		path = "/"
		for range r.IntN(4) {
			path += oneOf(r, "%41", "A", "a", "%C3%A9", "\u00e9", "%E2%82%AC", "%2F", "/", "*", "$", "b", "@", "%40", "(", "%28", ";", "/..", "%5C")
		}
	case SitePatterns:
		path = oneOf(r, "/", "/news", "/news/", "/News/x", "/news/2026/x.html", "/premium/x.html", "/premium/x.html?a=b", "/premium/free/x", "/a.pdf", "/a.pdf?page=2",
			"/search?q=x", "/search", "/x?print=1", "/admin/x", "/x/draft", "/x/draft/y", "/.well-known/x", "/news/x/photos/1.jpg", "/license.xml", "/robots.txt", "/other")
	case AnyPatterns, PlainPatterns, TiedPatterns:
		path = "/" + text(r, oneOf(r, "aab/", "aab", "ab"), 8)
	}
	switch r.IntN(24) {
	case 0:
		path = "/" + path // the path begins with two slashes
	case 1:
		path = "/x/.." + path
	case 2:
		path += oneOf(r, "?", "?x=y", ";s=1", "%2F", "%2Fa")
	case 3:
		path = "/robots.txt"
	case 4:
		path = strings.Replace(path, "a", "%61", 1)
	}
	return path
}
