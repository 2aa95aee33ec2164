// SPDX-License-Identifier: Apache-2.0

package catalogstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
	"github.com/robotspolicy/caddy-robots-policy/site"
	"github.com/robotspolicy/caddy-robots-policy/site/compare"
	"github.com/robotspolicy/caddy-robots-policy/source"
)

// autoInterval is the time between fetches of the released catalog.
const autoInterval = 24 * time.Hour

// update fetches the released catalog. If this catalog is newer than the catalog in use, and the function Effects does
// not return an error for it, update writes it to Caddy's storage. Then all servers with this storage install the
// catalog.
func (w *Watcher) update(ctx context.Context) {
	w.updating.Lock()
	defer w.updating.Unlock()
	err := w.takeRelease(ctx)
	if ctx.Err() != nil {
		return
	}
	text := textOf(err)
	last.mu.Lock()
	news := text != last.status.Rejected
	last.status.Fetched, last.status.Rejected = time.Now().UTC(), text
	last.mu.Unlock()
	if err != nil && news {
		w.logger.Warn("the released catalog of crawlers was not installed; Caddy continues to use its current catalog", zap.String("from", w.address), zap.Error(err))
	}
	w.release.Report(err)
}

func (w *Watcher) takeRelease(ctx context.Context) error {
	data, err := Fetch(ctx, w.address)
	if err != nil {
		return err
	}
	text, err := Open(data)
	if err != nil {
		return err
	}
	next, err := crawlers.Parse("the released catalog", text)
	if err != nil {
		return err
	}
	before, _ := crawlers.Default() // the built-in catalog is valid
	if next.AsOf() == before.AsOf() {
		return nil
	}
	now := time.Now()
	if err := errors.Join(append(Guard(before, next, now), CheckDate(next, now))...); err != nil {
		return err
	}
	effects, err := Effects(before, next, w.running())
	if err != nil {
		return err
	}
	if err := Store(ctx, w.storage, text); err != nil {
		return err
	}
	added, removed := Changes(before, next)
	w.logger.Info("installed the released catalog of crawlers", zap.String("as_of", next.AsOf()), zap.Strings("added", added),
		zap.Strings("removed", removed), zap.Strings("policies", effects))
	w.check(ctx)
	return nil
}

// maxJudged limits how many policies are tested with a new catalog.
const maxJudged = 200

// Effects describes what a new catalog changes for the running policies. It returns one text for each policy with
// changes. It returns an error if a person must decide about the new catalog. This is the case if search engines lose
// something, if a crawler may do something new, or if it is impossible to find out what changes.
func Effects(before, after *crawlers.Catalog, running []*source.Snapshot) (effects []string, err error) {
	if len(running) > maxJudged {
		return nil, fmt.Errorf("there are %d running policies, but Caddy tests a new catalog with at most %d policies; %s", len(running), maxJudged, byHand)
	}
	var problems []error
	for _, s := range running {
		name := s.Site.File.Name
		if pin := s.Site.File.Spec.Catalog; pin != "" && pin != after.AsOf() {
			problems = append(problems, fmt.Errorf("%s requires the catalog of %s. Write \"catalog: %s\" in this policy, or delete the key catalog; %s", name, pin, after.AsOf(), byHand))
			continue
		}
		d, err := Compare(name, []byte(s.Text), before, after)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		if against := objection(d); against != "" {
			problems = append(problems, fmt.Errorf("%s: %s; %s", name, against, byHand))
		}
		if !d.Empty() {
			var b strings.Builder
			if err := d.WriteText(&b); err != nil {
				return nil, err
			}
			effects = append(effects, name+": "+b.String())
		}
	}
	return effects, errors.Join(problems...)
}

const byHand = "compare the catalogs with `caddy robots-policy diff --catalog`, and install the new one with `caddy robots-policy crawlers update`"

// Compare compares the decisions of a policy under two catalogs.
func Compare(name string, text []byte, before, after *crawlers.Catalog) (*compare.Diff, error) {
	var sites [2]*site.Site
	for i, c := range []*crawlers.Catalog{before, after} {
		s, ds := site.LoadWith(name, text, policyfile.Options{Catalog: c, Accepted: true})
		if s == nil {
			return nil, fmt.Errorf("%s is not valid with the catalog of %s: %s", name, c.AsOf(), ds.Error())
		}
		sites[i] = s
	}
	return compare.Sites(sites[0], sites[1], compare.Options{}), nil
}

// objection returns the reason why a person must decide about a new catalog, or "" if there is none.
func objection(d *compare.Diff) string {
	switch {
	case !d.Complete || !d.Losses.Complete || len(d.Losses.Reverified) > 0:
		return "it cannot be judged whether search engines would lose something"
	case len(d.Losses.Found) > 0:
		return d.Losses.Found[0].Crawler + " would lose something"
	}
	for _, c := range d.Changes {
		if c.Effect == compare.Gain || c.Effect == compare.Edge && c.New != "block" {
			return fmt.Sprintf("something that is disallowed would become allowed for %s", strings.Join(c.Crawlers[:min(len(c.Crawlers), 5)], ", "))
		}
	}
	return ""
}
