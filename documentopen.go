// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"context"
	"fmt"
	"os"

	"github.com/caddyserver/caddy/v2"
)

// open makes sure that there is a policy to start with, for a reader that is
// about to join. The source is read even if the document is in use already, by
// the configuration that is about to be replaced: its policy may be out of date.
// A text that is wrong refuses the new configuration; that a network does not
// answer does not.
func (d *document) open(ctx context.Context, r *reader) error {
	late := r.src.late() && r.follow
	if late && d.status().current != nil {
		return nil // without waiting for a reading that is out
	}
	if err := d.checking.take(ctx); err != nil {
		return err
	}
	defer d.checking.pass()
	current := d.status().current
	if late && (current != nil || d.startKept(r) != nil) {
		return nil
	}
	found, err := d.read(ctx, r, nil)
	if err != nil {
		if r.src.remote() && (current != nil || d.startKept(r) != nil) {
			d.note(err)
			return nil
		}
		return d.openWithout(r, fmt.Errorf("reading the policy: %w", err))
	}
	if current != nil && sumOf(found.data) == current.sum {
		d.mark, d.dropped = found.mark, ""
		d.note(nil)
		return nil
	}
	l, err := newLive(r.src.name(), found.data)
	if err != nil {
		return d.openWithout(r, err)
	}
	d.adopt(r, found, l, false).tell()
	return nil
}

// openWithout opens a document whose source holds no policy, with the one that
// was good last, if Caddy is just coming up: better than no site at all. Where a
// configuration runs already, that one goes on, and err says why.
func (d *document) openWithout(r *reader, err error) error {
	if !comingUp() {
		return err
	}
	l := d.startKept(r)
	if l == nil {
		return err
	}
	d.note(err)
	r.teller.failed(r.src, l, err)
	return nil
}

// startKept makes the policy that was kept the current one.
func (d *document) startKept(r *reader) *live {
	l, mark := r.teller.kept(r.src)
	if l != nil {
		d.mark = mark
		d.mu.Lock()
		d.current = l
		d.mu.Unlock()
	}
	return l
}

// comingUp reports whether Caddy is loading its first configuration to run it.
func comingUp() bool {
	return !validating() && caddy.ActiveContext().Context == nil
}

// validating reports whether the configuration is only being validated, which
// Caddy does not tell a module. Then a policy that is broken must be found out,
// and nothing is left behind.
func validating() bool {
	return len(os.Args) > 1 && (os.Args[1] == "validate" || os.Args[1] == "adapt")
}
