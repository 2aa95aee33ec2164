// SPDX-License-Identifier: Apache-2.0

// Package rights returns a policy's decisions about the use of content by AI and search, for the channels that publish
// them. It deals with three usages of the AIPREF vocabulary: train-ai, ai-use and search.
//
// A Client has the decisions about one crawler, for channels that can address single crawlers, such as robots.txt with
// its groups. A View has the decisions for channels that address everyone, such as rights documents and usage tokens,
// which are names in robots.txt for a usage instead of a crawler. These channels cannot exempt a crawler. So a View
// disallows a usage if the policy disallows it for at least one crawler, purpose or identity.
package rights

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// Document is a file that a channel publishes. It is immutable and safe for concurrent use.
type Document struct {
	Body   []byte
	ETag   string // a strong entity tag (RFC 9110 section 8.8.3)
	Type   string // media type
	Source any    // the data from which the channel made Body, needed for merging; or nil
}

// NewDocument returns a document with this body and media type. Its entity tag is made from the body.
func NewDocument(body []byte, mediaType string) *Document {
	sum := sha256.Sum256(body)
	return &Document{Body: body, ETag: `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`, Type: mediaType}
}

// SiteDocument is the site's own version of a rights document, to merge with the policy's document.
type SiteDocument interface {
	// MergeInto combines the site's document with the policy's document, which is the argument ours. Each restriction
	// of either document is kept. exact is false if the result is stricter than necessary.
	MergeInto(ours *Document) (both *Document, exact bool)
}

// Declared holds the header fields and meta tags of a channel for a page. It is immutable.
type Declared interface {
	// Apply merges the fields into the header of a response.
	Apply(http.Header)
	Tags() []Tag
	// Restricts reports whether the fields or tags restrict any usage.
	Restricts() bool
	String() string
}

// Tag is a meta tag.
type Tag struct {
	Name, Content string
	// Merge receives the content of the page's tags with the same name, joined by commas, and returns the new
	// content. If Merge is nil, Content replaces the page's content.
	Merge func(theirs string) string
}

// AddLink adds a Link field (RFC 8288) to a response's header, unless the header already contains the link.
func AddLink(h http.Header, link string) {
	for _, line := range h["Link"] {
		if strings.Contains(line, link) {
			return
		}
	}
	h["Link"] = append(slices.Clip(h["Link"]), link)
}

// Serve answers a request for the document. It supports GET and HEAD, with ranges and conditions (RFC 9110), and
// answers other methods with status 405.
func (d *Document) Serve(w http.ResponseWriter, r *http.Request, cacheControl string) {
	h := w.Header()
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		h.Set("Allow", "GET, HEAD")
		http.Error(w, "use GET or HEAD for this document", http.StatusMethodNotAllowed)
		return
	}
	h.Set("Cache-Control", cacheControl)
	h.Set("Etag", d.ETag)
	h.Set("Content-Type", d.Type)
	h.Set("X-Content-Type-Options", "nosniff")
	// Scripts of other sites may read the document, because it is public.
	h.Set("Access-Control-Allow-Origin", "*")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(d.Body))
}

// Preferences holds one decision for each usage of policy.RightsUsages, in the same order.
type Preferences [3]policy.Decision

// Verdicts holds the verdicts of Preferences. Unlike Preferences, two Verdicts can be compared with ==.
type Verdicts [3]policy.Verdict

func (p Preferences) Verdicts() (v Verdicts) {
	for i := range p {
		v[i] = p[i].Verdict
	}
	return v
}

// Combine combines two verdicts about each usage (draft-ietf-aipref-vocab section 5.1). A usage is disallowed if v or w
// disallows it. Otherwise it is allowed if v or w allows it.
func (v Verdicts) Combine(w Verdicts) Verdicts {
	for i := range v {
		v[i] = max(v[i], w[i])
	}
	return v
}

// Stated reports whether at least one verdict is Allowed or Disallowed.
func (v Verdicts) Stated() bool { return v != Verdicts{} }

// Restrictions returns only the verdicts that disallow a usage. The others are Unstated.
func (v Verdicts) Restrictions() Verdicts {
	for i := range v {
		if v[i] != policy.Disallowed {
			v[i] = policy.Unstated
		}
	}
	return v
}

// Alike reports whether p and q have the same verdicts, and the same reasons for disallowed usages.
func (p Preferences) Alike(q Preferences) bool {
	for i := range p {
		if p[i].Verdict != q[i].Verdict || p[i].Verdict == policy.Disallowed && p[i].Statement != q[i].Statement {
			return false
		}
	}
	return true
}

// severity ranks verdicts from the least to the most strict.
var severity = [...]int{policy.Allowed: 0, policy.Unstated: 1, policy.Disallowed: 2}

// Decide returns the policy's decisions about a query, one for each usage of policy.RightsUsages. It ignores q.Usage.
func Decide(p *policy.Policy, q policy.Query) (all Preferences) {
	for i, u := range policyUsages {
		q.Usage = u
		all[i] = p.Decide(q)
	}
	return all
}

// Stricter returns, for each usage, the stricter of the decisions in p and q.
func (p Preferences) Stricter(q Preferences) Preferences {
	for i := range p {
		if severity[q[i].Verdict] > severity[p[i].Verdict] {
			p[i] = q[i]
		}
	}
	return p
}
