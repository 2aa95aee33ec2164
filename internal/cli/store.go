// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/activity/replay"
)

// Store is an activity store that is read. It is that of activity/store, which links a
// database: only the package console imports it.
type Store interface {
	EachRow(ctx context.Context, from, to time.Time, each func(activity.Visits) error) (pathless int64, err error)
	PolicyVersions(ctx context.Context, name string) ([]string, error)
	Close() error
}

var openStore func(ctx context.Context, dir string) (Store, error)

// RegisterStore says how a store is opened. It must be called from an init function.
func RegisterStore(open func(ctx context.Context, dir string) (Store, error)) { openStore = open }

var errNoStore = errors.New("this build of Caddy cannot read an activity store: build it with the package github.com/robotspolicy/caddy-robots-policy/console")

// useStore has a replay read the store of a directory, until the function that it
// returns is called.
func useStore(ctx context.Context, dir string, o *replay.Options) (Store, func() error, error) {
	if openStore == nil {
		return nil, nil, errNoStore
	}
	s, err := openStore(ctx, dir)
	if err != nil {
		return nil, nil, err
	}
	o.Stored, o.StoreName = s.EachRow, dir
	return s, s.Close, nil
}
