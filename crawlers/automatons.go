// SPDX-License-Identifier: Apache-2.0

package crawlers

import (
	"cmp"
	"strings"
	"sync"
)

// automatons are names, one a line, of programs that say in no other way that they are
// automated: services that call a site for their customers, tools, and crawlers of which
// nothing else is known.
const automatons = `Adventurer
AHC
Amazon CloudFront
ApacheBench
AppSiteAssociation
BlackDuck-FD
Blackboard Safeassign
Bling ERP
BotPoke
BW
Chrome Privacy Preserving Prefetch Proxy
Claude-Code
cloudflare-csup
CloudWatchSynthetics
code-review-sourcing
CookieReports.com
Corporama matcher
crusty
CustomAsyncHttpClient
Determ
Disqus
Download Ninja
EasyScan
ec2linkfinder
Elastic/Synthetics
eMoney Advisor
ExodusMovement
FastProbe
Feed Image Audit
Ghost Inspector
GIFTEDVISITOR SCAN
gobuster
GoPay
Hatena::Scissors
http_get
httpunit
ImageMind
Instaparser
Integromat
Jersey
Jetty
jina-reader
Jumio
Klaviyo
LegalMonster
Magellan
magicsearchdev
Make/production
make.com
Metorik API Client
mirrorweb.com
Mnogosearch-*
Nava
NetAPI
NetLyzer
New Relic Synthetics
New York Times Newsgathering
newspaper
NING
Omnisend
OneTrust
opencode
opencode-smartfetch
OutsellURLValidator
PageFreezer
Pcore-HTTP
Potions
Prerender
Probely
PS_Daily
Reelevant
remove.bg
Request-Promise
Retool
reward-gateway
Robozilla
Salesforce.com
SendGrid Event API
SeopultContentAnalyzer
SFDC-Callout
sfFeedReader
ShopwareClient
Sitebulb
Skyvern
Snipcart
solarwinds-observability
SparkPost
SparkShipping
Splunk Synthetics
Stape
StatusCake_Pagespeed_Indev
TagInspector
Termly
Traackr.com
Trellis-Services
Trustly
TwilioProxy
Upflow
vercel-screenshot
vercelflags
verceltracing
VisualMonitoring
Web Screen Service
Webflow 1.0 - Site Screenshot
WebsiteMetadataRetriever
WJHRO
WordPress.com mshots
YokoyGroupAG
Zabbix
Zapier`

var recognizeAutomatons = sync.OnceValues(func() (*Recognizer, []string) {
	names := strings.Split(automatons, "\n")
	patterns := make([]Pattern, len(names))
	for i, name := range names {
		patterns[i] = Pattern{name, i}
	}
	return NewRecognizer(patterns), names
})

// automaton returns which of the automatons a User-Agent names, or its first product if
// another word says that a program calls by itself.
func automaton(ua string) (name string, ok bool) {
	for _, word := range []string{"webhook", "-hook", "nutch-"} {
		if strings.Contains(strings.ToLower(ua), word) {
			return cmp.Or(product(ua), "(unnamed)"), true
		}
	}
	r, names := recognizeAutomatons()
	i, ok := r.Recognize(ua)
	if !ok {
		return "", false
	}
	return strings.TrimRight(names[i], "-*"), true
}
