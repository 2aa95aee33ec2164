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

// Publication is a version of a policy with all documents that one release of the program makes from it with one
// crawler catalog.
type Publication struct {
	ID string `json:"id"` // the SHA-256 of what follows, but for Number and Time
	// Number is the name that people use: the version of the policy and, after a dot, the
	// number of changes of the program or the catalog under it. It is empty if it was not
	// counted.
	Number    string          `json:"version,omitempty"`
	Time      time.Time       `json:"-"`      // when it came into force
	By, Note  string          `json:"-"`      // who published it and why, empty if that is not known
	Name      string          `json:"name"`   // of the policy's source
	SHA256    string          `json:"sha256"` // of Text
	Program   string          `json:"program"`
	Catalog   string          `json:"catalog"` // the date of the catalog of crawlers
	Text      string          `json:"text"`
	Documents []site.Document `json:"documents"`
	LeftOut   int             `json:"left_out,omitempty"` // documents that are not listed, as they are too many
}

// Identify sets the ID.
func (p *Publication) Identify() {
	plain := *p
	plain.ID, plain.Number = "", ""
	b, err := json.Marshal(plain)
	if err != nil {
		panic(err) // it has nothing that JSON cannot have
	}
	sum := sha256.Sum256(b)
	p.ID = hex.EncodeToString(sum[:])
}

// Label is the name that people use.
func (p *Publication) Label() string { return Label(p.ID, p.Number) }

// Label returns the name of a publication: v3, v3.1 or, if it was not counted, the start of its ID.
func Label(id, number string) string {
	if number == "" {
		return fmt.Sprintf("%.8s", id)
	}
	return "v" + number
}
