// SPDX-License-Identifier: Apache-2.0

package source

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
)

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
