// SPDX-License-Identifier: Apache-2.0

package crawlers

import "strings"

// applePreview ends the User-Agent of Apple Messages, after that of Safari. It names
// three crawlers whose previews sites already support.
const applePreview = " facebookexternalhit/1.1 Facebot Twitterbot/1.0"

// OnDevicePreview reports whether the User-Agent lines of a request are those of an app
// that fetches link previews from its user's own device: Apple Messages, WhatsApp, and
// apps that call themselves WhatsApp to the same end. The addresses of such requests
// are the users', so they prove nothing about the crawlers in the User-Agent.
func OnDevicePreview(userAgents []string) bool {
	if len(userAgents) != 1 {
		return false
	}
	ua := userAgents[0]
	return strings.HasPrefix(ua, "WhatsApp/") ||
		strings.HasPrefix(ua, "Mozilla/5.0 (") && strings.Contains(ua, " AppleWebKit/") && strings.HasSuffix(ua, applePreview)
}
