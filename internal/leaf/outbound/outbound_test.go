// SPDX-License-Identifier: Apache-2.0

package outbound

import (
	"net/netip"
	"testing"
)

func TestPublicAddresses(t *testing.T) {
	for text, want := range map[string]bool{
		"192.0.2.1": false, "127.0.0.1": false, "10.1.2.3": false, "172.16.0.1": false, "192.168.1.1": false, "169.254.169.254": false,
		"100.64.0.1": false, "0.0.0.0": false, "255.255.255.255": false, "224.0.0.1": false, "198.18.0.1": false, "::1": false, "::": false,
		"fe80::1": false, "fc00::1": false, "fd12::1": false, "fec0::1": false, "ff02::1": false, "64:ff9b::a00:1": false, "2002:7f00:1::": false,
		"::7f00:1": false, "8.8.8.8": true, "1.1.1.1": true, "2606:4700::1111": true, "2a00:1450::1": true,
	} {
		if got := isPublic(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
	for _, address := range []string{"[::ffff:127.0.0.1]:443", "[::ffff:10.0.0.1]:443", "[fe80::1%eth0]:443", "invalid"} {
		if check(address, nil) == nil {
			t.Errorf("%s is allowed", address)
		}
	}
	if err := check("[::ffff:10.0.0.1]:443", []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24")}); err != nil {
		t.Error(err)
	}
}
