// SPDX-License-Identifier: Apache-2.0

// Package optional opens optional parts, such as databases, logs and the console. Sites can be served without them. The
// package opens them in the background. If a part fails, hangs or stops working, the package reports this once, and
// tries to open the part again at growing intervals.
package optional

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

const (
	firstRetry = time.Second
	lastRetry  = 5 * time.Minute
	settled    = time.Hour       // if a part has worked for this time, the interval after its next failure is short again
	slow       = 5 * time.Second // if opening a part takes longer than this, the delay is reported
	closing    = 10 * time.Second
)

// Part is an optional part: sites can be served without it.
type Part[T io.Closer] struct {
	*State
	funcs   Funcs[T]
	current atomic.Pointer[T]
	closed  context.Context // canceled by Close
	stop    context.CancelFunc
	done    chan struct{} // closed when the goroutine of run has ended
	changed chan struct{}
	opening atomic.Bool
}

// Funcs holds the functions that open and configure a part.
type Funcs[T io.Closer] struct {
	// Open opens the part. before is the error of the previous attempt to open it, or nil.
	Open func(o *Opening, before error) (T, error)
	// Opened is called each time after the part was opened. It may be nil.
	Opened func()
	// Configure is called with the open part after each call of Changed. If it returns an error, the part is closed and
	// opened again. It may be nil.
	Configure func(T) error
}

// Opening is one attempt to open a part. If the attempt succeeds, the open part reports its errors to the Opening.
type Opening struct {
	*State
	broken chan error
}

// Broken reports that the open part has stopped working and must be opened again. It has no effect if the part was
// closed, or opened again, in the meantime.
func (o *Opening) Broken(err error) {
	select {
	case o.broken <- err:
	default: // an earlier error has not been handled yet
	}
}

// Open opens a part in the background.
func Open[T io.Closer](name string, funcs Funcs[T]) *Part[T] {
	p := &Part[T]{
		State: add(&State{name: name, tried: make(chan struct{})}), funcs: funcs, done: make(chan struct{}),
		changed: make(chan struct{}, 1),
	}
	p.closed, p.stop = context.WithCancel(context.Background()) //nolint:gosec // Close calls stop
	p.opening.Store(true)
	go p.run()
	return p
}

// Get returns the open part. ok is false if the part is not open.
func (p *Part[T]) Get() (v T, ok bool) {
	if current := p.current.Load(); current != nil {
		return *current, true
	}
	return v, false
}

// With passes the part to the function do if the part is open.
func (p *Part[T]) With(do func(T)) {
	if v, ok := p.Get(); ok {
		do(v)
	}
}

// Changed tells the part that its configuration has changed.
func (p *Part[T]) Changed() {
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

// Close closes the part. It does not wait for a part that is still being opened. If closing takes longer than the
// constant closing, Close returns an error.
func (p *Part[T]) Close() error {
	p.stop()
	p.Remove()
	if p.opening.Load() {
		return nil // if the part is opened later, run closes it
	}
	select {
	case <-p.done:
		return nil
	case <-time.After(closing):
		return fmt.Errorf("%s is still being closed after %s", p.name, closing)
	}
}

func (p *Part[T]) stopped() bool { return p.closed.Err() != nil }

// run keeps the part open until Close is called.
func (p *Part[T]) run() {
	defer close(p.done)
	retry := firstRetry
	var before error
	for first := true; ; first = false {
		o := &Opening{p.State, make(chan error, 1)}
		v, err := p.open(o, before)
		if first {
			close(p.tried)
		}
		if err == nil {
			began := time.Now()
			if err = p.use(o, v); err == nil {
				return // the part was closed
			}
			if time.Since(began) > settled {
				retry = firstRetry
			}
		}
		before = err
		select {
		case <-p.closed.Done():
			return
		case <-time.After(retry):
			retry = min(2*retry, lastRetry)
		}
	}
}

func (p *Part[T]) open(o *Opening, before error) (v T, err error) {
	p.opening.Store(true)
	late := time.AfterFunc(slow, func() {
		if p.opening.Load() && !p.stopped() {
			p.Report(errSlow)
		}
	})
	v, err = p.try(o, before)
	late.Stop()
	if err == nil && !p.stopped() {
		p.current.Store(&v)
	}
	p.opening.Store(false)
	if !p.stopped() {
		p.Report(err)
	}
	return v, err
}

// try calls Funcs.Open, and converts a panic to an error.
func (p *Part[T]) try(o *Opening, before error) (v T, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("opening %s: panic: %v", p.name, r)
		}
	}()
	return p.funcs.Open(o, before)
}

// use waits as long as the opened part v works. It configures v after each call of Changed. It returns nil if the part
// was closed with Close, and an error if the part must be opened again.
func (p *Part[T]) use(o *Opening, v T) error {
	if p.funcs.Opened != nil && !p.stopped() {
		p.funcs.Opened()
	}
	for {
		var err error
		select {
		case <-p.closed.Done():
			p.current.Store(nil)
			if err := v.Close(); err != nil {
				p.logger().Error("closing an optional part failed", zap.Error(err))
			}
			return nil
		case err = <-o.broken:
		case <-p.changed:
			if p.funcs.Configure != nil {
				err = p.funcs.Configure(v)
			}
		}
		if err != nil {
			p.current.Store(nil)
			p.Report(err)
			_ = v.Close() // err already has the reason why v cannot be used
			return err
		}
	}
}

// Validating reports whether Caddy only checks a configuration (caddy validate, caddy adapt --validate). Caddy does
// not tell its modules, so this function examines the command line.
func Validating() bool {
	return len(os.Args) > 1 && (os.Args[1] == "validate" || os.Args[1] == "adapt")
}
