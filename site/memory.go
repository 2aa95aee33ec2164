// SPDX-License-Identifier: Apache-2.0

package site

// Memory remembers crawlers while the versions of a policy follow each other. It is safe for concurrent use.
type Memory struct {
	Limiter  Limiter
	Readings Readings // who has fetched which robots.txt
}

// NewMemory returns an empty memory, for the policy of one host or for one of all hosts.
func NewMemory(ofOneHost bool) *Memory {
	m := &Memory{Readings: Readings{maxReaders: maxReaders, maxSites: maxReadSites}}
	if ofOneHost {
		m.Readings.maxReaders, m.Readings.maxSites = maxReadersOfOneHost, maxSitesOfOneHost
	}
	return m
}
