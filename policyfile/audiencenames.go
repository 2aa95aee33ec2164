// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"go.yaml.in/yaml/v3"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// Names says which names can stand for crawlers in a policy file. It is for programs
// that write policy files, and not safe for concurrent use.
type Names struct {
	catalogue *crawlers.Catalogue
	known     *nameIndex
}

// NewNames uses the built-in catalogue.
func NewNames() (*Names, error) {
	c, err := crawlers.Default()
	if err != nil {
		return nil, err
	}
	return &Names{catalogue: c}, nil
}

// Check reports whether a name can be a crawler's under for, and whether it must be
// listed under crawlers, as it would be a word for a group of crawlers otherwise.
func (ns *Names) Check(name string) (valid, listed bool) {
	p := &parser{spec: &policy.Spec{}, skip: map[*yaml.Node]bool{}, keys: map[string]bool{}, base: ns.catalogue, catalogue: ns.catalogue, names: ns.known}
	if policy.ParseAudience(name).Kind != policy.ForToken {
		return false, false
	}
	if _, ok := ns.catalogue.Lookup(name); !ok {
		near, _ := p.known().group(name)
		ns.known = p.names
		if listed = near != ""; listed {
			// As it is checked where crawlers are listed.
			return crawlers.CheckPattern(name) == nil && crawlers.ValidToken(name) && !crawlers.NamesBrowser(name), true
		}
	}
	return p.token(&yaml.Node{}, name) && p.errors == 0, false
}

// Crawlers are those of the catalogue.
func (ns *Names) Crawlers() (all []policy.Crawler) {
	for i := range ns.catalogue.Len() {
		all = append(all, convertOne(ns.catalogue.At(i)))
	}
	return all
}
