// SPDX-License-Identifier: Apache-2.0

package optional

import (
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// thing is the value that a part opens in these tests.
type thing struct{ closed *bool }

func (t thing) Close() error { *t.closed = true; return nil }

// If a part cannot be opened, Part tries again. The time between two attempts grows to five minutes. When an attempt
// succeeds, the part works.
func TestRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tries []time.Duration
		began, opened, closed := time.Now(), 0, false
		var opening *Opening
		var full atomic.Bool
		full.Store(true)
		p := Open("test", Funcs[thing]{
			Open: func(o *Opening, before error) (thing, error) {
				opening = o
				tries = append(tries, time.Since(began))
				if len(tries) == 2 {
					panic("in the middle")
				}
				if len(tries) > 2 && before == nil {
					t.Error("Open does not get the error of the previous attempt")
				}
				if full.Load() {
					return thing{}, errors.New("no disk")
				}
				return thing{&closed}, nil
			},
			Opened: func() { opened++ },
		})
		Wait(time.Second)
		if _, ok := p.Get(); ok || p.Err() == nil || len(Failing()) != 1 || Failing()[0].Part != "test" {
			t.Errorf("the part is not reported as failing: %v", Failing())
		}
		time.Sleep(20 * time.Minute)
		synctest.Wait()
		full.Store(false)
		time.Sleep(lastRetry + 1)
		synctest.Wait()
		if _, ok := p.Get(); !ok || p.Err() != nil || opened != 1 || len(Failing()) != 0 {
			t.Errorf("the part is not reported as working again: %v", p.Err())
		}
		want := []time.Duration{0, 1, 3, 7, 15, 31, 63, 127, 255, 511, 811, 1111, 1411}
		for i := range want {
			want[i] *= time.Second
		}
		if !slices.Equal(tries, want) {
			t.Errorf("attempts at %v", tries)
		}
		old := opening
		old.Broken(errors.New("damaged"))
		synctest.Wait()
		if _, ok := p.Get(); ok || !closed || p.Err() == nil {
			t.Error("the broken value is still in use")
		}
		old.Broken(errors.New("damaged, its last write says"))
		time.Sleep(lastRetry + 1)
		synctest.Wait()
		if _, ok := p.Get(); !ok || opened != 2 {
			t.Error("the part is not opened again after a failure")
		}
		tried := len(tries)
		time.Sleep(2 * lastRetry)
		synctest.Wait()
		if _, ok := p.Get(); !ok || len(tries) != tried {
			t.Error("a report of the old value affects the new one")
		}
		if closed = false; p.Close() != nil || !closed {
			t.Error("the value was not closed")
		}
		if len(Failing()) != 0 {
			t.Error(Failing())
		}
	})
}

// If opening a part hangs, sites do not wait for it. If Close is called before the part is open, the value that is
// finally opened is closed at once.
func TestHanging(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release, closed := make(chan struct{}), false
		p := Open("test", Funcs[thing]{Open: func(*Opening, error) (thing, error) { <-release; return thing{&closed}, nil }})
		began := time.Now()
		Wait(time.Second)
		if d := time.Since(began); d != time.Second {
			t.Errorf("waited %s", d)
		}
		time.Sleep(slow)
		if !errors.Is(p.Err(), errSlow) {
			t.Errorf("the delay is not reported: %v", p.Err())
		}
		if err := p.Close(); err != nil || time.Since(began) != slow+time.Second {
			t.Errorf("closing waited: %v", err)
		}
		close(release)
		<-p.done
		if _, ok := p.Get(); ok || !closed {
			t.Error("the value was not closed when it opened later")
		}
	})
}

// If several configurations have the same part, it is opened only once, with the newest settings.
func TestPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opens, closed := 0, false
		var configured []string
		pool := NewPool("test", PoolFuncs[string, thing]{
			Open:      func(*string, *Opening, error) (thing, error) { opens++; return thing{&closed}, nil },
			Configure: func(u *string, _ thing) error { configured = append(configured, *u); return nil },
		})
		a, b := "a", "b"
		one := pool.Join("dir", &a)
		synctest.Wait()
		two := pool.Join("dir", &b)
		synctest.Wait()
		if err := one.Leave(&a); err != nil || closed {
			t.Errorf("the part was closed while it is in use: %v", err)
		}
		synctest.Wait()
		if *two.Settings() != "b" || opens != 1 || !slices.Equal(configured, []string{"b", "b"}) {
			t.Errorf("settings %s, opened %d times, configured %v", *two.Settings(), opens, configured)
		}
		if err := two.Leave(&b); err != nil || !closed {
			t.Errorf("the part was not closed: %v", err)
		}
	})
}
