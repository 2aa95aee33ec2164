// SPDX-License-Identifier: Apache-2.0

package site

import (
	"slices"

	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// Identity describes how a crawler can be verified, and what happens to the request of a client with each identity.
type Identity struct {
	// By lists the proofs that the crawler's operator publishes: some of "address lists", "reverse DNS" and
	// "signatures". If the list is empty, every client with the crawler's name is unverified.
	By       []string  `json:"verified_by"`
	Assumed  string    `json:"assumed"`            // the identity that the explanation is for: verified, unverified or impostor
	Evidence string    `json:"evidence,omitempty"` // the reason for Assumed; empty if the client was not checked
	Demands  []Reason  `json:"demands,omitempty"`  // rules that demand an identity, and decide about one of the Outcomes
	Outcomes []Outcome `json:"outcomes"`           // the server's decision for each identity that the client can have
}

// Outcome is the server's decision about a client with one identity.
type Outcome struct {
	Identity string `json:"identity"`
	Blocked  bool   `json:"blocked"`
	Summary  string `json:"summary"`
}

// explainIdentity describes the identities that clients with the name of q.Crawler can have, and what the server does
// with each of them. It returns nil if no crawler is recognized, or if requests never contain the crawler's token.
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
	t := NewTarget(q.Host, q.Path)
	for _, identity := range possible {
		q.Identity = identity
		c := s.explainEdge(q, &t, []Client{{Crawler: q.Crawler, Identity: identity}})
		v := s.EdgeOf(&t, q)
		id.Outcomes = append(id.Outcomes, Outcome{Identity: identity.String(), Blocked: v.Blocked() && v.Mode == policy.ModeBlock, Summary: c.Summary})
		if v.Decision.Rule != nil && v.Decision.Rule.Identity != policy.DemandAny {
			r := s.reason(v.Decision)
			r.Says = "for identity " + v.Decision.Rule.Identity.String() + ", " + r.Says
			demands.add(r)
		}
	}
	id.Demands = demands.Reasons
	return id
}

func (id *Identity) same() bool {
	return !slices.ContainsFunc(id.Outcomes, func(o Outcome) bool { return o.Summary != id.Outcomes[0].Summary })
}

func (id *Identity) headline() string {
	text := "the operator does not publish a way to verify this crawler, so every client with its name is unverified"
	if len(id.By) > 0 {
		text = "this crawler can be verified by " + english.List(id.By, "and")
	}
	switch {
	case id.Evidence != "":
		text += "; this client is " + id.Assumed + ": " + id.Evidence
	case len(id.By) > 0 && id.same():
		text += "; the identity makes no difference for this request"
	}
	return text
}
