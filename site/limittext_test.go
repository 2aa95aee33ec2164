// SPDX-License-Identifier: Apache-2.0

package site_test

import "testing"

func TestLimitsText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"  - for: everyone\n    limit: 60/m\n":                                                   "  limited:       everyone, except search engines, to 60/m\n",
		"  - for: everyone\n    limit: 60/m\n    intended: [limits-search]\n":                    "  limited:       everyone to 60/m\n",
		"  - for: [GPTBot, CCBot, AhrefsBot, DotBot]\n    hosts: [a.example]\n    limit: 60/m\n": "  limited:       GPTBot, CCBot, AhrefsBot and 1 more on a.example to 60/m\n",
		"  - for: AhrefsBot\n    limit: 60/m\n    enforce: log\n":                                "  limited:       AhrefsBot to 60/m (in dry run)\n",
		"  - for: AhrefsBot\n    limit: 60/m\n    enforce: off\n":                                "",
		"  - for: AhrefsBot\n    crawl-delay: 5\n":                                               "",
		"  - for: AhrefsBot\n    crawl-delay: 5\n    enforce: block\n":                           "  limited:       AhrefsBot to one in 5s\n",
		"  - for: AhrefsBot\n    disallow: {crawl: /}\n    enforce: block\n":                     "",
		"  - for: AhrefsBot\n    crawl-delay: 5\n    limit: 9/s\n    enforce: log\n":             "  limited:       AhrefsBot to 9/s (in dry run)\n  limited:       AhrefsBot to one in 5s (in dry run)\n",
	} {
		if got := load(t, "version: 1\nrules:\n"+text).LimitsText(); got != want {
			t.Errorf("%s says\n%s, want\n%s", text, got, want)
		}
	}
}
