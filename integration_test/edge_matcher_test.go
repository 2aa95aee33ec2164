// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"strings"
	"testing"
)

// The matcher "crawler" can be used with any directive, both in its own syntax and in expressions.
func TestEdgeMatcher(t *testing.T) {
	s := start(t, slicePolicy, htmlUpstream(page("")), `
	@ai crawler category:ai-training OwnBot
	@preview expression crawler('category:preview') && !path('/open/*')
	@google crawler Googlebot verified
	@openai crawler operator:OpenAI
	header @ai X-AI yes
	header @preview X-Preview yes
	header @google X-Google yes
	header @openai X-OpenAI yes
	respond ok`)
	for _, c := range []struct{ agent, path, want string }{
		{gptBot, "/", "X-AI X-OpenAI"},
		{"OwnBot/1.0", "/", "X-AI"},
		{"Mozilla/5.0 (compatible; OAI-SearchBot/1.0; +https://openai.com/searchbot)", "/", "X-OpenAI"},
		{"facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)", "/", "X-Preview"},
		{"facebookexternalhit/1.1", "/open/x", ""},
		{googlebotAgent, "/", ""}, // a loopback address does not verify Googlebot
		{"Mozilla/5.0 (X11; Linux x86_64; rv:143.0) Gecko/20100101 Firefox/143.0", "/", ""},
		{"", "/", ""},
	} {
		r := s.get(c.path, "User-Agent", c.agent)
		var got []string
		for _, name := range []string{"X-Ai", "X-Preview", "X-Google", "X-Openai"} {
			if r.Header.Get(name) == "yes" {
				got = append(got, strings.NewReplacer("Ai", "AI", "Openai", "OpenAI").Replace(name))
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s %s: %v, want %s", c.agent, c.path, got, c.want)
		}
	}
}

// The word "unlisted" in the matcher stands for automated clients that are not in the catalog.
func TestEdgeMatcherUnknown(t *testing.T) {
	s := start(t, slicePolicy, htmlUpstream(page("")), `
	@unknown crawler unlisted
	@either expression crawler('unlisted', 'Googlebot')
	header @unknown X-Unknown yes
	header @either X-Either yes
	respond ok`)
	for _, c := range []struct{ agent, want string }{
		{"curl/8.5.0", "yes yes"},
		{"SomeNewBot/0.1 (+https://new.invalid/)", "yes yes"},
		{"", "yes yes"},
		{gptBot, " "},
		{googlebotAgent, " yes"},
		{chromeAgent, " "},
	} {
		h := s.get("/", "User-Agent", c.agent).Header
		if got := h.Get("X-Unknown") + " " + h.Get("X-Either"); got != c.want {
			t.Errorf("%q: %q, want %q", c.agent, got, c.want)
		}
	}
}

// A trusted proxy passes on the address of a crawler. The embedded address lists verify the crawler by this address.
func TestEdgeMatcherVerified(t *testing.T) {
	s := startLogged(t, slicePolicy, htmlUpstream(page("")), `
	@google crawler Googlebot verified
	@cel expression crawler('any', 'verified')
	header @google X-Google yes
	header @cel X-Any yes
	respond "{http.robots_policy.identity}"`)
	real := s.get("/", "User-Agent", googlebotAgent, "X-Forwarded-For", "66.249.66.1")
	if real.Header.Get("X-Google") != "yes" || real.Header.Get("X-Any") != "yes" {
		t.Errorf("an address of Google: %v", real.Header)
	}
	fake := s.get("/", "User-Agent", googlebotAgent, "X-Forwarded-For", "198.51.100.7")
	if fake.Header.Get("X-Google") != "" || fake.Header.Get("X-Any") != "" {
		t.Errorf("another address: %v", fake.Header)
	}
}

func TestEdgeMatcherErrors(t *testing.T) {
	for line, says := range map[string]string{
		"crawler":                                  "takes names of crawlers (product tokens)",
		"crawler category:nothing":                 `invalid crawler "category:nothing"`,
		"crawler Google-Extended":                  `invalid crawler "Google-Extended"`,
		"crawler GPTBot verified impostor":         "takes one identity",
		"crawler GPTBot verified {\nverify off\n}": `with "verify off"`,
		"crawler unlisted verified":                "identity verified never matches unlisted",
		"crawler GPTBot unlisted impostor":         "identity impostor never matches unlisted",
		"crawler GPTBot {\nverify maybe\n}":        `invalid verify "maybe"`,
		"crawler Googlebot verifed":                `did you mean "verified"`,
		"crawler any Imposter":                     `did you mean "impostor"`,
		"crawler ai-training":                      `did you mean "category:ai-training"`,
		"crawler Mozilla":                          "is in the User-Agent of browsers",
		"crawler GPTBot {\nnonsense x\n}":          "unrecognized subdirective",
	} {
		err := load("{\nadmin off\npersist_config off\n}\nhttp://" + freeAddr(t) + " {\n@x " + line + "\nrespond @x no\n}\n")
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", line, err)
		}
	}
}
