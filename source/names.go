// SPDX-License-Identifier: Apache-2.0

package source

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"slices"
	"strings"
)

const (
	// StoragePrefix is what the name of a policy in Caddy's storage begins with.
	StoragePrefix = "storage:"

	// LastGood is where in a storage the last known good policies are. No
	// policy can be published there.
	LastGood = "robots_policy/last_good"

	// Catalogue is where the catalogue of crawlers is. No policy can be published there.
	Catalogue = "robots_policy/crawlers.yaml"
)

// caddysOwn is what Caddy and CertMagic keep at the top of a storage.
var caddysOwn = []string{"acme", "certificates", "ech", "instance.uuid", "keys", "last_clean.json", "locks", "ocsp", "pki", "rate_limit"}

// StorageKey returns the key that a policy's name gives. Keys that lead out of the
// storage, and those under which Caddy keeps other things, are errors; upper and
// lower case are the same there, as they are for some file systems.
func StorageKey(name string) (string, error) {
	key := strings.TrimPrefix(name, StoragePrefix)
	if !fs.ValidPath(key) || key == "." || strings.ContainsAny(key, "\\\x00") {
		return "", fmt.Errorf("invalid key %q: must be a path such as robots_policy/site.yaml, without . or .. between its slashes", key)
	}
	folded := strings.ToLower(key)
	first, _, _ := strings.Cut(folded, "/")
	if slices.Contains(caddysOwn, first) || strings.HasPrefix(folded+"/", LastGood+"/") || folded == Catalogue {
		return "", fmt.Errorf("invalid key %q: Caddy stores other data there; use a key such as robots_policy/site.yaml", key)
	}
	return key, nil
}

// IsWebAddress reports whether a policy's name is an address on the web.
func IsWebAddress(name string) bool {
	return strings.HasPrefix(name, "https://") || strings.HasPrefix(name, "http://")
}

// WebAddress reads the address of a policy on the web. Plain HTTP is for this
// machine only: anyone on the network path could change the policy. An address with a
// password is an error.
func WebAddress(name string) (*url.URL, error) {
	u, err := url.Parse(name)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the policy's address: %w", err)
	case u.Host == "":
		return nil, fmt.Errorf("%q names no server", name)
	case u.User != nil:
		return nil, errors.New("the address holds a password, which logs and the admin API would show")
	case u.Scheme == "http" && !loopback(u.Hostname()):
		return nil, fmt.Errorf("%q is not https, so anyone on the network path could change the policy", name)
	}
	return u, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
