// SPDX-License-Identifier: Apache-2.0

package optional

import (
	"errors"
	"io"

	"github.com/caddyserver/caddy/v2"
)

// Pool holds optional parts, each with a key. When Caddy replaces a configuration, both configurations can use the same
// part, which must not be opened twice. U is the type of the settings that a configuration has for the part. If several
// configurations use a part, the settings of the newest one apply.
type Pool[U any, T io.Closer] struct {
	name   string
	funcs  PoolFuncs[U, T]
	shared *caddy.UsagePool
}

// PoolFuncs is like [Funcs], but its functions also get the settings.
type PoolFuncs[U any, T io.Closer] struct {
	Open      func(u *U, o *Opening, before error) (T, error)
	Opened    func()
	Configure func(u *U, v T) error
}

// NewPool returns a pool of parts. name is their name in the log.
func NewPool[U any, T io.Closer](name string, funcs PoolFuncs[U, T]) *Pool[U, T] {
	return &Pool[U, T]{name, funcs, caddy.NewUsagePool()}
}

// Shared is a part in a pool.
type Shared[U any, T io.Closer] struct {
	*Part[T]
	pool  *caddy.UsagePool
	key   string
	users Latest[U]
}

func (s *Shared[U, T]) Destruct() error { return s.Close() }

// Join adds u, the settings of a configuration, to the users of the part with the given key. It opens the part, unless
// another configuration has already opened it.
func (p *Pool[U, T]) Join(key string, u *U) *Shared[U, T] {
	v, loaded, _ := p.shared.LoadOrNew(key, func() (caddy.Destructor, error) {
		s := &Shared[U, T]{pool: p.shared, key: key}
		s.users.Add(u)
		s.Part = Open(p.name, Funcs[T]{
			Open: func(o *Opening, before error) (v T, err error) {
				if u := s.Settings(); u != nil {
					return p.funcs.Open(u, o, before)
				}
				return v, errors.New("no configuration uses it any more")
			},
			Opened: p.funcs.Opened,
			Configure: func(v T) error {
				if u := s.Settings(); u != nil {
					return p.funcs.Configure(u, v)
				}
				return nil
			},
		})
		return s, nil
	})
	s := v.(*Shared[U, T])
	if loaded {
		s.users.Add(u)
		s.Changed()
	}
	return s
}

// Settings returns the settings that apply: the settings of the newest configuration that uses the part.
func (s *Shared[U, T]) Settings() *U { return s.users.Get() }

// Leave removes u, the settings of a configuration, from the users of the part. If no user is left, the part is closed.
func (s *Shared[U, T]) Leave(u *U) error {
	s.users.Remove(u)
	s.Changed()
	_, err := s.pool.Delete(s.key)
	return err
}
