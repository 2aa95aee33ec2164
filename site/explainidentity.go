// SPDX-License-Identifier: Apache-2.0

package site

import (
	"fmt"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// Identity says by what a crawler is told from those who only use its name, and what
// becomes of the request accordingly.
type Identity struct {
	// By is what its operator publishes: some of "address lists", "reverse DNS" and
	// "signatures". Empty: nothing, and everybody of that name is unknown.
	By []string `json:"verified_by"`
	// Assumed is the identity that the explanation is for: verified, unknown or
	// impostor.
	Assumed string `json:"assumed"`
	// Evidence is what Assumed rests on; empty where nothing was checked.
	Evidence string `json:"evidence,omitempty"`
	// Demands are the rules that ask for an identity and decide for this crawler and
	// path, whoever it is.
	Demands []Reason `json:"demands,omitempty"`
	// Outcomes are what the edge does about each identity that the client can have.
	Outcomes []Outcome `json:"outcomes"`
}

// Outcome is what the edge does about a client with an identity.
type Outcome struct {
	Identity string `json:"identity"`
	Refused  bool   `json:"refused"`
	Summary  string `json:"summary"`
}

// explainIdentity is nil for clients that nobody knows and for tokens that no
// request carries.
func (s *Site) explainIdentity(q policy.Query, evidence string) *Identity {
	if q.Crawler == 0 || s.Policy.CrawlerInfo(q.Crawler).RobotsOnly {
		return nil
	}
	facts := s.Verification(q.Crawler)
	id := &Identity{By: []string{}, Assumed: q.Identity.String(), Evidence: evidence}
	for _, way := range []struct {
		there bool
		name  string
	}{
		{len(facts.AddressLists) > 0, "address lists"}, {len(facts.ReverseDNS) > 0, "reverse DNS"}, {facts.WebBotAuth != "", "signatures"},
	} {
		if way.there {
			id.By = append(id.By, way.name)
		}
	}
	possible := []policy.Identity{policy.Verified, policy.Unknown, policy.Impostor}
	if len(id.By) == 0 {
		possible = []policy.Identity{policy.Unknown}
	}
	var demands Channel
	for _, identity := range possible {
		q.Identity = identity
		c := s.explainEdge(q)
		id.Outcomes = append(id.Outcomes, Outcome{Identity: identity.String(), Refused: c.refused, Summary: c.Summary})
		if v := s.Edge(q); v.Decision.Rule != nil && v.Decision.Rule.Identity != policy.Claimed {
			r := s.reason(v.Decision)
			r.Says = "for identity " + policy.DemandString(v.Decision.Rule.Identity) + ", " + r.Says
			demands.add(r)
		}
	}
	id.Demands = demands.Reasons
	return id
}

// same reports whether all outcomes are one.
func (id *Identity) same() bool {
	for _, o := range id.Outcomes {
		if o.Summary != id.Outcomes[0].Summary {
			return false
		}
	}
	return true
}

// headline is the identity in a sentence.
func (id *Identity) headline() string {
	text := "its operator publishes nothing that it could be told from others by, so every client of that name is unknown"
	if len(id.By) > 0 {
		text = "it can be verified, by " + join(id.By)
	}
	switch {
	case id.Evidence != "":
		text += "; here it is " + id.Assumed + ": " + id.Evidence
	case len(id.By) > 0 && id.same():
		text += "; here it makes no difference"
	}
	return text
}

func join(words []string) string {
	switch n := len(words); n {
	case 0:
		return ""
	case 1:
		return words[0]
	case 2:
		return words[0] + " and " + words[1]
	default:
		return fmt.Sprintf("%s, %s", words[0], join(words[1:]))
	}
}
