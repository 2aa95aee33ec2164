// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"
)

const publishTimeout = 30 * time.Second

var errUnused = errors.New("no site uses this policy any more")

// Writable reports whether the source of the document can be published to.
func (d *Document) Writable() bool {
	u, _ := d.active()
	return u != nil && u.src.stored != nil
}

// Publish writes a new text of the policy to the storage and serves it, if the guard
// allows it and the storage still holds the version whose SHA-256 is replaces, or one
// that this server has rejected. The versions that it replaces stay in History. The
// caller has checked the policy's own tests.
func (d *Document) Publish(ctx context.Context, replaces, text, note string) (Outcome, error) {
	u, _ := d.active()
	if u == nil {
		return Outcome{}, errUnused
	}
	if u.src.stored == nil {
		return Outcome{}, errReadOnly
	}
	if err := d.loading.Acquire(ctx, 1); err != nil {
		return Outcome{}, err
	}
	out, err := d.publishText(ctx, u, replaces, text, note)
	if err != nil {
		return Outcome{}, err
	}
	u.report(u.src, out)
	return out, nil
}

// publishText is Publish with loading held, which it releases.
func (d *Document) publishText(ctx context.Context, u *user, replaces, text, note string) (Outcome, error) {
	defer d.loading.Release(1)
	next, err := Compile(u.src.name, []byte(text))
	if err != nil {
		return Outcome{}, err
	}
	if before := d.Current(); before != nil && before.SHA256 != next.SHA256 {
		if err := u.allows(u.src, before, next); err != nil {
			return Outcome{}, err
		}
	}
	// A write that has begun is finished, whoever waits for it.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), publishTimeout)
	defer cancel()
	known := []string{replaces}
	if d.rejected != "" {
		known = append(known, d.rejected)
	}
	// A storage that ignores ctx may write it later still: then the watcher finds it there.
	_, err = within(ctx, "publishing", func() (any, error) { return nil, u.src.stored.publish(ctx, known, text, note) })
	switch {
	case errors.Is(err, ErrLockStays):
		u.Logger.Warn("a published policy is still locked in the storage", zap.String("policy", u.src.name), zap.Error(err))
	case errors.Is(err, ErrOvertaken), errors.Is(err, ErrStorage):
		return Outcome{}, err
	case err != nil:
		return Outcome{}, fmt.Errorf("%w: %w", ErrStorage, err)
	}
	return d.adopt(u.Options, u.src, content{data: []byte(text)}, next, true), nil
}

// History lists what was published with Publish and what that replaced, newest first.
// Another source than a storage has none.
func (d *Document) History(ctx context.Context) ([]Published, error) {
	u, _ := d.active()
	if u == nil || u.src.stored == nil {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	return within(ctx, "reading the history", func() ([]Published, error) { return u.src.stored.history(ctx) })
}
