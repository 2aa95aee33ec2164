// SPDX-License-Identifier: Apache-2.0

package policy

// RightsUsages are the usages of which rights registers speak: the categories of the
// AIPREF vocabulary (draft-ietf-aipref-vocab-08), in its order.
func RightsUsages() [3]Usage { return [...]Usage{TrainAI, AIUse, Search} }

// Rights is what the rights section of a policy file says beyond the rules: who
// owns the content, and on which terms it can be licensed. It decides nothing.
type Rights struct {
	Copyright string // the rightsholder's name
	Contact   string // a mailto: or https: URL
	Terms     string // the URL of the terms in words
	TDMPolicy string // the URL of a TDM policy (TDMRep, section "tdm-policy")
	Offers    []Offer
}

// Offer is a licence that can be had for a usage that the rules disallow (RSL 1.0
// section 3.7).
type Offer struct {
	Pos      Pos
	Usage    Usage    // one of RightsUsages
	Payment  string   // one of OfferPayments
	URL      string   // where the licence can be obtained
	Amount   string   // a decimal number, empty for none
	Currency string   // ISO 4217, with Amount
	Users    []string // of OfferUsers; empty for all
}

// OfferPayments are the payment types of RSL 1.0 section 3.7 for which something
// is due. "free" and "attribution" are not among them: what is to be had for nothing
// is for the rules to allow.
func OfferPayments() []string {
	return []string{"purchase", "subscription", "training", "crawl", "use", "contribution"}
}

// OfferUsers are the user types of RSL 1.0 section 3.4.1.2.
func OfferUsers() []string {
	return []string{"commercial", "non-commercial", "education", "government", "personal"}
}

// UsageTokens are the names under which robots.txt has a group for a usage instead of
// a crawler (draft-kelley-aipref-training-preference-signal-00), in the order of
// RightsUsages; empty for none.
type UsageTokens [3]string
