// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"context"
	"errors"
	"os"
	"slices"
	"time"

	"go.uber.org/zap"
)

// join makes a handler a user of the set.
func (s *hostSet) join(r *hostReader) {
	s.mu.Lock()
	s.readers = append(s.readers, r)
	switch {
	case !r.follow:
	case s.stop == nil:
		ctx, cancel := context.WithCancel(context.Background())
		s.stop, s.woken = cancel, make(chan struct{}, 1)
		go s.run(ctx, s.woken)
	default:
		wake(s.woken)
	}
	s.mu.Unlock()
	if !r.follow {
		// A configuration that does not follow reads its policies when it is loaded.
		s.reload(context.Background())
	}
}

// leave ends what join began.
func (s *hostSet) leave(r *hostReader) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.readers = slices.DeleteFunc(s.readers, func(o *hostReader) bool { return o == r })
	if s.stop != nil && s.interval() == 0 {
		s.stop()
		s.stop = nil
	}
}

// interval is the shortest that a handler asks for; 0 if none follows.
func (s *hostSet) interval() time.Duration {
	var shortest time.Duration
	for _, r := range s.readers {
		if r.follow && (shortest == 0 || r.interval < shortest) {
			shortest = r.interval
		}
	}
	return shortest
}

// run follows the files of the hosts that are held until ctx ends.
func (s *hostSet) run(ctx context.Context, woken <-chan struct{}) {
	follow(ctx, woken, func(ctx context.Context) time.Duration {
		s.mu.RLock()
		wait := max(s.interval(), starting)
		s.mu.RUnlock()
		if s.sweep(ctx, false) {
			wait = min(wait, fileSettle) // what is new must stand for a moment
		}
		return wait
	})
}

// reload takes up at once what is new. It does not wait for a directory that
// hangs; then false.
func (s *hostSet) reload(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	return within(ctx, "the directory", func() error {
		s.sweep(ctx, true)
		return ctx.Err()
	}) == nil
}

// sweep looks at the files of all hosts that are held, and at which hosts still
// have none. It reports whether something is to be looked at again soon. With
// all set, what is new is taken up at once.
func (s *hostSet) sweep(ctx context.Context, all bool) (again bool) {
	if s.sweeping.take(ctx) != nil {
		return false
	}
	defer s.sweeping.pass()
	t := s.teller()
	defer t.recover()
	root, err := os.OpenRoot(s.template.Dir())
	s.directory(t, err)
	if err != nil {
		return false
	}
	defer root.Close()
	ctx = context.WithValue(ctx, rootKey{}, root)
	s.sweepMisses(ctx, root, all)
	s.mu.RLock()
	entries := make([]*hostEntry, 0, len(s.entries))
	for _, e := range s.entries {
		entries = append(entries, e)
	}
	s.mu.RUnlock()
	for _, e := range entries {
		if ctx.Err() != nil {
			return false
		}
		if e.isReady() && e.document != nil && s.look(ctx, t, e, all) {
			again = true
		}
	}
	return again
}

// sweepMisses forgets which hosts have no file, so that it is looked for again. For
// those that are asked for all the time it is looked for here, so that they do
// not have to wait behind others.
func (s *hostSet) sweepMisses(ctx context.Context, root *os.Root, all bool) {
	var asked []string
	s.mu.Lock()
	for host, m := range s.misses {
		switch {
		case m.asked.Swap(false):
			asked = append(asked, host)
		case all || time.Since(m.since) >= s.interval()/2:
			delete(s.misses, host)
		}
	}
	s.mu.Unlock()
	for _, host := range asked {
		if ctx.Err() != nil {
			return
		}
		file, _ := s.template.Expand(host)
		if _, err := root.Stat(file); !isMissing(err) {
			s.mu.Lock()
			delete(s.misses, host)
			s.mu.Unlock()
		}
	}
}

// look looks at the file of one host. It reports whether to look again soon.
func (s *hostSet) look(ctx context.Context, t *teller, e *hostEntry, all bool) (again bool) {
	d := e.document
	tell := func() {}
	defer func() { tell() }()
	r := d.readers[0]
	found, err := r.src.read(ctx, d.mark)
	d.mu.Lock()
	d.checked = time.Now()
	held := d.current
	d.mu.Unlock()
	if errors.Is(err, errUnchanged) || ctx.Err() != nil {
		return false
	}
	if !all && d.unsettled(r, found, err) > 0 {
		return true
	}
	if isMissing(err) {
		s.mu.Lock()
		s.drop(e)
		s.mu.Unlock()
		if held == s.closed() {
			return false // it never had one
		}
		t.logger.Info("the policy of a host is gone", zap.String("policy", d.name))
		return false
	}
	r.teller = t
	tell = d.take(r, found, err, true).tell
	return false
}

// hostsStatus is what is to be told of a set.
type hostsStatus struct {
	held, broken, misses int
	err                  error // of the directory
	counts               counts
	interval             time.Duration
	readers              int
}

func (s *hostSet) status() hostsStatus {
	s.mu.RLock()
	defer s.mu.RUnlock()
	st := hostsStatus{held: len(s.entries), misses: len(s.misses), err: s.dirErr, counts: s.gone, interval: s.interval(), readers: len(s.readers)}
	for _, e := range s.entries {
		if !e.isReady() || e.document == nil {
			continue
		}
		d := e.document.status()
		st.counts.Taken += d.counts.Taken
		st.counts.Refused += d.counts.Refused
		if d.err != nil {
			st.broken++
		}
	}
	return st
}
