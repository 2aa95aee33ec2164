// SPDX-License-Identifier: Apache-2.0

package crawlers

import (
	"fmt"
	"net/url"
	"strings"
)

// SignerPrefix is the first part of the token of a client that signs its requests. The rest is the host of the client's
// keys: for example, the token of the client with keys at browserbase.com is signed:browserbase.com.
const SignerPrefix = "signed:"

// IsSigner reports whether a token names a signer.
func IsSigner(token string) bool {
	return len(token) > len(SignerPrefix) && strings.EqualFold(token[:len(SignerPrefix)], SignerPrefix)
}

// IsSigner reports whether the crawler is known only by its signature. The token of such a crawler does not occur in
// User-Agents or in robots.txt.
func (c *Crawler) IsSigner() bool { return IsSigner(c.Token) }

// CheckSigner returns an error if the token of a signer is not valid.
func CheckSigner(token string) error {
	host := token[len(SignerPrefix):]
	u, err := url.Parse("https://" + host)
	if err != nil || u.Host != host || u.Hostname() == "" || u.User != nil || strings.ContainsAny(host, "*_") {
		return fmt.Errorf("%q is not a host; write the host that publishes the keys, such as signed:browserbase.com", host)
	}
	return nil
}

// SignerRow returns the row for a signer. Crawlers of the catalog may have a key directory at the signer's host, or at
// that host with the prefix "www.". In this case, the row contains the facts that these crawlers share. Otherwise the
// row expects the keys at the well-known path.
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
			// If one host has several directories, only the well-known directory is used.
			return Row{Token: row.Token, WebBotAuth: &directory}
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
