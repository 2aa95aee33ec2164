// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// hostFile is the policy of the hosts that have one file.
type hostFile struct {
	name     string        // relative to the directory of the template
	ready    chan struct{} // closed when the fields up to document are set
	err      error
	missing  bool
	document *Document
	snapshot atomic.Pointer[Snapshot]
	used     atomic.Int64 // when it was last used, in Unix seconds

	polling   atomic.Bool // by a sweep
	notBefore time.Time   // when to poll again, after a poll that took long
}

// hostMiss is a file that does not exist.
type hostMiss struct {
	since time.Time
	used  atomic.Bool // since it was last looked up
}

func (m *hostMiss) use() {
	if !m.used.Load() {
		m.used.Store(true)
	}
}

func (f *hostFile) use(now time.Time) {
	if sec := now.Unix(); f.used.Load() != sec {
		f.used.Store(sec)
	}
}

// wait waits until the file is loaded.
func (f *hostFile) wait(ctx context.Context) error {
	if f.isReady() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	select {
	case <-f.ready:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("loading the policy of this host: %w", ctx.Err())
	}
}

func (f *hostFile) isReady() bool {
	select {
	case <-f.ready:
		return true
	default:
		return false
	}
}
