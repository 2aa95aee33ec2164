// SPDX-License-Identifier: Apache-2.0

package site

import (
	"net/http"
	"slices"
	"sync"

	"github.com/robotspolicy/caddy-robots-policy/channels"
	"github.com/robotspolicy/caddy-robots-policy/effect"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/rights"
)

// registers caches the documents of channels.
type registers struct {
	effect.Projection
	mu     sync.Mutex
	byHost map[int]map[*channels.Channel]*rights.Document // by Policy.HostKey, so that invented hosts share a key
}

// documents returns the documents of a host.
func (r *registers) documents(host string) map[*channels.Channel]*rights.Document {
	key := r.Exact.HostKey(host)
	r.mu.Lock()
	defer r.mu.Unlock()
	if all, ok := r.byHost[key]; ok {
		return all
	}
	all := map[*channels.Channel]*rights.Document{}
	var view *rights.View
	for _, ch := range channels.Documents() {
		if ch.File.Path(&r.Exact.Spec().Publish) == "" {
			continue
		}
		if view == nil {
			view = rights.NewView(r.Exact, host)
		}
		if doc := ch.File.New(view, r.Exact.Spec()); doc != nil {
			all[ch] = doc
		}
	}
	r.byHost[key] = all
	return all
}

// Document returns the policy's document of a channel for a host, or nil if there is none.
func (s *Site) Document(ch *channels.Channel, host string) *rights.Document {
	return s.registers.documents(host)[ch]
}

// ChannelAt returns the channel whose document is published at the path of the request target t. It recognizes all
// encodings of the path. It returns nil if there is no such channel. The policy may not have a document of the channel
// for the host of t.
func (s *Site) ChannelAt(t *Target) *channels.Channel {
	return channels.At(&s.File.Spec.Publish, t.Name())
}

// License returns the statement that names the license on a host, or nil.
func (s *Site) License(host string) rights.Declared {
	for _, ch := range channels.Table {
		if ch.Page != nil && ch.Page.License {
			return ch.Page.Declare(s.registers.question(ch, host, nil))
		}
	}
	return nil
}

// Declared is a channel's statement about some paths of a host.
type Declared struct {
	Channel *channels.Channel
	rights.Declared
	// Published is false if the policy does not publish the channel. In this case, the statement only applies to
	// responses that already have fields of the channel, and makes these fields stricter.
	Published bool
}

// Declare merges the fields of all channels into the header of a response.
func (pg *Page) Declare(h http.Header) {
	for _, d := range pg.Declared {
		if d.Published || slices.ContainsFunc(d.Channel.Page.Fields, func(name string) bool { return len(h[name]) > 0 }) {
			d.Apply(h)
		}
	}
}

// published yields a page's statements in channels that the policy publishes.
func (pg *Page) published(yield func(Declared) bool) {
	for _, d := range pg.Declared {
		if d.Published && !yield(d) {
			return
		}
	}
}

func (r *registers) question(ch *channels.Channel, host string, everyone func() rights.Verdicts) channels.Question {
	return channels.Question{Spec: r.Exact.Spec(), Everyone: everyone, Document: r.documents(host)[ch]}
}

// declared lists the statements of channels that apply to at least one of the hosts and paths that the target t can
// mean.
func (r *registers) declared(t effect.PolicyTarget) (all []Declared) {
	everyone := sync.OnceValue(func() rights.Verdicts { return r.everyone(t) })
	for _, ch := range channels.Table {
		if ch.Page == nil {
			continue
		}
		if d, published := ch.Declare(r.question(ch, t.Host, everyone)); d != nil {
			all = append(all, Declared{ch, d, published})
		}
	}
	return all
}

// everyone returns the verdicts for everyone about a target.
func (r *registers) everyone(t effect.PolicyTarget) (all rights.Verdicts) {
	for p, q := range r.PageQueriesAt(t, policy.Query{}) {
		one := rights.ForEveryone(p.Policy, q).Verdicts()
		if p.AnyCase {
			one = one.Restrictions()
		}
		all = all.Combine(one)
	}
	return all
}
