// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
)

// join makes a handler a user of the set.
func (s *hostSet) join(r *hostReader) {
	s.mu.Lock()
	s.readers = append(s.readers, r)
	if r.follow && s.stop == nil {
		ctx, cancel := context.WithCancel(context.Background())
		s.stop = cancel
		go s.run(ctx)
	}
	s.mu.Unlock()
	if !r.follow {
		// A configuration that does not follow reads its policies when it is loaded.
		s.sweep(context.Background(), true)
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
func (s *hostSet) run(ctx context.Context) {
	for {
		s.mu.RLock()
		wait := s.interval()
		s.mu.RUnlock()
		timer := time.NewTimer(max(wait, starting))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		if s.sweep(ctx, false) {
			// What is new must stand for a moment.
			select {
			case <-ctx.Done():
				return
			case <-time.After(fileSettle):
			}
			s.sweep(ctx, false)
		}
	}
}

// sweep looks at the files of all hosts that are held, and forgets which hosts
// have none. It reports whether something is to be looked at again soon. With
// all set, what is new is taken up at once.
func (s *hostSet) sweep(ctx context.Context, all bool) (again bool) {
	t := s.teller()
	defer t.recover()
	s.mu.Lock()
	for host, since := range s.misses {
		if all || time.Since(since) >= s.interval()/2 {
			delete(s.misses, host)
		}
	}
	entries := make([]*hostEntry, 0, len(s.entries))
	for _, e := range s.entries {
		entries = append(entries, e)
	}
	s.mu.Unlock()
	if root, err := os.OpenRoot(s.template.dir); err == nil {
		defer root.Close()
		ctx = context.WithValue(ctx, rootKey{}, root)
	}
	for _, e := range entries {
		if ctx.Err() != nil {
			return false
		}
		select {
		case <-e.ready:
		default:
			continue // is being loaded
		}
		if e.document != nil && s.look(ctx, t, e, all) {
			again = true
		}
	}
	return again
}

// look looks at the file of one host. It reports whether to look again soon.
func (s *hostSet) look(ctx context.Context, t *teller, e *hostEntry, all bool) (again bool) {
	d := e.document
	tell := func() {}
	defer func() { tell() }()
	d.checking.Lock()
	defer d.checking.Unlock()
	r := d.readers[0]
	found, err := d.read(ctx, r, d.mark)
	if errors.Is(err, errUnchanged) || ctx.Err() != nil {
		return false
	}
	if !all && d.unsettled(r, found, err) > 0 {
		return true
	}
	if _, not := errors.AsType[notMissing](err); errors.Is(err, fs.ErrNotExist) && !not {
		s.mu.Lock()
		s.drop(e)
		s.mu.Unlock()
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
	counts               counts
	interval             time.Duration
	readers              int
}

func (s *hostSet) status() hostsStatus {
	s.mu.RLock()
	defer s.mu.RUnlock()
	st := hostsStatus{held: len(s.entries), misses: len(s.misses), counts: s.gone, interval: s.interval(), readers: len(s.readers)}
	for _, e := range s.entries {
		select {
		case <-e.ready:
		default:
			continue
		}
		if e.document == nil {
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

// bucket lets so many pass a second, and about as many at once. The rest waits,
// as long as there is room to wait.
type bucket struct {
	rate float64

	mu      sync.Mutex
	next    time.Time // when the next may pass
	waiting int
}

var errBusy = errors.New("too many hosts are asked for at once")

// wait returns when its caller may pass.
func (b *bucket) wait(ctx context.Context) error {
	b.mu.Lock()
	now := time.Now()
	if earliest := now.Add(-time.Second); b.next.Before(earliest) {
		b.next = earliest
	}
	delay := b.next.Sub(now)
	if delay > 0 && b.waiting >= maxWaiting {
		b.mu.Unlock()
		return errBusy
	}
	b.next = b.next.Add(time.Duration(float64(time.Second) / b.rate))
	if delay <= 0 {
		b.mu.Unlock()
		return nil
	}
	b.waiting++
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		b.waiting--
		b.mu.Unlock()
	}()
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
