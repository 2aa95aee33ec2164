// SPDX-License-Identifier: Apache-2.0

package site

import (
	"net/url"

	"github.com/robotspolicy/caddy-robots-policy/effect"
)

// Target is the host and the path of a request, with all ways in which servers may read them; see [effect.Target].
type Target = effect.Target

// Client is a crawler that may have sent a request, with its identity.
type Client = effect.Client

// NewTarget returns the Target for the host and the path of a request. It does not allocate memory for ordinary
// requests.
func NewTarget(host, path string) Target { return effect.NewTarget(host, path) }

// PathOf returns the path and query of a request target, for [NewTarget]; see [effect.PathOf].
func PathOf(target string, u *url.URL) (path string, ok bool) { return effect.PathOf(target, u) }
