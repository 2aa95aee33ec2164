// SPDX-License-Identifier: Apache-2.0

package site

// Memory holds the data about crawlers that a server keeps when it loads a new version of a policy. It is safe for
// concurrent use.
type Memory struct {
	Limiter  Limiter
	Readings Readings // the versions of robots.txt that crawlers have fetched
}

// NewMemory returns an empty memory. Set ofOneHost for a policy that is only for one host. The memory then remembers
// less, because there can be thousands of such policies.
func NewMemory(ofOneHost bool) *Memory {
	m := &Memory{Readings: Readings{maxReaders: maxReaders, maxSites: maxReadSites}}
	if ofOneHost {
		m.Readings.maxReaders, m.Readings.maxSites = maxReadersOfOneHost, maxSitesOfOneHost
	}
	return m
}
