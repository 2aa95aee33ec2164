// SPDX-License-Identifier: Apache-2.0

package policy

import "strings"

// Preamble is a text of the publisher's own, which stands as a comment at the start of
// robots.txt.
type Preamble struct {
	Host Host // "" for hosts for which there is no other
	Text string
}

// PreambleOf returns the text for a host, which may have a port: that of its name, else of
// the longest wildcard, else the one for all other hosts, and "" for none.
func (b *Publish) PreambleOf(host string) (text string) {
	name := NormalizeHost(host)
	longest := -1
	for _, p := range b.Preambles {
		h := string(p.Host)
		matches := h == "" || h == name || p.Host.Wildcard() && strings.HasSuffix(name, h[1:])
		if size := len(h); matches && (size > longest || h == name) {
			longest, text = size, p.Text
			if h == name && h != "" {
				return text
			}
		}
	}
	return text
}
