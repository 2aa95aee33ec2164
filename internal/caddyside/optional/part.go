// SPDX-License-Identifier: Apache-2.0

// Package optional opens parts that sites can be served without: databases, logs, the console. They are
// opened in the background. If a part fails, hangs or stops working, this is reported once and tried again,
// at intervals that grow.
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
	settled    = time.Hour       // after working for so long, the next retry is soon again
	slow       = 5 * time.Second // opening that takes longer is reported
	closing    = 10 * time.Second
)

// Part is something that sites can be served without.
type Part[T io.Closer] struct {
	*State
	funcs   Funcs[T]
	current atomic.Pointer[T]
	closed  context.Context // done by Close
	stop    context.CancelFunc
	done    chan struct{} // closed when nothing runs any more
	changed chan struct{}
	opening atomic.Bool
}

// Funcs are the functions of a part.
type Funcs[T io.Closer] struct {
	// Open opens it. before is why it did not work before, nil at first.
	Open func(o *Opening, before error) (T, error)
	// Opened is called when it is open, which may be again. It may be nil.
	Opened func()
	// Configure is called after Changed, with what is open. After an error it is opened again. It may be nil.
	Configure func(T) error
}

// Opening is one opening of a part. The opened part reports to it until it is closed.
type Opening struct {
	*State
	broken chan error
}

// Broken says that the opened part stopped working and must be opened again. It has no effect on a part that
// is closed already, nor on its successor.
func (o *Opening) Broken(err error) {
	select {
	case o.broken <- err:
	default: // it is known
	}
}

// Open opens a part in the background.
func Open[T io.Closer](name string, funcs Funcs[T]) *Part[T] {
	p := &Part[T]{
		State: add(&State{name: name, tried: make(chan struct{})}), funcs: funcs, done: make(chan struct{}),
		changed: make(chan struct{}, 1),
	}
	p.closed, p.stop = context.WithCancel(context.Background()) //nolint:gosec // Close calls it
	p.opening.Store(true)
	go p.run()
	return p
}

// Get returns what is open. Without it, ok is false.
func (p *Part[T]) Get() (v T, ok bool) {
	if current := p.current.Load(); current != nil {
		return *current, true
	}
	return v, false
}

// With calls do with what is open, if it is.
func (p *Part[T]) With(do func(T)) {
	if v, ok := p.Get(); ok {
		do(v)
	}
}

// Changed says that the configuration of what is open has changed.
func (p *Part[T]) Changed() {
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

// Close closes what is open. It does not wait for what hangs.
func (p *Part[T]) Close() error {
	p.stop()
	p.Remove()
	if p.opening.Load() {
		return nil // run closes it, should it ever be open
	}
	select {
	case <-p.done:
		return nil
	case <-time.After(closing):
		return fmt.Errorf("%s is still being closed after %s", p.name, closing)
	}
}

func (p *Part[T]) stopped() bool { return p.closed.Err() != nil }

// run keeps it open until Close.
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
				return // it was closed
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

// try is Funcs.Open without its panics.
func (p *Part[T]) try(o *Opening, before error) (v T, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("opening %s: panic: %v", p.name, r)
		}
	}()
	return p.funcs.Open(o, before)
}

// use is there for what is open until it is closed, which returns nil, or must be opened again.
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
			_ = v.Close() // err says why it cannot be used
			return err
		}
	}
}

// Validating reports whether Caddy was started only to check a configuration (caddy validate, caddy adapt
// --validate). Caddy does not tell its modules, so this looks at the command line.
func Validating() bool {
	return len(os.Args) > 1 && (os.Args[1] == "validate" || os.Args[1] == "adapt")
}
