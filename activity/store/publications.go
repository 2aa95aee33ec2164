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

// Publication is a version of a policy that was in force for some time, with the documents made from it; see
// activity.Publication.
type Publication struct {
	ID     string    // start of the ID, as in requests
	Number string    // see activity.Publication; if an earlier text is published again, it gets a new number
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

// Document is a robots.txt that a crawler received while a publication was in force.
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
	return publicationsIn(ctx, r, name)
}

func publicationsIn(ctx context.Context, e engine, name string) (all []Publication, err error) {
	var where []string
	if name != "" {
		where = append(where, "name = "+e.dialect().quote(name))
	}
	from := e.dialect().final + e.where(where...)
	err = e.query(ctx, "SELECT hash, version, name, max(policy), min(first) AS since, max(text) FROM versions"+from+
		" GROUP BY hash, version, name ORDER BY since DESC, length(version) DESC, version DESC", 6, func(f []string, n []int64) {
		all = append(all, Publication{ID: f[0], Number: f[1], Name: f[2], Policy: f[3], First: time.Unix(n[4], 0).UTC(), Text: f[5]})
	})
	if err != nil {
		return nil, err
	}
	var periods []period
	err = e.query(ctx, "SELECT hash, version, name, first, last FROM in_force"+from, 5, func(f []string, n []int64) {
		periods = append(periods, period{f[0], f[1], f[2], Period{time.Unix(n[3], 0).UTC(), time.Unix(n[4], 0).UTC()}})
	})
	addPeriods(all, periods)
	return all, err
}

// Documents returns the documents that crawlers received, the newest first.
func (r *Reader) Documents(ctx context.Context) ([]Document, error) { return documentsIn(ctx, r) }

func documentsIn(ctx context.Context, e engine) (all []Document, err error) {
	err = e.query(ctx, "SELECT version_hash, host, etag, min(first) AS since, max(text) FROM documents"+e.dialect().final+e.where()+
		" GROUP BY version_hash, host, etag ORDER BY since DESC, host, etag", 5, func(f []string, n []int64) {
		all = append(all, Document{Publication: f[0], Host: f[1], Version: f[2], First: time.Unix(n[3], 0).UTC(), Text: f[4]})
	})
	return all, err
}

// PolicyVersions returns the versions of the policies from a source.
func (r *Reader) PolicyVersions(ctx context.Context, name string) ([]string, error) {
	return versionsIn(ctx, r, name)
}

func versionsIn(ctx context.Context, e engine, name string) ([]string, error) {
	all, err := publicationsIn(ctx, e, name)
	versions := make([]string, len(all))
	for i := range all {
		versions[i] = all[i].Policy
	}
	return versions, err
}

// Read records that a crawler with an identity read a version of a host's robots.txt.
type Read struct {
	readKey
	First, Last time.Time
	Requests    int64
}

// Label returns the name, such as v3, of the publication that was in force when the crawler read the robots.txt. If
// that publication is not known, it returns the version of the robots.txt.
func (r *Read) Label() string {
	if r.Publication == "" {
		return fmt.Sprintf("%.8s", r.Version)
	}
	return activity.Label(r.Publication, r.Number)
}

// Reads returns the reads of robots.txt by crawlers, the latest first.
func (r *Reader) Reads(ctx context.Context) ([]Read, error) { return readsIn(ctx, r) }

func readsIn(ctx context.Context, e engine) (all []Read, err error) {
	d := e.dialect()
	err = e.query(ctx, "SELECT "+d.textsOf(readTexts)+", min(first), max(last), sum(requests) FROM reads"+d.final+e.where()+" GROUP BY "+readTexts, 10, func(f []string, n []int64) {
		all = append(all, Read{readKey{Host: f[0], Crawler: f[1], Identity: f[2], Version: f[3], Form: f[4], Publication: f[5], Number: f[6]}, time.Unix(n[7], 0).UTC(), time.Unix(n[8], 0).UTC(), n[9]})
	})
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
func (r *Reader) Crawlers(ctx context.Context) ([]Crawler, error) { return crawlersIn(ctx, r) }

func crawlersIn(ctx context.Context, e engine) (all []Crawler, err error) {
	d := e.dialect()
	err = e.query(ctx, "SELECT "+fmt.Sprintf(d.text, "crawler")+" AS name, "+fmt.Sprintf(d.text, "category")+", since, until FROM "+fmt.Sprintf(d.crawlers, e.where())+" ORDER BY name", 4, func(f []string, n []int64) {
		all = append(all, Crawler{f[0], f[1], time.Unix(n[2], 0).UTC(), time.Unix(n[3], 0).UTC()})
	})
	return all, err
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
