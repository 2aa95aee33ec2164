// SPDX-License-Identifier: Apache-2.0

package console

import (
	"net/http"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/policies"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/site"
	"github.com/robotspolicy/caddy-robots-policy/source"
)

// running is a policy that the server applies.
type running struct {
	*source.Snapshot
	Name     string
	document *source.Document // nil for a file that belongs to one host
	below    site.Below
	first    bool // true if this is an empty policy, because no policy has been published yet
}

// Spec returns the parsed policy.
func (p *running) Spec() *policy.Spec { return p.Site.Policy.Spec() }

// Version returns the policy's version ID. Recorded requests contain this ID.
func (p *running) Version() string { return p.SHA256[:12] }

// File returns the file name of the policy's source, without folders.
func (p *running) File() string {
	return p.Name[strings.LastIndexAny(p.Name, "/:")+1:]
}

// choose returns the policy that a page shows. This is the policy that the request names, otherwise the policy for the
// host that the request names, otherwise the first policy.
func (v *view) choose() (*running, error) {
	name := v.q.Get("policy")
	documents := policies.Pool.Documents()
	if v.may != nil { // people cannot choose a policy on the pages of a site
		name = ""
	}
	hosts := policies.Pool.AllHosts()
	if name != "" {
		if i := slices.IndexFunc(documents, func(d *source.Document) bool { return d.Name == name }); i >= 0 {
			return ofDocument(documents[i]), nil
		}
		if slices.ContainsFunc(policies.Pool.Waiting(), func(d *source.Document) bool { return d.Name == name }) {
			return nil, nil
		}
		if !slices.ContainsFunc(hosts, func(h *source.Hosts) bool { return h.Name() == name }) {
			return nil, failed(http.StatusNotFound, "no site uses a policy %q", name)
		}
	}
	host := v.Host
	if host == "" && len(v.may) == 1 {
		host = v.may[0]
	}
	for _, h := range hosts {
		if host == "" || name != "" && name != h.Name() {
			continue
		}
		if s, err := h.Get(v.ctx, host); err == nil && s != nil {
			return &running{Snapshot: s, Name: h.Name(), below: h.Upstream()}, nil
		}
	}
	if len(documents) == 0 {
		return nil, nil
	}
	for _, d := range documents {
		if host != "" && namesHost(d.Current(), host) {
			return ofDocument(d), nil
		}
	}
	if v.may != nil && len(documents)+len(policies.Pool.Waiting()) > 1 {
		return nil, failed(http.StatusNotFound, "this server uses several policies, and none of them names this host; the console in Caddy's global options shows all of them")
	}
	return ofDocument(documents[0]), nil
}

func ofDocument(d *source.Document) *running {
	return &running{Snapshot: d.Current(), Name: d.Name, document: d, below: d.Upstream()}
}

// waiting returns an empty policy if a policy in Caddy's storage does not have a version yet, so that the pages can
// offer to publish the first version. It returns nil if all policies have a version. On the pages of a site, it also
// returns nil, because a first version decides about all hosts.
func (v *view) waiting() (*running, error) {
	if v.may != nil {
		return nil, nil
	}
	for _, d := range policies.Pool.Waiting() {
		if name := v.q.Get("policy"); name != "" && name != d.Name {
			continue
		}
		s, err := source.Compile(d.Name, []byte("version: 1\n"))
		if err != nil {
			return nil, err
		}
		s.Text, s.SHA256 = "", ""
		return &running{Snapshot: s, Name: d.Name, document: d, first: true}, nil
	}
	return nil, nil
}

// namesHost reports whether a rule of a policy names a host.
func namesHost(s *source.Snapshot, host string) bool {
	return slices.ContainsFunc(s.Site.Policy.Spec().Rules, func(r policy.Rule) bool {
		return slices.ContainsFunc(r.Hosts, func(h policy.Host) bool { return h.Covers(host) })
	})
}

// showsText reports whether the text of the policy may be shown.
func (v *view) showsText() bool {
	if v.Running == nil {
		return false
	}
	return v.may == nil || v.onlyNames(v.Running.Spec())
}

// onlyNames reports whether the rules of a policy name only hosts that the person may see. Rules without hosts are
// accepted, because they do not name other hosts.
func (v *view) onlyNames(spec *policy.Spec) bool {
	return !slices.ContainsFunc(spec.Rules, func(r policy.Rule) bool {
		return slices.ContainsFunc(r.Hosts, func(h policy.Host) bool { return !slices.Contains(v.may, string(h)) })
	})
}
