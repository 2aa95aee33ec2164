// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"net/http"
	"net/netip"
	"path"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/crawlers/webbotauth"
)

// Proof says by what [Verifier.Identify] verified a request, so that others can check it: a
// key, an address list and its date, or the suffix of the host name, which as a whole would
// contain the address. It is empty if that is not known any more.
func (v *Verifier) Proof(s Server, r *http.Request, facts crawlers.Verification) string {
	if v == nil {
		return ""
	}
	if facts.WebBotAuth != "" && v.engine.signatures != nil && webbotauth.Signed(r.Header) {
		if result := v.checkSignature(s, r, facts.WebBotAuth); result.Status == webbotauth.Verified {
			return "signed by the key " + result.KeyID + " of " + facts.WebBotAuth
		}
	}
	addr, err := netip.ParseAddr(s.ClientIP(r))
	if err != nil {
		return ""
	}
	asked, _ := v.methods.askable(facts)
	switch result := v.engine.verifier.Check(canceledCtx, asked, addr); result.By {
	case "address-list":
		return "address on the list " + result.Evidence + asOf(result.Evidence, v.engine.lists.Status())
	case "reverse-dns":
		for _, pattern := range facts.ReverseDNS {
			if ok, _ := path.Match("*"+pattern, "."+result.Evidence); ok {
				return "host name under " + strings.TrimPrefix(pattern, ".") + ", which resolves back"
			}
		}
	}
	return ""
}
