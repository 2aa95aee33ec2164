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

// Snapshot is one version of a policy, compiled and immutable. A request loads it
// once, so that every channel answers from the same version.
type Snapshot struct {
	Site       *site.Site
	ETagSuffix string // appended to the entity tags of pages that are rewritten
	Text       string
	SHA256     string    // of the text, in hexadecimal digits
	Since      time.Time // when it was loaded; of a last good policy, when it was saved
	Warnings   policyfile.Diagnostics
	Serial     uint64 // another one for every Snapshot of the process
	Memory     *site.Memory
	Given      activity.Given // of this version

	catalog     atomic.Pointer[crawlers.Catalog] // it was compiled with
	publication func() *activity.Publication
	until       time.Time    // when a date in it passes; zero for never
	asked       atomic.Int64 // when it could not be compiled again, in Unix nanoseconds; 0 for never
}

var serials atomic.Uint64

// Compile checks and compiles the text of a policy. name is the file name in
// diagnostics. The error is a policyfile.Diagnostics.
func Compile(name string, data []byte) (*Snapshot, error) {
	return compile(name, data, policyfile.Options{})
}

// compileAccepted is Compile for a text that was accepted before. A test of the policy that fails now, because a date
// has passed or the catalog of crawlers is newer, is a warning.
func compileAccepted(name string, data []byte) (*Snapshot, error) {
	return compile(name, data, policyfile.Options{Accepted: true})
}

func compile(name string, data []byte, o policyfile.Options) (*Snapshot, error) {
	catalog, _ := crawlers.Default() // without one there is no site
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

// SumOf returns what a version with a text is called: its SHA-256 in hexadecimal digits.
func SumOf(text string) string { return sumOf([]byte(text)) }
