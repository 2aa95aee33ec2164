// SPDX-License-Identifier: Apache-2.0

package source

import (
	"crypto/sha256"
	"encoding/hex"
	"sync"
	"sync/atomic"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

// Snapshot is a compiled version of a policy. It does not change. A request loads it once, so that all channels
// answer from the same version.
type Snapshot struct {
	Site       *site.Site
	ETagSuffix string // appended to the entity tags of pages that are rewritten
	Text       string
	SHA256     string    // SHA-256 of the text, in hexadecimal digits
	Since      time.Time // time when it was loaded or, for a last good policy, saved
	Warnings   policyfile.Diagnostics
	Serial     uint64 // unique within the process
	Memory     *site.Memory
	Given      activity.Given // records which texts of this version were passed to recorders

	catalog     atomic.Pointer[crawlers.Catalog] // the policy was compiled with this catalog
	publication func() *activity.Publication
	until       time.Time    // the next date in the policy, or zero
	asked       atomic.Int64 // time of the last failed recompilation in Unix nanoseconds, or 0
}

var serials atomic.Uint64

// Compile checks and compiles the text of a policy. name is the file name in diagnostics. If the text is not valid,
// the error is a policyfile.Diagnostics.
func Compile(name string, data []byte) (*Snapshot, error) {
	return compile(name, data, policyfile.Options{})
}

// compileAccepted compiles a previously accepted text. Unlike Compile, it treats a failed test of the policy as a
// warning. The test passed when the text was accepted, so it fails now only because a date has passed or the catalog is
// newer.
func compileAccepted(name string, data []byte) (*Snapshot, error) {
	return compile(name, data, policyfile.Options{Accepted: true})
}

func compile(name string, data []byte, o policyfile.Options) (*Snapshot, error) {
	catalog, _ := crawlers.Default() // nil only if the catalog is damaged
	s, ds := site.LoadWith(name, data, o)
	if ds.HasErrors() {
		return nil, ds
	}
	sum := sumOf(data)
	v := &Snapshot{
		Site: s, ETagSuffix: "-rp" + sum[:12], Text: string(data), SHA256: sum, Since: time.Now(), Warnings: ds.Summed(),
		Serial: serials.Add(1), Memory: site.NewMemory(false),
	}
	v.until = s.NextDate(v.Since)
	v.publication = sync.OnceValue(v.publish)
	v.catalog.Store(catalog)
	return v, nil
}

func sumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// SumOf returns the SHA-256 of a text in hexadecimal digits, which identifies versions.
func SumOf(text string) string { return sumOf([]byte(text)) }
