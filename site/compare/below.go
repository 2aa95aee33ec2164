// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"crypto/sha256"
	"slices"

	"github.com/robotspolicy/caddy-robots-policy/claim"
	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

// Unread is a host where search engines may lose something, because the host's own robots.txt is not known. The old
// policy allowed search engines to crawl some paths, and the new policy leaves the decision about these paths to the
// host's own robots.txt.
type Unread struct {
	Host     policy.Host // "" for hosts that no policy names
	Crawlers []string
}

func (u *Unread) gap() claim.Gap {
	g := claim.Gap{Name: GapUnread, Host: string(u.Host)}
	of, ask := "hosts that the policy does not name", "each host"
	if u.Host != "" {
		of, ask = string(u.Host), string(u.Host)
	}
	g.What = "the site's own robots.txt of " + of + " is not known. This file now decides whether " + crawlerNames(u.Crawlers, maxNames) + " may crawl paths that the new policy no longer allows"
	g.Close = "request /robots.txt of " + ask + " once, or give the file with --merge"
	return g
}

// maxFiles is the maximum number of different robots.txt files that a comparison uses as the policies' fallbacks on
// different hosts.
const maxFiles = 20

// closed is the strictest robots.txt that a site can have.
var closed = robotstxt.Parse([]byte("User-agent: *\nDisallow: /\n"))

// over compares both policies, each merged with the host's own robots.txt. Hosts with the same file are
// compared together. If the file of a host is not known, over compares the policies without a fallback, and also finds
// the losses that the strictest file could cause.
func over(old, now *site.Site, o Options) *Diff {
	below, of := o.Below, map[[sha256.Size]byte][]policy.Host{}
	var files []*robotstxt.File
	alone, unread := []policy.Host{}, []policy.Host{} // hosts without a file, and hosts whose file is not known
	for _, h := range hostsFor(old.Policy, now.Policy, o) {
		file, known := below(h.Example())
		if !known && h.Wildcard() {
			file, known = below("")
		}
		switch {
		case !known, file != nil && of[file.Sum] == nil && len(files) >= maxFiles:
			unread = append(unread, h)
		case file == nil:
			alone = append(alone, h)
		default:
			if of[file.Sum] == nil {
				files = append(files, file)
			}
			of[file.Sum] = append(of[file.Sum], h)
		}
	}
	o.Below, o.Hosts = nil, append(alone, unread...)
	d := Sites(old, now, o)
	for _, file := range files {
		o.Hosts = of[file.Sum]
		d.join(Sites(old.Told(file), now.Told(file), o))
	}
	for _, h := range unread {
		o.Hosts = []policy.Host{h}
		d.Losses.unread(h, Sites(old.Over(closed), now.Over(closed), o))
	}
	d.sort()
	return d
}

// join adds the changes and losses in o, a comparison on other hosts, to d.
func (d *Diff) join(o *Diff) {
	d.Changes = append(d.Changes, o.Changes...)
	d.RobotsTxt, d.Complete = d.RobotsTxt || o.RobotsTxt, d.Complete && o.Complete
	l := d.Losses
	l.Found, l.AI, l.whole = append(l.Found, o.Losses.Found...), append(l.AI, o.Losses.AI...), append(l.whole, o.Losses.whole...)
	l.Complete = l.Complete && o.Losses.Complete
}

// unread adds the host h to l.Unread if its own robots.txt, which is not known, could make search engines lose more
// than l.Found says. To find out, the policies were also compared with a fallback that disallows everything. strictest
// is the result of that comparison. Unread.Crawlers lists the search engines with losses that are only in strictest.
func (l *Losses) unread(h policy.Host, strictest *Diff) {
	u := Unread{Host: h}
	for _, f := range strictest.Losses.Found {
		same := func(o Found) bool {
			return o.Crawler == f.Crawler && o.Host == f.Host && o.Loss == f.Loss && o.Path.String() == f.Path.String()
		}
		if !slices.ContainsFunc(l.Found, same) && !slices.Contains(u.Crawlers, f.Crawler) {
			u.Crawlers = append(u.Crawlers, f.Crawler)
		}
	}
	if len(u.Crawlers) > 0 {
		crawlers.SortWellKnown(u.Crawlers)
		l.Unread = append(l.Unread, u)
	}
}
