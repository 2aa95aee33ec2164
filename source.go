// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/policyfile"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

// source is where the text of a policy comes from.
type source interface {
	// name is what people know it by.
	name() string
	// key is the same for two sources that always have the same text.
	key() string
	// read returns the text. Given the mark of an earlier reading it may return
	// errUnchanged instead. Its other errors mean that there is no text to be had
	// now, whatever the text was before.
	read(ctx context.Context, last any) (reading, error)
	// pace is how often to look when the configuration does not say, and how
	// often at most.
	pace() (usual, least time.Duration)
	// settle is how long a new text must stand before it is taken up: somebody
	// may be in the middle of writing it. 0 for sources that change at once.
	settle() time.Duration
	// remote reports whether reading goes over a network: that it fails now says
	// nothing about the policy then.
	remote() bool
	// late reports whether a policy that was kept will do until the
	// configuration runs, so that starting waits for nobody.
	late() bool
	// keeps is where the last good text is kept, for a start without the source.
	keeps() keepPlace
}

// keepPlace is a place where policies are kept.
type keepPlace int

const (
	keepNowhere keepPlace = iota
	keepLocally           // on this machine, as it is what this machine reads
	keepShared            // in Caddy's storage, which machines can share
)

// reading is the text of a policy as it was read.
type reading struct {
	data []byte
	mark any // tells the source later whether anything has changed
}

var errUnchanged = errors.New("unchanged")

// readTimeout bounds one reading of a source.
const readTimeout = 10 * time.Second

// live is a policy that is served. A request takes it once, so that all that is
// said about the request is of one policy.
type live struct {
	site     *site.Site
	etag     string // the suffix for entity tags of changed pages
	sum      string // SHA-256 of the text, in hexadecimal digits
	since    time.Time
	warnings policyfile.Diagnostics
	findings findings
}

// newLive checks and compiles a text. The error is what is wrong with it, as
// policyfile.Diagnostics.
func newLive(name string, data []byte) (*live, error) {
	s, ds := site.Load(name, data, robotsserve.ServeOptions{})
	if ds.HasErrors() {
		return nil, ds
	}
	sum := sumOf(data)
	return &live{site: s, etag: "-rp" + sum[:12], sum: sum, since: time.Now(), warnings: ds}, nil
}

func sumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
