// SPDX-License-Identifier: Apache-2.0

package activity

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/site"
)

// Publication is a version of a policy, together with all documents that the program makes from it, such as robots.txt.
// A new release of the program or a new crawler catalog may make different documents from the same version. The version
// with these documents is then a new Publication.
type Publication struct {
	ID string `json:"id"` // SHA-256 of all other fields except Number, Time, By and Note
	// Number is the name that people see, such as 3, the number of the policy's version. Each change of the program or
	// of the catalog makes a new Publication of the same version, such as 3.1 and then 3.2. Number is empty if the
	// server has not numbered the version.
	Number    string          `json:"version,omitempty"`
	Time      time.Time       `json:"-"`      // time when the publication came into force
	By, Note  string          `json:"-"`      // who published the policy and why; empty if not known
	Name      string          `json:"name"`   // name of the policy's source
	SHA256    string          `json:"sha256"` // hash of Text
	Program   string          `json:"program"`
	Catalog   string          `json:"catalog"` // date of the crawler catalog
	Text      string          `json:"text"`
	Documents []site.Document `json:"documents"`
	// LeftOut is the number of documents that Documents leaves out, because there are too many.
	LeftOut int `json:"left_out,omitempty"`
}

// Identify computes the ID from the other fields.
func (p *Publication) Identify() {
	plain := *p
	plain.ID, plain.Number = "", ""
	b, err := json.Marshal(plain)
	if err != nil {
		panic(err) // cannot happen: JSON can represent all fields
	}
	sum := sha256.Sum256(b)
	p.ID = hex.EncodeToString(sum[:])
}

// Label returns the name that people see; see the function Label.
func (p *Publication) Label() string { return Label(p.ID, p.Number) }

// Label returns the name of a publication: v3, v3.1 or, if the publication has no number, the start of its ID.
func Label(id, number string) string {
	if number == "" {
		return fmt.Sprintf("%.8s", id)
	}
	return "v" + number
}
