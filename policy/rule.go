// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/ascii"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/robotsrule"
)

// Pos is a place in the policy file. Line and column start at 1. The zero value means that the place is unknown.
type Pos struct {
	Line   int `json:"line"`
	Column int `json:"column"`
}

// AudienceKind is the kind of an Audience.
type AudienceKind uint8

// The kinds of audience.
const (
	ForEveryone     AudienceKind = iota
	ForToken                     // a product token (RFC 9309 section 2.2.1)
	ForCategory                  // the crawlers with this category
	ForOperator                  // the crawlers of an operator
	ForPurpose                   // the crawlers with a purpose (User-Agent-Purpose)
	ForEveryoneElse              // everyone; but a rule that allows a crawler by name overrides the prohibitions
	ForAI                        // all AI crawlers, whatever their category
)

var audiencePrefixes = [...]string{"everyone", "", "category:", "operator:", "purpose:", "everyone-else", "category:ai"}

// Audience is a set of crawlers that a rule is for.
type Audience struct {
	Kind AudienceKind
	Name string // empty for ForEveryone, ForEveryoneElse and ForAI
}

// tokenPrefix may precede a product token in a policy file. A crawler whose token is "everyone" or "everyone-else" can
// be named only with this prefix, because these words alone mean groups of crawlers.
const tokenPrefix = "crawler:"

// ParseAudience parses an audience of a policy file. It accepts "everyone" or "*", "everyone-else", "category:ai",
// "category:NAME", "operator:NAME", "purpose:NAME" and "crawler:TOKEN". It treats every other text as a product token.
func ParseAudience(s string) Audience {
	switch {
	case s == "*" || strings.EqualFold(s, audiencePrefixes[ForEveryone]):
		return Audience{}
	case strings.EqualFold(s, audiencePrefixes[ForEveryoneElse]):
		return Audience{Kind: ForEveryoneElse}
	case len(s) >= len(tokenPrefix) && strings.EqualFold(s[:len(tokenPrefix)], tokenPrefix):
		return Audience{ForToken, strings.TrimSpace(s[len(tokenPrefix):])}
	}
	for k := ForCategory; k <= ForPurpose; k++ {
		prefix := audiencePrefixes[k]
		if len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix) {
			a := Audience{k, strings.TrimSpace(s[len(prefix):])}
			if strings.EqualFold(prefix+a.Name, audiencePrefixes[ForAI]) {
				a = Audience{Kind: ForAI}
			}
			return a
		}
	}
	return Audience{ForToken, s}
}

// String returns the audience as a policy file writes it.
func (a Audience) String() string {
	if a.Kind == ForToken && ParseAudience(a.Name).Kind != ForToken {
		return tokenPrefix + a.Name
	}
	return audiencePrefixes[a.Kind] + a.Name
}

// folded returns the audience with its name in lower case.
func (a Audience) folded() Audience { return Audience{a.Kind, ascii.Lower(a.Name)} }

var tiers = [...]Tier{
	ForEveryone: TierEveryone, ForToken: TierToken, ForCategory: TierGroup, ForOperator: TierGroup, ForPurpose: TierGroup, ForAI: TierAI, ForEveryoneElse: TierEveryone,
}

// Tier returns how closely the audience names crawlers.
func (a Audience) Tier() Tier { return tiers[a.Kind] }

// NarrowsAI reports whether an allow entry for the audience can override a disallow entry for all AI crawlers. The
// audience's name must be in lower case.
func (a *Audience) NarrowsAI() bool {
	return a.Kind == ForToken || a.Kind == ForCategory && strings.HasPrefix(a.Name, "ai-")
}

// Includes reports whether the audience is the crawler's category, its operator or one of its purposes, or is ForAI and
// the crawler is an AI crawler. It returns false for tokens and for everyone.
func (a Audience) Includes(c Crawler) bool {
	switch a.Kind {
	case ForCategory:
		return strings.EqualFold(c.Category, a.Name)
	case ForOperator:
		return strings.EqualFold(c.Operator, a.Name)
	case ForPurpose:
		return slices.ContainsFunc(c.Purposes, func(p string) bool { return strings.EqualFold(p, a.Name) })
	case ForAI:
		return c.AI
	case ForEveryone, ForEveryoneElse, ForToken:
	}
	return false
}

// A Tier is a degree of closeness between an audience and a crawler.
type Tier uint8

// The tiers, closest first.
const (
	TierToken    Tier = iota // the product token itself
	TierFamily               // the token of the crawler whose robots.txt group this crawler follows, see Policy.Family
	TierGroup                // a category, an operator or a purpose
	TierAI                   // all AI crawlers
	TierEveryone             // everyone and everyone-else
	NotNamed                 // no audience of the rule includes the crawler

	numTiers = NotNamed
)

// Mode determines how the server handles a disallowed request.
type Mode uint8

// The modes, mildest first. ModeUnset selects the policy's default.
const (
	ModeUnset Mode = iota
	ModeOff
	ModeLog
	ModeBlock
)

var modeNames = [...]string{"", "off", "log", "block"}

// String returns the mode as configurations spell it.
func (m Mode) String() string { return modeNames[m] }

// ParseMode returns the mode with a name. The result is false if there is no such mode.
func ParseMode(name string) (Mode, bool) {
	m := Mode(max(0, slices.Index(modeNames[:], name)))
	return m, m != ModeUnset
}

// Identity is the result of verifying a client.
type Identity uint8

// The results of verification.
const (
	Unknown  Identity = iota // the client was not checked, or there is no data to check it with
	Impostor                 // the check showed that the client is not the crawler that it claims to be
	Verified                 // the check showed that the client is the crawler that it claims to be
)

var identityNames = [...]string{"unverified", "impostor", "verified"}

// String returns the identity as explanations and logs write it.
func (i Identity) String() string { return identityNames[i] }

// Demand is a rule's condition on a client's identity.
type Demand uint8

// The demands. Every client meets DemandAny, which is the zero value.
const (
	DemandAny Demand = iota
	DemandNotImpostor
	DemandVerified
)

var demandNames = [...]string{"any", "not-impostor", "verified"}

// ParseDemand returns the demand with a name, such as "verified". The result is false if there is no such demand.
func ParseDemand(name string) (Demand, bool) {
	i := slices.Index(demandNames[:], name)
	return Demand(max(0, i)), i >= 0
}

// String returns the demand as a policy file writes it.
func (d Demand) String() string { return demandNames[d] }

// MetBy reports whether a rule with the demand d applies to clients with the identity i.
func (d Demand) MetBy(i Identity) bool {
	return d == DemandAny || i == Verified || d == DemandNotImpostor && i == Unknown
}

// Statement allows or disallows one usage of the resources whose paths match a pattern.
type Statement struct {
	Pos        Pos
	Allow      bool
	Usage      Usage
	Pattern    pathpattern.Pattern
	Written    string      // the pattern as its author wrote it, or "" if Pattern is the same text
	Qualifiers *Qualifiers // only permissions have qualifiers; nil if there are none
	Resource   string      // the name of the ResourceSet that contains the pattern, or ""
	Local      string      // the name of the LocalUsage that contains Usage, or ""
	OverSite   bool        // a permission that also removes restrictions in the site's own headers and meta tags
	Implied    bool        // a permission for paths that no line of a robots.txt group matches; Pos is the group
}

// AppDirective is a member of an App-Directives List (draft-nottingham-plan-b) for one pattern.
type AppDirective struct {
	Pos     Pos
	Pattern pathpattern.Pattern
	App     string // the application's identifier, an sf-token
	Text    string // the member of the List, which is the identifier with its directives as parameters
}

// EngineRule is a search engine's robots control rule that cannot be expressed as a usage, for one pattern.
type EngineRule struct {
	Pos     Pos
	Pattern pathpattern.Pattern
	Name    string // the name of the rule in lower case, without its value
	Rule    robotsrule.Set
}

// Line is a line in a robots.txt group, with the part of the policy that causes it.
type Line struct {
	Text    string
	Pattern pathpattern.Pattern // the pattern of the paths that the line is about
	Rule    *Rule
	Pos     Pos
}

// NewLine returns a line for the paths of a pattern. The line has no path if the pattern matches every path.
func NewLine(field string, at pathpattern.Pattern, value string) Line {
	if at != pathpattern.All {
		value = at.String() + " " + value
	}
	return Line{Text: field + ": " + value, Pattern: at}
}

// Rule is a rule of a policy.
type Rule struct {
	Name                 string
	Pos                  Pos
	For                  []Audience
	Hosts                []Host // empty means every host
	Identity             Demand
	UsagePurposes        []string // the rule applies only to queries with one of these purposes (ACAP 1.0 section 2.3.3)
	Statements           []Statement
	AppDirectives        []AppDirective
	EngineRules          []EngineRule
	CrawlDelay           time.Duration // 0 means that the rule has no delay
	NoCrawlDelay         bool          // the rule has "crawl-delay: none", so a wider rule's delay does not apply
	CrawlDelayPos        Pos
	Limit                Limit // the rate limit that the server enforces
	NoLimit              bool  // the rule has "limit: none", so a wider rule's limit does not apply
	LimitPos             Pos
	Enforce              Mode
	Intended             bool     // waives the safety check that the rule fails, if it fails only one
	IntendedChecks       []string // the safety checks that the rule waives, such as "blocks-search"
	PermissionsReference string   // ACAP 1.0 section 2.3.2
	Requests             []ActionRequest
	Fallback             bool   // the rule is from the site's own robots.txt, see Policy.WithFallback
	FallbackFile         string // the name of that file, or "" if it is not known
}

// Patterns yields the patterns of the rule's statements, engine rules and application directives.
func (r *Rule) Patterns(yield func(pathpattern.Pattern) bool) {
	for i := range r.Statements {
		if !yield(r.Statements[i].Pattern) {
			return
		}
	}
	for i := range r.EngineRules {
		if !yield(r.EngineRules[i].Pattern) {
			return
		}
	}
	for i := range r.AppDirectives {
		if !yield(r.AppDirectives[i].Pattern) {
			return
		}
	}
}

// PagePatterns yields the patterns and places of the rule's entries that headers and meta tags can express. These are
// the engine rules and all statements except statements about crawling.
func (r *Rule) PagePatterns(yield func(pathpattern.Pattern, Pos) bool) {
	for i := range r.Statements {
		if s := &r.Statements[i]; s.Usage != Crawl && !yield(s.Pattern, s.Pos) {
			return
		}
	}
	for i := range r.EngineRules {
		if e := &r.EngineRules[i]; !yield(e.Pattern, e.Pos) {
			return
		}
	}
}

// Lines returns the maximum number of lines that the rule can add to a robots.txt group.
func (r *Rule) Lines() int { return len(r.Statements) + len(r.AppDirectives) }

// InGroups reports whether the rule adds lines to robots.txt groups.
func (r *Rule) InGroups() bool {
	return r.CrawlDelay > 0 || r.NoCrawlDelay || len(r.AppDirectives) > 0 ||
		slices.ContainsFunc(r.Statements, func(s Statement) bool { return s.Usage.InGroups() })
}

// IsEmpty reports whether the rule has no effect.
func (r *Rule) IsEmpty() bool {
	return len(r.Statements)+len(r.AppDirectives)+len(r.EngineRules)+len(r.Requests) == 0 &&
		r.CrawlDelay == 0 && !r.NoCrawlDelay && r.Limit.IsZero() && !r.NoLimit && r.PermissionsReference == ""
}

// ActionRequest asks crawlers to act on one resource soon (ACAP 1.0 section 2.6). It does not affect
// decisions.
type ActionRequest struct {
	Pos    Pos
	Action string // TakeDown or ReCrawl
	Path   string // the path of the resource, which is not a pattern
}

// The actions of ACAP 1.0.
const (
	TakeDown = "take-down" // erase all copies and index entries (section 2.6.1)
	ReCrawl  = "re-crawl"  // fetch the resource again (section 2.6.2)
)

// Crawler describes a crawler of the catalog or of the policy.
type Crawler struct {
	Token            string // the product token (RFC 9309 section 2.2.1)
	Operator         string
	Category         string   // the NAME in "category:NAME"
	AI               bool     // "category:ai" includes the crawler
	Purposes         []string // the possible values of NAME in "purpose:NAME"
	Follows          []string // other crawlers, best first; this crawler obeys their group if no group names it
	IgnoresStar      bool     // the crawler does not obey the group of "*"
	NoToken          bool     // robots.txt cannot name the crawler, because Token is not documented as a product token
	Rare             bool     // neither the operator nor a common list documents the crawler's name for robots.txt
	Signer           bool     // only request signatures identify the crawler, so that channels cannot name it
	RobotsOnly       bool     // Token is a control token, which appears in robots.txt but never in requests
	ReadsMeta        bool     // the operator documents that the crawler reads robots meta tags with its name
	ControlsTraining bool     // Token is a control token that switches AI training off
	Main             string   // for a control token, the crawler whose pages the token is about, if known
	Control          *Control // rules in headers and meta tags that, according to the operator, disallow usages; or nil
	IntendedChecks   []string // safety checks that do not protect the crawler
}

// Name returns the crawler's token as a policy file writes it.
func (c Crawler) Name() string { return Audience{ForToken, c.Token}.String() }

// Shown returns the crawler's name for messages. It quotes "everyone else" and "unlisted clients", because messages use
// these words for groups of clients.
func (c Crawler) Shown() string {
	if token := strings.ToLower(c.Token); token == "everyone else" || token == "unlisted clients" {
		return strconv.Quote(c.Token)
	}
	return c.Name()
}

// ReadsPages reports whether headers and meta tags can name the crawler. That is the case for crawlers that fetch
// pages, and for control tokens with a documented meaning in meta tags.
func (c *Crawler) ReadsPages() bool { return !c.RobotsOnly || c.ReadsMeta }

// InTags reports whether, according to its operator, the crawler reads meta tags with its name.
func (c *Crawler) InTags() bool { return c.ReadsMeta || c.Control != nil }

// A Control is a set of robots control rules that, according to a crawler's operator, forbid some usages. The server
// sends Rules with a page if the policy disallows all usages in Takes for this page.
type Control struct {
	Rules robotsrule.Set
	Takes []Usage
}

// IsStranger reports whether nothing is known about the crawler, except the host that signs its requests. A rule that
// demands a verified client does not apply to such a crawler, because anyone can sign requests for their own host.
func (c *Crawler) IsStranger() bool { return c.Signer && c.Category == "" && c.Operator == "" }
