// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/caddyserver/certmagic"
	"golang.org/x/sync/semaphore"

	"github.com/robotspolicy/caddy-robots-policy/handler"
	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/optional"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/deadline"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

// exchange writes a message to the storage, which says which texts of robots.txt crawlers have read on this server. It
// also reads the messages of the other servers. Only the goroutine of the exchange uses the storage. Requests do not
// wait for the storage, because they use only data in memory.
type exchange struct {
	settings func() *Fleet
	state    *optional.State
	cancel   context.CancelFunc
	done     chan struct{}
	busy     *semaphore.Weighted // held during an operation of the storage

	// restored holds the Readings that this server had before its last start. They come from its last message in the
	// storage. restored is nil until this message has been read.
	restored []site.Reading
	sequence int64
	told     map[string]string     // the policies in the last message that this server wrote
	older    map[string]*site.Site // versions that this server does not serve, by policy and hash; nil if unknown

	mu    sync.Mutex // protects peers
	peers map[string]*peer
}

func newExchange(settings func() *Fleet) *exchange {
	ctx, cancel := context.WithCancel(context.Background())
	x := &exchange{
		settings: settings, state: optional.NewState("fleet"), cancel: cancel, done: make(chan struct{}), busy: semaphore.NewWeighted(1),
		sequence: time.Now().UnixNano(), older: map[string]*site.Site{}, peers: map[string]*peer{},
	}
	go x.run(ctx)
	return x
}

// lastWrite limits the time of the last write when a server stops.
const lastWrite = 2 * time.Second

// close stops the exchange, and writes a last message that this server reads after its next start. If the storage
// hangs, close stops waiting after the duration lastWrite.
func (x *exchange) close(f *Fleet) {
	x.cancel()
	<-x.done
	ctx, cancel := context.WithTimeout(context.Background(), lastWrite)
	defer cancel()
	_ = x.write(ctx, f) // if this fails, this server reads an older message after its next start
	x.state.Remove()
}

func (x *exchange) run(ctx context.Context) {
	defer close(x.done)
	var wrote, read time.Time
	for {
		f := x.settings()
		if f == nil {
			return
		}
		interval := time.Duration(f.Interval)
		var err error
		worked := false
		if now := time.Now(); now.Sub(wrote) >= interval || !maps.Equal(x.told, served()) {
			wrote, worked = now, true
			err = x.write(ctx, f)
		}
		if now := time.Now(); now.Sub(read) >= max(interval*3/2, time.Duration(len(x.peers))*time.Second) {
			read, worked = now, true
			err = errors.Join(err, x.read(ctx, f))
			x.learn(ctx)
			alive, _ := x.count()
			if !f.SharedLimits {
				alive = 1
			}
			handler.ShareLimits(alive)
		}
		if ctx.Err() != nil {
			return
		}
		if worked {
			x.state.Report(err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(min(interval, time.Second)):
		}
	}
}

// storageTimeout limits the time of one operation of the storage.
const storageTimeout = 10 * time.Second

var errHangs = errors.New("the storage does not answer")

// within performs an operation of the storage. If the operation still runs when ctx ends, within returns an error.
// After that, within does not begin a new operation before the old one has ended.
func within[T any](ctx context.Context, x *exchange, do func(context.Context) (T, error)) (none T, err error) {
	ctx, cancel := context.WithTimeout(ctx, storageTimeout)
	defer cancel()
	if !x.busy.TryAcquire(1) {
		return none, errHangs
	}
	return deadline.Do(ctx, "the storage", func(ctx context.Context) (T, error) {
		defer x.busy.Release(1)
		return do(ctx)
	})
}

// write writes this server's message to the storage, so that other servers learn which text of robots.txt each crawler
// has read on this server.
func (x *exchange) write(ctx context.Context, f *Fleet) error {
	if x.restored == nil {
		m, err := x.load(ctx, f.storage, key(f.Node))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			m = new(message)
		case err != nil:
			return fmt.Errorf("reading this server's earlier message to the fleet: %w", err)
		}
		x.restored = append([]site.Reading{}, m.Readings...)
	}
	x.sequence++
	x.told = served()
	m := message{Sequence: x.sequence, Policies: x.told, Readings: x.own()}
	data, err := m.encode()
	if err != nil {
		return err
	}
	_, err = within(ctx, x, func(ctx context.Context) (none struct{}, err error) {
		return none, f.storage.Store(ctx, key(f.Node), data)
	})
	return err
}

func (x *exchange) load(ctx context.Context, storage certmagic.Storage, key string) (*message, error) {
	return within(ctx, x, func(ctx context.Context) (*message, error) {
		data, err := storage.Load(ctx, key)
		if err != nil {
			return nil, err
		}
		return decode(data)
	})
}

// read reads the messages of other servers.
func (x *exchange) read(ctx context.Context, f *Fleet) error {
	keys, err := within(ctx, x, func(ctx context.Context) ([]string, error) {
		return f.storage.List(ctx, strings.TrimSuffix(prefix, "/"), false)
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var failed []error
	there := map[string]bool{}
	for _, k := range keys {
		node, ok := strings.CutSuffix(path.Base(k), ".json.gz")
		if !ok || node == f.Node {
			continue
		}
		there[node] = true
		m, err := x.load(ctx, f.storage, key(node))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = append(failed, fmt.Errorf("%s: %w", k, err))
		}
		if silent := x.heard(node, m); silent%forgetEvery == missingAfter {
			failed = append(failed, x.forget(ctx, f, node))
		}
	}
	for _, node := range slices.Collect(maps.Keys(x.peers)) { // only this goroutine changes x.peers
		if !there[node] && x.heard(node, nil) >= missingAfter {
			x.remove(node) // the node's key was deleted by another server or a person
		}
	}
	return errors.Join(failed...)
}
