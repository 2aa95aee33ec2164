// SPDX-License-Identifier: Apache-2.0

package site

import (
	"net/http"
	"sync"

	"github.com/robotspolicy/caddy-robots-policy/effect"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/rights"
	"github.com/robotspolicy/caddy-robots-policy/rights/rsl"
	"github.com/robotspolicy/caddy-robots-policy/rights/tdmrep"
)

type registers struct {
	effect.Projection
	mu     sync.Mutex
	byHost map[int]*hostRights // by Policy.HostKey, of which there are as many as hosts in rules
}

type hostRights struct {
	TDMRep *tdmrep.File     // nil: off, or nothing is stated
	tdmrep *rights.Document // of TDMRep
	rsl    *rights.Document // nil: off, or nothing is stated
}

func (r *registers) of(host string) *hostRights {
	key := r.Exact.HostKey(host)
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.byHost[key]
	if h == nil {
		h = r.build(host)
		r.byHost[key] = h
	}
	return h
}

func (r *registers) build(host string) *hostRights {
	h := &hostRights{}
	spec := r.Exact.Spec()
	if spec.Publish.TDMRep == policy.Off && spec.Publish.RSL == "" {
		return h
	}
	view := rights.NewView(r.Exact, host)
	if spec.Publish.TDMRep != policy.Off {
		if file, _ := tdmrep.New(view, spec.Rights.TDMPolicy); len(file.Rules) > 0 {
			h.TDMRep, h.tdmrep = file, file.Document()
		}
	}
	if spec.Publish.RSL != "" {
		h.rsl, _ = rsl.New(view, &spec.Rights)
	}
	return h
}

// TDMRep returns the policy's tdmrep.json for a host, as rules and as it is served; nil if there is none.
func (s *Site) TDMRep(host string) (*tdmrep.File, *rights.Document) {
	h := s.registers.of(host)
	return h.TDMRep, h.tdmrep
}

// RSL returns the policy's RSL document for a host, nil if there is none.
func (s *Site) RSL(host string) *rights.Document { return s.registers.of(host).rsl }

// RegisterPath returns the path of a register's document that a request target is for,
// however it is encoded; "" for none. Such a document need not exist.
func (s *Site) RegisterPath(t *Target) string {
	publish := &s.File.Spec.Publish
	switch name := t.Name(); {
	case publish.TDMRep != policy.Off && name == tdmrep.Path, publish.RSL != "" && name == publish.RSL:
		return name
	}
	return ""
}

// LicenseLink is the Link field that names the license on a host; "" for none.
func (s *Site) LicenseLink(host string) string { return s.registers.link(host) }

// Rights is what the response fields and meta tags of registers say about some paths of a host.
type Rights struct {
	TDMRep tdmrep.Declaration
	Link   string // the value of a Link field; "" for none
}

// Apply merges the fields with what the header of a response already says.
func (r *Rights) Apply(h http.Header) {
	if r == nil {
		return
	}
	r.TDMRep.Apply(h)
	if r.Link != "" {
		rsl.ApplyLink(h, r.Link)
	}
}

// rightsOf is what applies to any of the hosts and paths of a target; nil for nothing.
func (r *registers) rightsOf(t effect.PolicyTarget) *Rights {
	var all Rights
	if r.Exact.Spec().Publish.TDMRep != policy.Off {
		all.TDMRep = r.declared(t)
	}
	all.Link = r.link(t.Host)
	if all == (Rights{}) {
		return nil
	}
	return &all
}

func (r *registers) declared(t effect.PolicyTarget) (all tdmrep.Declaration) {
	if t.Long {
		for host := range t.Hosts {
			all = all.Merge(declaredAnywhere(r.Exact, host))
		}
		return all
	}
	for p, q := range r.Queries(t, policy.Query{}) {
		one := tdmrep.Of(rights.ForEveryone(p.Policy, q), r.Exact.Spec().Rights.TDMPolicy)
		if one.Reservation == tdmrep.Reserved || !p.AnyCase {
			all = all.Merge(one)
		}
	}
	return all
}

func (r *registers) link(host string) string {
	publish := &r.Exact.Spec().Publish
	switch {
	case publish.License != "":
		return rsl.Link(publish.License)
	case publish.RSL != "" && r.of(host).rsl != nil:
		return rsl.Link(publish.RSL)
	}
	return ""
}
