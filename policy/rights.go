// SPDX-License-Identifier: Apache-2.0

package policy

// RightsUsages returns the usages that rights documents can express. They are the categories of AIPREF
// (draft-ietf-aipref-vocab-08), in the order of that draft.
func RightsUsages() [3]Usage { return [...]Usage{TrainAI, AIUse, Search} }

// Rights describes the owner of the content and the license terms. It does not affect decisions.
type Rights struct {
	Copyright string // the rightsholder's name
	Contact   string // a mailto: or https: URL
	Terms     string // the URL of the license terms as a text for people
	TDMPolicy string // the URL of a TDM policy (TDMRep, section "tdm-policy")
	Offers    []Offer
}

// Offer is a license for a usage that the rules disallow (RSL 1.0 section 3.7).
type Offer struct {
	Pos      Pos
	Usage    Usage    // one of RightsUsages
	Payment  string   // one of OfferPayments
	URL      string   // the address where the license can be obtained
	Amount   string   // a decimal number, or empty if there is no amount
	Currency string   // the ISO 4217 code of the currency of Amount
	Users    []string // some of OfferUsers; empty means all users
}

// OfferPayments returns the payment types of RSL 1.0 section 3.7. It omits "free" and "attribution", because a policy
// expresses them by rules that allow the usage.
func OfferPayments() []string {
	return []string{"purchase", "subscription", "training", "crawl", "use", "contribution"}
}

// OfferUsers returns the user types of RSL 1.0 section 3.4.1.2.
func OfferUsers() []string {
	return []string{"commercial", "non-commercial", "education", "government", "personal"}
}

// UsageTokens holds one name for each usage, in the order of RightsUsages. In robots.txt, a group with this name as its
// User-agent is about the usage, not about a crawler (draft-kelley-aipref-training-preference-signal-00). The name is
// "" if there is no such group for the usage.
type UsageTokens [3]string

// Preamble is the publisher's own comment at the start of robots.txt.
type Preamble struct {
	Host Host // "" means all hosts that have no other preamble
	Text string
}

// Sitemaps are the sitemaps of a host.
type Sitemaps struct {
	Host      Host     // "" means all hosts that have no other Sitemaps
	Addresses []string // URLs or paths; the host is added to a path
}

// SitemapsOf returns the addresses of the sitemaps of a host. It uses the entry of s.Sitemaps that names the host. If
// there is none, it uses the entry with the longest wildcard that covers the host, or else the entry for all other
// hosts. A port is ignored.
func (s *Spec) SitemapsOf(host string) []string {
	if i := mostSpecific(s.Sitemaps, host, func(m *Sitemaps) Host { return m.Host }); i >= 0 {
		return s.Sitemaps[i].Addresses
	}
	return nil
}

// PreambleOf returns the publisher's comment for a host. It uses the entry of b.Preambles that names the host. If there
// is none, it uses the entry with the longest wildcard that covers the host, or else the entry for all other hosts. A
// port is ignored.
func (b *Publish) PreambleOf(host string) string {
	if i := mostSpecific(b.Preambles, host, func(p *Preamble) Host { return p.Host }); i >= 0 {
		return b.Preambles[i].Text
	}
	return ""
}

// mostSpecific returns the index of the part that applies to the host. The parameter "of" is a function that returns
// the host or wildcard of a part. The part for exactly this host is used first, then the part with the longest wildcard
// that covers the host. The part for "" is the last choice, because it means all other hosts. mostSpecific returns -1
// if no part applies.
func mostSpecific[T any](parts []T, host string, of func(*T) Host) int {
	name := NormalizeHost(host)
	longest, found := -1, -1
	for i := range parts {
		h := of(&parts[i])
		size := len(h)
		if string(h) == name {
			size++ // the exact name wins over a wildcard of the same length
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
	Identity Identity // Verified, or Unknown for a client that only claims to be Agent
	Anyone   bool     // the test does not name an identity: the decision must be the same for all identities
	Agent    Audience
	Allowed  bool
	Usage    Usage
	Host     string // empty means every host that the policy names, and one host that it does not name
	Path     string // path and query
}

// String returns the expectation as a policy file writes it, such as "verified Googlebot may crawl /news/".
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
