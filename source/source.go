// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"time"
)

// source is where the text of a policy comes from.
type source interface {
	// name is how the configuration names the policy, made absolute.
	name() string
	// key is equal for sources that always have the same text.
	key() string
	// read returns the text. Given the validator of an earlier read it may return
	// errUnchanged instead. Any other error means that there is no text now.
	read(ctx context.Context, last any) (content, error)
	// pace returns the default and the shortest interval between reads.
	pace() (usual, least time.Duration)
	// settle is how long a new text must stay the same before it is loaded, as
	// somebody may still be writing it; 0 for sources that change at once.
	settle() time.Duration
	// remote reports whether reading goes over a network: a failure then says
	// nothing about the policy.
	remote() bool
	// startsFromLastGood reports whether a last good policy is enough until the
	// configuration runs, so that starting does not wait for the network.
	startsFromLastGood() bool
	// place is where the last good text is saved.
	place() lastGoodPlace
}

// lastGoodPlace is where the last good policy of a source is saved.
type lastGoodPlace int

const (
	notSaved     lastGoodPlace = iota
	savedLocally               // on this machine, for sources that other machines may see differently
	savedShared                // in Caddy's storage, which machines may share
)

// content is the text of a policy.
type content struct {
	data      []byte
	validator any // lets the source tell later whether anything has changed
}

var errUnchanged = errors.New("unchanged")

// readTimeout bounds one read of a source.
const readTimeout = 10 * time.Second

// stateOf identifies a state of a source. Network errors can differ each time, by
// ports and request IDs, and count as one state.
func stateOf(src source, found content, err error) string {
	switch {
	case err == nil:
		return sumOf(found.data)
	case src.remote():
		return "error"
	}
	return "error: " + err.Error()
}
