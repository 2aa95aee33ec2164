// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
	"strconv"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity"
)

// Period is a period during which a server recorded that a publication was in force.
type Period struct{ From, To time.Time }

// maxPause is the maximum time between two records that belong to the same Period. While a publication is in force, the
// server records this about once a minute. After a longer pause, it is not known which publication was in force during
// the pause, because the server was down or could not write.
const maxPause = 3 * time.Minute

// current is the publication in force for a source, with the time when the database last recorded that it is in force.
type current struct {
	hash, number string
	since        time.Time
	said         time.Time // time of the last record, by the server's clock
}

// Publish records that a publication came into force at a time. This publication replaces the previous one with the
// same name. Publish returns after the database has been written.
func (s *Store) Publish(ctx context.Context, p *activity.Publication, at time.Time) error {
	s.inForceMu.Lock()
	defer s.inForceMu.Unlock()
	before, now := s.inForce[p.Name], current{hash: p.ID[:12], number: p.Number, since: at}
	if before.hash == now.hash && before.number == now.number {
		return nil
	}
	if before.hash != "" {
		if err := s.note(ctx, p.Name, before, at); err != nil {
			return err
		}
	}
	if err := s.insertNew(ctx, "versions", now.hash, p.Number, p.Name, p.SHA256[:12], at.Unix(), p.Text); err != nil {
		return err
	}
	return s.note(ctx, p.Name, now, at)
}

// End records that a publication is no longer in force. It returns after the database has been written.
func (s *Store) End(ctx context.Context, p *activity.Publication, at time.Time) error {
	s.inForceMu.Lock()
	defer s.inForceMu.Unlock()
	before := s.inForce[p.Name]
	if before.hash != p.ID[:12] {
		return nil
	}
	defer delete(s.inForce, p.Name)
	return s.note(ctx, p.Name, before, at)
}

// beat records that the current publications are still in force. After a pause of more than maxPause, it starts another
// period.
func (s *Store) beat(ctx context.Context) error {
	s.inForceMu.Lock()
	defer s.inForceMu.Unlock()
	now := s.options().Now()
	for name, c := range s.inForce {
		if pause := now.Sub(c.said); pause > maxPause || pause < 0 {
			c.since = now
		}
		if err := s.note(ctx, name, c, now); err != nil {
			return err
		}
	}
	return nil
}

// note records that a publication is in force at a time.
func (s *Store) note(ctx context.Context, name string, c current, at time.Time) error {
	c.said = s.options().Now()
	s.inForce[name] = c
	return s.change(ctx, func(tx *sql.Tx, revision int64) error {
		since := c.since.Unix()
		if _, err := tx.ExecContext(ctx, "INSERT INTO in_force VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET last = max(last, excluded.last), changed = excluded.changed",
			c.hash, c.number, name, strconv.FormatInt(since, 10), since, max(since, at.Unix()), revision); err != nil {
			return err
		}
		return touch(ctx, tx, "in_force", 0, revision)
	})
}

// period is a row of the table in_force.
type period struct {
	id, number, name string
	Period
}

// addPeriods adds to each publication the periods during which any server recorded it, in order.
func addPeriods(all []Publication, periods []period) {
	slices.SortFunc(periods, func(a, b period) int { return cmp.Or(a.From.Compare(b.From), a.To.Compare(b.To)) })
	for i := range all {
		p := &all[i]
		for _, x := range periods {
			if x.id != p.ID || x.number != p.Number || x.name != p.Name {
				continue
			}
			if n := len(p.Periods); n > 0 && x.From.Sub(p.Periods[n-1].To) <= maxPause {
				last := &p.Periods[n-1]
				if x.To.After(last.To) {
					last.To = x.To
				}
				continue
			}
			p.Periods = append(p.Periods, x.Period)
		}
		if len(p.Periods) > 0 {
			p.First = p.Periods[0].From
		}
	}
}
