// SPDX-License-Identifier: Apache-2.0

package policy

// RightsUsages returns the usages in rights documents: the AIPREF categories (draft-ietf-aipref-vocab-08), in
// order.
func RightsUsages() [3]Usage { return [...]Usage{TrainAI, AIUse, Search} }

// Rights holds the owner of the content, and the terms of its license. It does not affect decisions.
type Rights struct {
	Copyright string // the rightsholder's name
	Contact   string // a mailto: or https: URL
	Terms     string // the URL of the terms in words
	TDMPolicy string // the URL of a TDM policy (TDMRep, section "tdm-policy")
	Offers    []Offer
}

// Offer is a license for a usage that the rules disallow (RSL 1.0 section 3.7).
type Offer struct {
	Pos      Pos
	Usage    Usage    // one of RightsUsages
	Payment  string   // one of OfferPayments
	URL      string   // where the license can be obtained
	Amount   string   // a decimal number, or empty if there is none
	Currency string   // ISO 4217, with Amount
	Users    []string // of OfferUsers; empty for all
}

// OfferPayments returns the payment types of RSL 1.0 section 3.7 without "free" and "attribution", which rules
// allow.
func OfferPayments() []string {
	return []string{"purchase", "subscription", "training", "crawl", "use", "contribution"}
}

// OfferUsers returns the user types of RSL 1.0 section 3.4.1.2.
func OfferUsers() []string {
	return []string{"commercial", "non-commercial", "education", "government", "personal"}
}

// UsageTokens name groups in robots.txt for usages (draft-kelley-aipref-training-preference-signal-00), in the order of
// RightsUsages, or "" if there is none.
type UsageTokens [3]string

// Preamble is the publisher's own comment at the start of robots.txt.
type Preamble struct {
	Host Host // "" for hosts for which there is no other
	Text string
}

// Sitemaps are the sitemaps of a host.
type Sitemaps struct {
	Host      Host     // "" for hosts for which there are no others
	Addresses []string // a path is completed with the host
}

// SitemapsOf returns the sitemaps of a host: the entry for its name, or else for the longest wildcard, or else for
// all other hosts. A port is ignored.
func (s *Spec) SitemapsOf(host string) []string {
	if i := mostSpecific(s.Sitemaps, host, func(m *Sitemaps) Host { return m.Host }); i >= 0 {
		return s.Sitemaps[i].Addresses
	}
	return nil
}

// PreambleOf returns the comment for a host: the entry for its name, or else for the longest wildcard, or else for
// all other hosts. A port is ignored.
func (b *Publish) PreambleOf(host string) string {
	if i := mostSpecific(b.Preambles, host, func(p *Preamble) Host { return p.Host }); i >= 0 {
		return b.Preambles[i].Text
	}
	return ""
}

// mostSpecific returns the index of the part for a host: by name, or else by the longest wildcard, or else for all
// other hosts. It returns -1 if there is none.
func mostSpecific[T any](parts []T, host string, of func(*T) Host) int {
	name := NormalizeHost(host)
	longest, found := -1, -1
	for i := range parts {
		h := of(&parts[i])
		size := len(h)
		if string(h) == name {
			size++ // a wildcard can be as long
		}
		if (h == "" || h.Covers(name)) && size > longest {
			longest, found = size, i
		}
	}
	return found
}

// Expectation is one test of a policy.
type Expectation struct {
	Pos      Pos
	Identity Identity // Verified, or Unknown for one that only claims to be the agent
	Anyone   bool     // the test names no identity: the answer must be the same for each
	Agent    Audience
	Allowed  bool
	Usage    Usage
	Host     string // empty: every host that the policy names, and one that it does not
	Path     string // path and query
}

// String returns the expectation as in a policy file: "verified Googlebot may crawl /news/".
func (e Expectation) String() string {
	who, may, place := e.Agent.String(), " may ", e.Path
	switch {
	case e.Anyone:
	case e.Identity == Verified:
		who = "verified " + who
	default:
		who = "unverified " + who
	}
	if !e.Allowed {
		may = " may not "
	}
	if e.Host != "" {
		place = "https://" + e.Host + e.Path
	}
	return who + may + e.Usage.String() + " " + place
}
