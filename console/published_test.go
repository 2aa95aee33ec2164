// SPDX-License-Identifier: Apache-2.0

package console

import (
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity/store"
)

// A version that came back was not in force all the time since it was first published.
func TestPublishedLeadOfAVersionThatCameBack(t *testing.T) {
	at := time.Date(2026, 11, 22, 22, 59, 0, 0, time.UTC)
	h := &history{policies: []numbered{
		{Version: store.Version{First: at.Add(5 * time.Minute)}, Number: 2},
		{Version: store.Version{First: at}, Number: 1, Live: true},
	}}
	v := &view{Running: new(running)}
	if got, want := v.publishedLead(&publishedData{}, h), "v1 is in force. It was first published on 22 Nov 2026, 22:59 UTC."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
