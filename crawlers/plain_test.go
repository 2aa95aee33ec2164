// SPDX-License-Identifier: Apache-2.0

package crawlers

import "testing"

// A name is recognized even if it is disguised with look-alike or invisible characters. The header is not recognized as
// another crawler.
func TestDisguisedNames(t *testing.T) {
	t.Parallel()
	c := defaultCatalog(t)
	r := NewRecognizer(c.Patterns())
	for ua, want := range map[string]string{
		"<GPTBot/1.2>": "GPTBot",
		"*GPTBot*":     "GPTBot",
		"a=GPTBot":     "GPTBot",
		"Mozilla/5.0 (+https://example.com/?a=GPTBot)": "", // the name is in a URL
		"GPTBot1.2":                                  "GPTBot",
		"Mozilla/5.0 (compatible; GPTBot2.10)":       "GPTBot",
		"GPТBot/1.0":                                 "GPTBot", // a Cyrillic T
		"ＧＰＴＢｏｔ／１.０":                                 "GPTBot",
		"GPT\u200bBot/1.0":                           "GPTBot",
		"Mozilla/5.0\u00a0GPTBot/1.0":                "GPTBot",
		"\xa0GPTBot":                                 "GPTBot",
		"\xe9GPTBot":                                 "GPTBot",
		"écran;GPTBot":                               "GPTBot",
		"Claude‑User/1.0":                            "Claude-User", // a character that looks like a hyphen
		"IFTTT/7.1 CFNetwork/1496.0.7 Darwin/23.5.0": "",
		"IFTTT/7.1 GPTBot/1.0 CFNetwork/1496.0.7 Darwin/23.5": "GPTBot",
		"IFTTT/7.1 CFNetwork/1496.0.7":                        "IFTTT",
		"IFTTT":                                               "IFTTT",
		"NotGPTBot":                                           "",
		"NotGPTBot1.2":                                        "",
		"GPTBot1":                                             "",
		"GPTBot1.x":                                           "",
		"GPTBott/1.0":                                         "",
		"<NotGPTBot/1.2>":                                     "",
		"GPTВоt-Checker":                                      "",
		"GPTB0t/1.0":                                          "", // from here on: disguises that the Recognizer does not detect
		"GPTBöt/1.0":                                          "",
		"𝐆𝐏𝐓𝐁𝐨𝐭/1.0":                                          "",
		"GPT Bot/1.0":                                         "",
	} {
		got := ""
		if i, ok := r.Recognize(ua); ok {
			got = c.At(i).Token
		}
		each := r.RecognizeEach(nil, []string{ua})
		if got != want || len(each) != 0 != (want != "") || len(each) == 1 && c.At(each[0]).Token != want {
			t.Errorf("%q is %q, of each %v; want %q", ua, got, each, want)
		}
	}
}
