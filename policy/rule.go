// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"strings"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/ascii"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/robotsrule"
)

// Pos is a place in the policy file. Line and column start at 1; the zero value means no place.
type Pos struct {
	Line   int `json:"line"`
	Column int `json:"column"`
}

// AudienceKind is a way to name crawlers.
type AudienceKind uint8

// The kinds of audience.
const (
	ForEveryone     AudienceKind = iota
	ForToken                     // a product token (RFC 9309 section 2.2.1)
	ForCategory                  // the crawlers with this category
	ForOperator                  // the crawlers of an operator
	ForPurpose                   // the crawlers of a purpose (User-Agent-Purpose)
	ForEveryoneElse              // everyone; a rule that allows a crawler by name overrides its prohibitions
	ForAI                        // all AI crawlers, whatever their category
)

var audiencePrefixes = [...]string{"everyone", "", "category:", "operator:", "purpose:", "everyone-else", "category:ai"}

// Audience names crawlers.
type Audience struct {
	Kind AudienceKind
	Name string // empty for ForEveryone, ForEveryoneElse and ForAI
}

// ParseAudience reads an audience as in a policy file: "everyone" or "*", "everyone-else", "category:ai",
// "category:NAME", "operator:NAME", "purpose:NAME", else a product token.
func ParseAudience(s string) Audience {
	switch {
	case s == "*" || strings.EqualFold(s, audiencePrefixes[ForEveryone]):
		return Audience{}
	case strings.EqualFold(s, audiencePrefixes[ForEveryoneElse]):
		return Audience{Kind: ForEveryoneElse}
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
func (a Audience) String() string { return audiencePrefixes[a.Kind] + a.Name }

// folded returns the audience with its name in lower case.
func (a Audience) folded() Audience { return Audience{a.Kind, ascii.Lower(a.Name)} }

var tiers = [...]Tier{
	ForEveryone: TierEveryone, ForToken: TierToken, ForCategory: TierGroup, ForOperator: TierGroup, ForPurpose: TierGroup, ForAI: TierAI, ForEveryoneElse: TierEveryone,
}

// Tier returns how closely the audience names crawlers.
func (a Audience) Tier() Tier { return tiers[a.Kind] }

// NarrowsAI reports whether an allow for the audience, with its name in lower case, can override a disallow for all crawlers for AI.
func (a *Audience) NarrowsAI() bool {
	return a.Kind == ForToken || a.Kind == ForCategory && strings.HasPrefix(a.Name, "ai-")
}

// Includes reports whether the audience is a category, an operator or a purpose of the crawler.
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

// Tier is the closeness with which an audience names a crawler.
type Tier uint8

// The tiers, closest first.
const (
	TierToken    Tier = iota // the product token itself
	TierFamily               // the token of the crawler whose group this crawler follows, see Policy.Family
	TierGroup                // a category, an operator or a purpose
	TierAI                   // all crawlers for AI
	TierEveryone             // everyone and everyone-else
	NotNamed                 // the rule is not for the crawler

	numTiers = NotNamed
)

// Mode is the server's reaction to a disallowed request.
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

// ParseMode returns the mode with a name.
func ParseMode(name string) (Mode, bool) {
	m := Mode(max(0, slices.Index(modeNames[:], name)))
	return m, m != ModeUnset
}

// Identity is the result of verifying a client.
type Identity uint8

// The results of verification.
const (
	Unknown  Identity = iota // not checked, or nothing to check against
	Impostor                 // checked, and not the crawler it claims to be
	Verified                 // checked, and the crawler it claims to be
)

var identityNames = [...]string{"unverified", "impostor", "verified"}

// String returns the identity as explanations and logs write it.
func (i Identity) String() string { return identityNames[i] }

// Demand is a rule's condition on a client's identity.
type Demand uint8

// The demands. DemandAny, the zero value, is met by every client.
const (
	DemandAny Demand = iota
	DemandNotImpostor
	DemandVerified
)

var demandNames = [...]string{"any", "not-impostor", "verified"}

// ParseDemand returns the demand with a name of the policy file, such as "verified", and whether there is one.
func ParseDemand(name string) (Demand, bool) {
	i := slices.Index(demandNames[:], name)
	return Demand(max(0, i)), i >= 0
}

// String returns the demand as a policy file writes it.
func (d Demand) String() string { return demandNames[d] }

// MetBy reports whether a rule with demand d is for clients of identity i.
func (d Demand) MetBy(i Identity) bool {
	return d == DemandAny || i == Verified || d == DemandNotImpostor && i == Unknown
}

// Statement allows or disallows one usage of the resources of one pattern.
type Statement struct {
	Pos        Pos
	Allow      bool
	Usage      Usage
	Pattern    pathpattern.Pattern
	Written    string      // the pattern as its author wrote it, or "" where that is Pattern
	Qualifiers *Qualifiers // only of permissions; nil if there are none
	Resource   string      // the named set that the pattern is from, if any
	Local      string      // the locally defined usage that Usage is from, if any
	OverSite   bool        // a permission that lifts the site's own restriction in headers and meta tags
}

// AppDirective is a member of an App-Directives List (draft-nottingham-plan-b) for one pattern.
type AppDirective struct {
	Pos     Pos
	Pattern pathpattern.Pattern
	App     string // the application's identifier, an sf-token
	Text    string // the member of the List: the identifier with its directives as parameters
}

// EngineRule is a robots control rule that no usage expresses, for one pattern.
type EngineRule struct {
	Pos     Pos
	Pattern pathpattern.Pattern
	Name    string // lower case, without its value
	Rule    robotsrule.Set
}

// Line is a line in a robots.txt group, with the part of the policy that causes it.
type Line struct {
	Text    string
	Pattern pathpattern.Pattern // of the paths that it is about
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

// Rule is one entry of a policy.
type Rule struct {
	Name                 string
	Pos                  Pos
	For                  []Audience
	Hosts                []Host // none: every host
	Identity             Demand
	UsagePurposes        []string // applies only to queries that name one of them (ACAP 1.0 section 2.3.3)
	Statements           []Statement
	AppDirectives        []AppDirective
	EngineRules          []EngineRule
	CrawlDelay           time.Duration // 0: none
	NoCrawlDelay         bool          // "crawl-delay: none": a wider rule's delay does not apply
	CrawlDelayPos        Pos
	Limit                Limit // at the edge
	NoLimit              bool  // "limit: none": a wider rule's limit does not apply
	LimitPos             Pos
	Enforce              Mode
	Intended             bool     // waives the safety check that the rule fails, if it fails only one
	IntendedChecks       []string // waives these guards, such as "blocks-search"
	PermissionsReference string   // ACAP 1.0 section 2.3.2
	Requests             []ActionRequest
	Fallback             bool // it is from the site's own robots.txt, see Policy.WithFallback
}

// Patterns yields the patterns of everything in the rule that is about paths.
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

// PagePatterns yields the patterns of everything that headers and meta tags can show, with their places.
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

// Ends lists when dates in the policy end what crawlers may do, in order.
func (s *Spec) Ends() (ends []time.Time) {
	for i := range s.Rules {
		r := &s.Rules[i]
		for j := range r.Statements {
			if q := r.Statements[j].Qualifiers; q != nil && q.TimeLimit.Kind == UntilDate {
				ends = append(ends, q.TimeLimit.Last.Add(time.Second))
			}
		}
		for j := range r.EngineRules {
			if at, ok := r.EngineRules[j].Rule.UnavailableAfter(); ok {
				ends = append(ends, at.Add(time.Second))
			}
		}
	}
	slices.SortFunc(ends, time.Time.Compare)
	return slices.CompactFunc(ends, time.Time.Equal)
}

// Lines returns the most lines that the rule can add to a robots.txt group.
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
	Path   string // of the resource, which is not a pattern
}

// The actions of ACAP 1.0.
const (
	TakeDown = "take-down" // section 2.6.1: erase all copies and index entries
	ReCrawl  = "re-crawl"  // section 2.6.2
)

// Crawler holds the policy's knowledge of one crawler.
type Crawler struct {
	Token            string // RFC 9309 section 2.2.1
	Operator         string
	Category         string   // its primary kind, what "category:" means
	AI               bool     // "category:ai" includes it
	Purposes         []string // what "purpose:" means
	Follows          []string // the crawlers whose robots.txt group this one obeys if no group names it, the preferred first
	IgnoresStar      bool     // it does not obey the group of "*"
	NoToken          bool     // the name is not a documented product token for robots.txt
	Rare             bool     // not documented to read robots.txt, and missing from publishers' common lists
	Signer           bool     // known only by the signature of its requests, so robots.txt, headers and tags cannot name it
	RobotsOnly       bool     // a control token: it appears in robots.txt, and no request carries it
	ReadsMeta        bool     // its operator documents that it reads robots meta tags with its name
	ControlsTraining bool     // it is a control token that switches AI training off
	Main             string   // for a control token, the crawler whose pages it is about, if known
	Control          *Control // the rules that its operator reads in headers and meta tags instead of a usage, or nil
	IntendedChecks   []string // safety checks that do not protect the crawler
}

// ReadsPages reports whether headers and meta tags can name the crawler: a token that no request carries may still have a
// meaning there.
func (c *Crawler) ReadsPages() bool { return !c.RobotsOnly || c.ReadsMeta }

// InTags reports whether the crawler is documented to read meta tags with its name.
func (c *Crawler) InTags() bool { return c.ReadsMeta || c.Control != nil }

// Control is a set of robots control rules with which, by its operator's documents, a site refuses some usages.
// They are sent where all of these usages are disallowed to the crawler.
type Control struct {
	Rules robotsrule.Set
	Takes []Usage
}

// IsStranger reports whether only the signing host of the crawler is known. A rule that demands a verified client
// does not accept it, because anyone can sign as some host.
func (c *Crawler) IsStranger() bool { return c.Signer && c.Category == "" && c.Operator == "" }

// Enforcement is the server's default for rules without their own setting.
type Enforcement struct {
	Mode       Mode // ModeUnset means ModeOff
	Status     int  // of a block; 0 means 403
	Impostors  Mode // ModeUnset means ModeOff
	Message    string
	RetryAfter time.Duration
	Close      bool // drop the connection instead of answering
}

// Switch is a setting of Publish.
type Switch uint8

// The settings. Auto publishes a record only where no other channel expresses the same.
const (
	Off Switch = iota
	On
	Auto

	Full = On // for ACAP: the whole policy is written, and conventional records are ignored
)

// Publish selects the optional records of robots.txt and the rights documents.
type Publish struct {
	ACAP             Switch
	UserAgentPurpose Switch
	ContentUsage     Switch
	ContentSignal    Switch
	ContentSignalUse string // the value of "use" in Content-Signal, or empty if there is none
	Controls         Switch // Auto: the operators' own controls that their documents describe
	ControlChoices   []ControlChoice
	UsageTokens      UsageTokens
	NoAI             Switch // headers and meta tags say "noai" where train-ai is disallowed
	TDMRep           Switch
	RSL              string // the path of the RSL document, or empty if there is none
	License          string // absolute URL of an RSL license, or empty if there is none
	ActionRequests   Switch // ACAP 1.0 section 2.6, which calls them not ready
	Preambles        []Preamble
	Lines            []string // of robots.txt that are not in a group, such as Clean-param, as they are written
	EveryoneNamed    bool     // robots.txt names the crawlers that ignore "*" next to it
	AllGroups        bool     // robots.txt also names the rare crawlers that a rule blocks
}

// ControlChoice is a setting for when a crawler's Control, or a control token, is sent. By default it is sent where
// the policy disallows all usages that it refuses.
type ControlChoice struct {
	Crawler string // or the token
	Value   string // the rules of a Control: where train-ai or ai-use is disallowed; or NoControl: never
}

// NoControl is the value of a ControlChoice that keeps a Control from being sent.
const NoControl = "off"

// ResourceSet is a named set of patterns (ACAP 1.0 section 2.7.3).
type ResourceSet struct {
	Name     string
	Pos      Pos
	Patterns []pathpattern.Pattern
	Written  []string // of each of Patterns, see Statement; may be nil
}

// LocalUsage is a named usage: one usage with qualifiers, or several usages (ACAP 1.0 section 2.7.1 and 2.7.2).
type LocalUsage struct {
	Name  string
	Pos   Pos
	Parts []UsagePart
}

// UsagePart is one usage of a LocalUsage.
type UsagePart struct {
	Usage      Usage
	Qualifiers *Qualifiers
	Local      string // the LocalUsage that this part was named by, if any
}

// Spec is a policy as its author states it. It is the input of Compile.
type Spec struct {
	File        string // for messages
	Catalog     string // the date of the catalog that the policy was written for; "" for any
	Sitemaps    []Sitemaps
	Resources   []ResourceSet
	Usages      []LocalUsage
	Rules       []Rule
	Crawlers    []Crawler     // the catalog, with the policy's own additions
	Table       *CrawlerTable // the table of Crawlers if policies share it, or nil
	Enforcement Enforcement
	Publish     Publish
	Rights      Rights
	Expect      []Expectation
}
