// SPDX-License-Identifier: Apache-2.0

package crawlers

import (
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/ascii"
)

// commonBrowsers holds one User-Agent, in lower case, for each of the most common browsers.
var commonBrowsers = lower(
	"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36 Edg/126.0.0.0",
	"Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:127.0) Gecko/20100101 Firefox/127.0",
	"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Safari/605.1.15",
	"Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) CriOS/126.0.6478.54 Mobile/15E148 Safari/604.1",
	"Mozilla/5.0 (iPad; CPU OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) FxiOS/127.0 Mobile/15E148 Safari/605.1.15",
	"Mozilla/5.0 (Linux; Android 14; K) AppleWebKit/537.36 (KHTML, like Gecko) SamsungBrowser/25.0 Chrome/121.0.0.0 Mobile Safari/537.36",
	"Mozilla/5.0 (X11; Ubuntu; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36 OPR/112.0.0.0",
	"Mozilla/5.0 (X11; CrOS x86_64 14541.0.0) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36",
	"Mozilla/5.0 (compatible; MSIE 10.0; Windows NT 6.2; Trident/6.0; .NET CLR 3.5)",
	"Opera/9.80 (Windows NT 6.1; WOW64) Presto/2.12.388 Version/12.18",
)

func lower(texts ...string) []string {
	for i, t := range texts {
		texts[i] = ascii.Lower(t)
	}
	return texts
}

// NamesBrowser reports whether one of the most common browsers has the given token in its User-Agent. If a crawler's
// pattern contained such a token, people would be recognized as this crawler.
func NamesBrowser(token string) bool {
	part := strings.TrimSuffix(ascii.Lower(token), "*")
	return slices.ContainsFunc(commonBrowsers, func(ua string) bool {
		if !strings.Contains(ua, part) {
			return false // for nearly all tokens, this saves the making of a Recognizer
		}
		_, ok := NewRecognizer([]Pattern{{Token: token}}).Recognize(ua)
		return ok
	})
}

// applePreview is the end of the User-Agent of Apple Messages. The beginning is like Safari's. The end contains the
// names of three crawlers, so that sites send Apple Messages the same data for link previews that they send to these
// crawlers.
const applePreview = " facebookexternalhit/1.1 Facebot Twitterbot/1.0"

// OnDevicePreview reports whether a request comes from an app that fetches a link preview on its user's own device.
// These apps are Apple Messages, WhatsApp, and apps that use the name WhatsApp in the User-Agent. Such a request comes
// from the user's IP address, which proves nothing about the crawlers in the User-Agent.
func OnDevicePreview(userAgents []string) bool {
	if len(userAgents) != 1 {
		return false
	}
	ua := userAgents[0]
	return strings.HasPrefix(ua, "WhatsApp/") ||
		strings.HasPrefix(ua, "Mozilla/5.0 (") && strings.Contains(ua, " AppleWebKit/") && strings.HasSuffix(ua, applePreview)
}
