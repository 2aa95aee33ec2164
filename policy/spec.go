// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
)

// Enforcement holds the policy's settings for handling disallowed requests. Mode applies to rules that do not set a
// mode.
type Enforcement struct {
	Mode       Mode // ModeUnset means ModeOff
	Status     int  // the HTTP status of a blocked request; 0 means 403
	Impostors  Mode // ModeUnset means ModeOff
	Message    string
	RetryAfter time.Duration
	Close      bool // close the connection instead of sending a response
}

// Switch is a setting of Publish that turns a document or a kind of record on or off.
type Switch uint8

// The values of a Switch. Auto publishes a record only if no other channel expresses its meaning.
const (
	Off Switch = iota
	On
	Auto

	Full = On // for ACAP: robots.txt has the whole policy as ACAP records, which tell readers to ignore other lines
)

// Publish selects the rights documents to publish, and the optional records of robots.txt, headers and meta tags.
type Publish struct {
	ACAP             Switch
	UserAgentPurpose Switch
	ContentUsage     Switch
	ContentSignal    Switch
	ContentSignalUse string // the value of "use" in Content-Signal, or empty to omit "use"
	Controls         Switch // with Auto, the server sends the crawlers' Controls and the control tokens
	ControlChoices   []ControlChoice
	UsageTokens      UsageTokens
	NoAI             Switch // headers and meta tags have "noai" where train-ai is disallowed
	TDMRep           Switch
	RSL              string // the path of the RSL document, or empty if there is none
	License          string // the absolute URL of an RSL license, or empty if there is none
	ActionRequests   Switch // the requests of ACAP 1.0 section 2.6, which are not ready for use according to that section
	Preambles        []Preamble
	Lines            []string // complete lines for robots.txt that do not belong to a group, such as Clean-param lines
	EveryoneNamed    bool     // in robots.txt, the group of "*" also names the crawlers that ignore "*"
	AllGroups        bool     // robots.txt also names the crawlers with Crawler.Rare that a rule disallows
}

// A ControlChoice is a publisher's choice about one control of a crawler's operator. This can be a Control, which the
// server sends in headers and meta tags. It can also be a control token, which the server names in robots.txt. Without
// a ControlChoice, the server uses a control where the policy disallows all usages that the control forbids.
type ControlChoice struct {
	Crawler string // the product token of the crawler, or the control token
	Value   string // NoControl, or rules of a Control to be sent where one rights usage, such as train-ai, is disallowed
}

// NoControl is the value of a ControlChoice that keeps a Control from being sent.
const NoControl = "off"

// ResourceSet is a named set of patterns (ACAP 1.0 section 2.7.3).
type ResourceSet struct {
	Name     string
	Pos      Pos
	Patterns []pathpattern.Pattern
	Written  []string // for each pattern, the text as in Statement.Written; may be nil
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
	Local      string // the LocalUsage that this part is from, or ""
}

// Spec is a policy as its author wrote it. Compile makes a Policy from it.
type Spec struct {
	File        string // the name of the policy file for messages
	Catalog     string // the date of the catalog that the policy was written for; "" means any
	Sitemaps    []Sitemaps
	Resources   []ResourceSet
	Usages      []LocalUsage
	Rules       []Rule
	Crawlers    []Crawler     // the catalog, with the policy's own additions
	Table       *CrawlerTable // a table of Crawlers to share with other policies, or nil to make a new one
	Enforcement Enforcement
	Publish     Publish
	Rights      Rights
	Expect      []Expectation
}

// Ends lists the times when dates in the policy end a permission or a page's availability, in ascending order.
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
