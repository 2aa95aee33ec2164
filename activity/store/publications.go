// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

// Publication is a publication whose policy was in force for some time.
type Publication struct {
	ID     string    // start of the ID, as in requests
	Number string    // see activity.Publication; if a policy comes back, it has a new number
	Name   string    // name of the policy's source
	Policy string    // version of the policy, as in the rows of totals
	First  time.Time // time when the first server recorded it
	Text   string
	// Periods are the periods during which servers recorded that the publication was in force, in order. Between two
	// periods, another publication was in force, or no server recorded anything.
	Periods []Period
}

// Label returns the name that people see; see [activity.Label].
func (p *Publication) Label() string { return activity.Label(p.ID, p.Number) }

// Since returns the beginning of the last period.
func (p *Publication) Since() time.Time {
	if n := len(p.Periods); n > 0 {
		return p.Periods[n-1].From
	}
	return p.First
}

// Document is a robots.txt that a crawler received under a publication.
type Document struct {
	Publication, Host, Version string
	First                      time.Time
	Text                       string
}

// Serve records a document that a crawler received. It returns after the database has been written.
func (s *Store) Serve(ctx context.Context, p *activity.Publication, d site.Document, at time.Time) error {
	return s.insertNew(ctx, "documents", p.ID[:12], d.Host, d.Version, at.Unix(), d.Text)
}

// insertNew inserts a row, unless a row with the same key exists.
func (s *Store) insertNew(ctx context.Context, name string, values ...any) error {
	return s.change(ctx, func(tx *sql.Tx, revision int64) error {
		if _, err := tx.ExecContext(ctx, "INSERT INTO "+name+" VALUES (?"+strings.Repeat(", ?", len(values))+") ON CONFLICT DO NOTHING", append(values, revision)...); err != nil {
			return err
		}
		return touch(ctx, tx, name, 0, revision)
	})
}

// Publications returns the publications of a source, the newest first. If name is empty, it returns the publications of
// all sources.
func (r *Reader) Publications(ctx context.Context, name string) ([]Publication, error) {
	all, err := list(ctx, r.db, func(p *Publication) []any {
		return []any{&p.ID, &p.Number, &p.Name, &p.Policy, (*seconds)(&p.First), &p.Text}
	},
		"SELECT hash, version, name, policy, first, text FROM versions WHERE ?1 IN ('', name) ORDER BY first DESC, rowid DESC", name)
	if err != nil {
		return nil, err
	}
	periods, err := list(ctx, r.db, func(p *period) []any {
		return []any{&p.id, &p.number, &p.name, (*seconds)(&p.From), (*seconds)(&p.To)}
	}, selectPeriods)
	addPeriods(all, periods)
	return all, err
}

// Documents returns the documents that crawlers received, the newest first.
func (r *Reader) Documents(ctx context.Context) ([]Document, error) {
	return list(ctx, r.db, func(d *Document) []any {
		return []any{&d.Publication, &d.Host, &d.Version, (*seconds)(&d.First), &d.Text}
	},
		"SELECT version_hash, host, etag, first, text FROM documents ORDER BY first DESC, host, etag")
}

// PolicyVersions returns the versions of the policies from a source.
func (r *Reader) PolicyVersions(ctx context.Context, name string) ([]string, error) {
	all, err := r.Publications(ctx, name)
	return versionsOf(all), err
}

func versionsOf(all []Publication) []string {
	versions := make([]string, len(all))
	for i := range all {
		versions[i] = all[i].Policy
	}
	return versions
}

// Read records that a crawler with an identity read a version of a host's robots.txt.
type Read struct {
	readKey
	First, Last time.Time
	Requests    int64
}

// Label returns the label of the publication that was in force then. If that publication is not known, it returns the
// version of the robots.txt.
func (r *Read) Label() string {
	if r.Publication == "" {
		return fmt.Sprintf("%.8s", r.Version)
	}
	return activity.Label(r.Publication, r.Number)
}

// Reads returns which crawlers have read which robots.txt, the latest first.
func (r *Reader) Reads(ctx context.Context) ([]Read, error) {
	all, err := list(ctx, r.db, func(r *Read) []any {
		return []any{&r.Host, &r.Crawler, &r.Identity, &r.Version, &r.Form, &r.Publication, &r.Number, (*seconds)(&r.First), (*seconds)(&r.Last), &r.Requests}
	}, "SELECT h.text, c.text, i.text, v.text, f.text, p.text, n.text, first, last, requests FROM reads"+
		" JOIN strings AS h ON h.id = host JOIN strings AS c ON c.id = crawler JOIN strings AS i ON i.id = identity"+
		" JOIN strings AS v ON v.id = robots JOIN strings AS f ON f.id = form JOIN strings AS p ON p.id = version_hash JOIN strings AS n ON n.id = version")
	sortReads(all)
	return all, err
}

// sortReads sorts reads by time. If a crawler read several versions in the same second, the newest version comes first.
func sortReads(list []Read) {
	slices.SortFunc(list, func(a, b Read) int {
		return cmp.Or(b.Last.Compare(a.Last), cmp.Compare(a.Crawler, b.Crawler), cmp.Compare(a.Host, b.Host), cmp.Compare(a.Identity, b.Identity),
			b.First.Compare(a.First), len(b.Number)-len(a.Number), cmp.Compare(b.Number, a.Number), cmp.Compare(a.Version, b.Version), cmp.Compare(a.Form, b.Form))
	})
}

// Crawler is a crawler that has sent requests.
type Crawler struct {
	Name, Category string
	First, Last    time.Time // rounded to the hour
}

// Crawlers returns the crawlers that have rows in the database, sorted by name.
func (r *Reader) Crawlers(ctx context.Context) ([]Crawler, error) {
	return list(ctx, r.db, func(c *Crawler) []any { return []any{&c.Name, &c.Category, (*seconds)(&c.First), (*seconds)(&c.Last)} },
		// The + in +c.text keeps SQLite from reading all texts in order.
		"SELECT c.text, k.text, first, last FROM crawlers JOIN strings AS c ON c.id = crawler JOIN strings AS k ON k.id = category ORDER BY +c.text")
}

// Delete removes all rows of a crawler or of a host. If both are given, it removes the rows of the crawler on the
// host. It also removes texts that no row refers to any more. The deleted data does not remain in the files, and the
// database becomes smaller.
func (s *Store) Delete(ctx context.Context, crawler, host string) error {
	if err := within(ctx, s.db, func(tx *sql.Tx) error {
		for _, table := range []string{"hours", "days", "path_hours", "path_days", "reads"} {
			if _, err := tx.ExecContext(ctx, "DELETE FROM "+table+" WHERE (? = '' OR crawler = (SELECT id FROM strings WHERE text = ?))"+
				" AND (? = '' OR host = (SELECT id FROM strings WHERE text = ?)) AND (? <> '' OR ? <> '')", crawler, crawler, host, host, crawler, host); err != nil {
				return err
			}
		}
		_, err := tx.ExecContext(ctx, "DELETE FROM documents WHERE host = ? AND ? <> '' AND ? = ''", host, host, crawler)
		return err
	}); err != nil {
		return err
	}
	if err := s.sweep(ctx); err != nil {
		return err
	}
	// Freed pages still contain the deleted data. VACUUM rewrites the file without these pages.
	_, err := s.db.ExecContext(ctx, "VACUUM; PRAGMA wal_checkpoint(TRUNCATE)")
	return err
}
