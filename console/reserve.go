// SPDX-License-Identifier: Apache-2.0

package console

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/channels"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
	"github.com/robotspolicy/caddy-robots-policy/site"
	"github.com/robotspolicy/caddy-robots-policy/site/edit"
)

// reservation is a switch in the form for rights reservations.
type reservation struct {
	Name, Text string
	On         bool   // true if the draft has this reservation
	But        string // an exception to the reservation, or empty
	Stays      bool   // true if the reservation can be removed only in the text of the policy
}

// reservations returns the switches of the form for rights reservations. Each of the first two switches disallows a
// usage for everyone. The other switches are for the rights documents and signals that publish these reservations.
func reservations(s *site.Site, now time.Time) []reservation {
	registers := channels.Reserving()
	all := make([]reservation, 2, 2+len(registers))
	all[0] = reservation{Name: "train-ai", Text: "No AI may be trained with the site", Stays: true}
	all[1] = reservation{Name: "ai-use", Text: "No AI may use the site for its answers", Stays: true}
	for i, u := range []policy.Usage{policy.TrainAI, policy.AIUse} {
		all[i].On, all[i].But = reserved(s.Policy, u, now)
	}
	for _, ch := range registers {
		all = append(all, reservation{Name: ch.Key, Text: fmt.Sprintf("Publish the reservations with %s (%s)", ch.Name, ch.Where), On: ch.On(&s.Policy.Spec().Publish)})
	}
	return all
}

// maxReservedQueries limits the number of queries in the search for an exception to a reservation.
const maxReservedQueries = 100_000

// reserved reports whether the policy disallows the usage u in general, which means for a crawler, host and path that
// none of its rules names. The policy may still allow u in special cases, such as for one crawler or one host. The
// result but describes such an exception.
func reserved(p *policy.Policy, u policy.Usage, now time.Time) (on bool, but string) {
	q := policy.Query{Path: pathpattern.All.Example(), Usage: u, Now: now}
	if p.Decide(q).Verdict != policy.Disallowed {
		return false, ""
	}
	hosts, patterns := []policy.Host{""}, []pathpattern.Pattern{pathpattern.All}
	known := map[int]bool{p.HostKey(""): true}
	for i := range p.Spec().Rules {
		r := &p.Spec().Rules[i]
		for _, h := range r.Hosts {
			if key := p.HostKey(h.Example()); !known[key] {
				known[key] = true
				hosts = append(hosts, h)
			}
		}
		for _, s := range r.Statements {
			if (s.Usage == u || s.Usage == policy.Other) && !slices.Contains(patterns, s.Pattern) {
				patterns = append(patterns, s.Pattern)
			}
		}
	}
	asked := 0
	for _, host := range hosts {
		q.Host = host.Example()
		for _, class := range p.Classes(q.Host) {
			if q.Crawler = 0; len(class.Crawlers) > 0 {
				q.Crawler = class.Crawlers[0]
			}
			for _, purpose := range append([]string{""}, p.Spec().Purposes()...) {
				if q.Purposes = nil; purpose != "" {
					q.Purposes = []string{purpose}
				}
				for _, q.Identity = range p.Identities() {
					for _, pattern := range patterns {
						q.Path = pattern.Example()
						d := p.Decide(q)
						if asked++; d.Verdict != policy.Disallowed {
							return true, exception(p, &class, purpose, host, pattern, d.Rule)
						}
						if asked == maxReservedQueries {
							return true, "there may be exceptions, because the policy has too many rules to check all of them"
						}
					}
				}
			}
		}
	}
	return true, ""
}

// exception describes a case that a reservation does not cover. The case is a combination of crawlers, a purpose, a
// host and a path, and the policy does not disallow the usage in this case. The parameter by is the rule that allows
// the usage, or nil.
func exception(p *policy.Policy, class *policy.Class, purpose string, host policy.Host, pattern pathpattern.Pattern, by *policy.Rule) string {
	names := make([]string, 0, len(class.Crawlers))
	for _, id := range class.Crawlers {
		names = append(names, p.CrawlerInfo(id).Token)
	}
	path := pattern.String()
	if pattern.IsAll() {
		path = ""
	}
	var words []string
	for _, w := range [][2]string{{"for ", english.Some(names, 3)}, {"for the purpose ", purpose}, {"on ", string(host)}, {"in ", path}} {
		if w[1] != "" {
			words = append(words, w[0]+shorten(w[1]))
		}
	}
	text := "this use is allowed " + strings.Join(words, ", ")
	if len(words) == 0 {
		text = "this use is allowed for some clients, depending on their identity (verified, unverified or impostor)"
	}
	if by != nil {
		text += fmt.Sprintf(", by the rule on line %d", by.Pos.Line)
	}
	return text
}

// reserveIn applies the form for rights reservations to the draft.
func (v *view) reserveIn(d *changeData, get func(string) string) {
	s, _ := site.LoadWith(d.File, []byte(d.Text), policyfile.Options{Now: v.Now, Accepted: true})
	if s == nil {
		d.Decision.Problems = []string{"the draft has errors; correct them first"}
		return
	}
	for _, r := range reservations(s, v.Now) {
		what := "“" + r.Text + "”"
		switch on := get(r.Name) != ""; {
		case on == r.On || r.Stays && !on:
		case r.Stays:
			choice, err := edit.NewChoice("everyone", edit.Action("ask "+r.Name), "/", "", false)
			var made *edit.Result
			if err == nil {
				made, err = edit.Apply(d.File, d.Text, choice, v.Now)
			}
			d.put(what+": ", what+" does not apply to everyone", made, err)
		default:
			made, err := edit.Publish(d.File, d.Text, r.Name, on, v.Now)
			d.put(what+": ", what+" does not apply to everyone", made, err)
		}
	}
}
