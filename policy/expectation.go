// SPDX-License-Identifier: Apache-2.0

package policy

// Expectation is one test of a policy: the answer that its author expects.
type Expectation struct {
	Pos      Pos
	Identity Identity // Verified, or Unknown for one that only claims to be the agent
	Anyone   bool     // no identity was named: the answer must not depend on it
	Agent    Audience
	Allowed  bool
	Usage    Usage
	Host     string // empty: every host that the policy names, and one that it does not
	Path     string // path and query
}

// String is the expectation as a policy file writes it: "verified Googlebot may
// crawl /news/".
func (e Expectation) String() string {
	who, may, place := e.Agent.String(), " may ", e.Path
	switch {
	case e.Anyone:
	case e.Identity == Verified:
		who = "verified " + who
	default:
		who = "claimed " + who
	}
	if !e.Allowed {
		may = " may not "
	}
	if e.Host != "" {
		place = "https://" + e.Host + e.Path
	}
	return who + may + e.Usage.String() + " " + place
}
