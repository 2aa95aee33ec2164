// SPDX-License-Identifier: Apache-2.0

// Package rights says what a policy states about the use of content by AI and search, for channels that carry rights.
// Its usages come from the AIPREF vocabulary: train-ai, ai-use and search.
//
// Client answers for channels that address one crawler (the groups of robots.txt), View for those that address everyone
// (documents, usage tokens, control tokens). These cannot exempt a crawler: what is disallowed for any crawler, purpose
// or identity is disallowed there.
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

// Document is a channel's file. It does not change and may be shared.
type Document struct {
	Body   []byte
	ETag   string // strong (RFC 9110 section 8.8.3)
	Type   string // media type
	Source any    // what a channel writes it from, to merge it with a site's own; or nil
}

func NewDocument(body []byte, mediaType string) *Document {
	sum := sha256.Sum256(body)
	return &Document{Body: body, ETag: `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`, Type: mediaType}
}

// SiteDocument is a site's own document of a channel.
type SiteDocument interface {
	// MergeInto returns the stricter of ours and the site's. exact is false if it is stricter than both.
	MergeInto(ours *Document) (both *Document, exact bool)
}

// Declared holds the fields of a response and the meta tags that a channel has for a page. It does not change.
type Declared interface {
	// Apply merges the fields with what the header of a response already says.
	Apply(http.Header)
	Tags() []Tag
	// Restricts reports whether it restricts anything.
	Restricts() bool
	String() string
}

// Tag is a meta tag.
type Tag struct {
	Name, Content string
	// Merge returns the content for a page whose own tags of that name have content, separated by commas. If it is nil,
	// Content replaces theirs.
	Merge func(theirs string) string
}

// AddLink adds a Link field (RFC 8288) to a response's header next to others, unless it is there.
func AddLink(h http.Header, link string) {
	for _, line := range h["Link"] {
		if strings.Contains(line, link) {
			return
		}
	}
	h["Link"] = append(slices.Clip(h["Link"]), link)
}

// Serve answers GET and HEAD, with ranges and conditions (RFC 9110), and other methods with 405.
func (d *Document) Serve(w http.ResponseWriter, r *http.Request, cacheControl string) {
	h := w.Header()
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		h.Set("Allow", "GET, HEAD")
		http.Error(w, "this document answers GET and HEAD only", http.StatusMethodNotAllowed)
		return
	}
	h.Set("Cache-Control", cacheControl)
	h.Set("Etag", d.ETag)
	h.Set("Content-Type", d.Type)
	h.Set("X-Content-Type-Options", "nosniff")
	// Browsers and tools of other sites read it too, and it is public.
	h.Set("Access-Control-Allow-Origin", "*")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(d.Body))
}

// Preferences are the decisions about the usages of policy.RightsUsages, in that order.
type Preferences [3]policy.Decision

// Verdicts are the verdicts of Preferences, which can be compared.
type Verdicts [3]policy.Verdict

func (p Preferences) Verdicts() (v Verdicts) {
	for i := range p {
		v[i] = p[i].Verdict
	}
	return v
}

// Combine unites what is said (draft-ietf-aipref-vocab §5.1): any no is no, else any yes is yes.
func (v Verdicts) Combine(w Verdicts) Verdicts {
	for i := range v {
		v[i] = max(v[i], w[i])
	}
	return v
}

func (v Verdicts) Stated() bool { return v != Verdicts{} }

// Restrictions returns the verdicts that disallow.
func (v Verdicts) Restrictions() Verdicts {
	for i := range v {
		if v[i] != policy.Disallowed {
			v[i] = policy.Unstated
		}
	}
	return v
}

// Alike reports whether two say the same, and disallow it for the same reason.
func (p Preferences) Alike(q Preferences) bool {
	for i := range p {
		if p[i].Verdict != q[i].Verdict || p[i].Verdict == policy.Disallowed && p[i].Statement != q[i].Statement {
			return false
		}
	}
	return true
}

// severity orders verdicts from the laxest to the strictest.
var severity = [...]int{policy.Allowed: 0, policy.Unstated: 1, policy.Disallowed: 2}

// stricter returns the stricter decision about each usage.
func (p Preferences) stricter(q Preferences) Preferences {
	for i := range p {
		if severity[q[i].Verdict] > severity[p[i].Verdict] {
			p[i] = q[i]
		}
	}
	return p
}
