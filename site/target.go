// SPDX-License-Identifier: Apache-2.0

package site

import (
	"net/url"

	"github.com/robotspolicy/caddy-robots-policy/effect"
)

// Target is the host and the path of a request, in every way in which servers may read them; see [effect.Target].
type Target = effect.Target

// Client is a crawler that a request may be from, with its identity.
type Client = effect.Client

// NewTarget reads the host and the target of a request as it was sent. It does not allocate for ordinary requests.
func NewTarget(host, path string) Target { return effect.NewTarget(host, path) }

// PathOf returns the path and query of a request target, for [NewTarget]; see [effect.PathOf].
func PathOf(target string, u *url.URL) (path string, ok bool) { return effect.PathOf(target, u) }
