// SPDX-License-Identifier: Apache-2.0

package crawlers

import (
	"fmt"
	"net/url"
	"strings"
)

// SignerPrefix begins the name of a client that signs requests with the keys of a host, such as
// signed:browserbase.com.
const SignerPrefix = "signed:"

// IsSigner reports whether a token names a signer.
func IsSigner(token string) bool {
	return len(token) > len(SignerPrefix) && strings.EqualFold(token[:len(SignerPrefix)], SignerPrefix)
}

// IsSigner reports whether the crawler is known by its signature alone: no User-Agent and
// no robots.txt has its token.
func (c *Crawler) IsSigner() bool { return IsSigner(c.Token) }

// CheckSigner returns what is wrong with the token of a signer.
func CheckSigner(token string) error {
	host := token[len(SignerPrefix):]
	u, err := url.Parse("https://" + host)
	if err != nil || u.Host != host || u.Hostname() == "" || u.User != nil || strings.ContainsAny(host, "*_") {
		return fmt.Errorf("%q is not a host; write the host that publishes the keys, such as signed:browserbase.com", host)
	}
	return nil
}

// SignerRow is the row of a signer. The crawlers whose key directory the catalog has at
// its host, or at www. before it, lend it what they have in common. A host of which the
// catalog has none publishes its keys at the well-known path.
func (c *Catalog) SignerRow(token string) Row {
	host := strings.ToLower(token[len(SignerPrefix):])
	directory := "https://" + host
	row := Row{Token: SignerPrefix + host, WebBotAuth: &directory}
	var known []*Crawler
	for _, name := range []string{host, "www." + host} {
		known = c.filter(func(cr *Crawler) bool {
			u, err := url.Parse(cr.Verification.WebBotAuth)
			return err == nil && u.Host == name && !cr.IsSigner()
		})
		if len(known) > 0 {
			break
		}
	}
	for i, cr := range known {
		if cr.Verification.WebBotAuth != known[0].Verification.WebBotAuth {
			return Row{Token: row.Token, WebBotAuth: &directory} // several at one host: only its own counts
		}
		switch {
		case i == 0:
			row.Category, row.Operator, row.Follows = cr.Category, cr.Operator, []string{cr.Token}
			continue
		case cr.Category != row.Category:
			row.Category = ""
		}
		if row.Follows = nil; cr.Operator != row.Operator {
			row.Operator = ""
		}
	}
	if len(known) > 0 {
		directory = known[0].Verification.WebBotAuth
	}
	return row
}
