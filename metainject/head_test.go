// SPDX-License-Identifier: Apache-2.0

package metainject

import (
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/robotsrule"
)

// TestHead compares changed pages with the expected pages. § stands for the policy's elements.
func TestHead(t *testing.T) {
	long := strings.Repeat(" ", 900)
	tests := []struct {
		name, policy, page, want string // an empty want means that the page is unchanged
		mode                     Mode
	}{
		{"explicit head", "robots=noindex", "<!DOCTYPE html><html><head><title>a</title>", "<!DOCTYPE html><html><head>§<title>a</title>", Merge},
		{"implied head", "robots=noindex", "<!DOCTYPE html>\n<title>a</title>", "<!DOCTYPE html>\n§<title>a</title>", Merge},
		{"body without a tag", "robots=noindex", "<!DOCTYPE html>\n <p>a", "<!DOCTYPE html>\n §<p>a", Merge},
		{"text after the doctype", "robots=noindex", "<!doctype html>a", "<!doctype html>§a", Merge},
		{"fragment", "robots=noindex", "<title>a</title><p>b", "", Merge},
		{"only a meta", "robots=noindex", "<meta charset=utf-8>b", "§<meta charset=utf-8>b", Merge},
		{"only a body", "robots=noindex", "<body>b", "§<body>b", Merge},
		{"UTF-16", "robots=noindex", "\xFF\xFE<\x00", "", Merge},
		{"BOM", "robots=noindex", bomUTF8 + "<html><head>", bomUTF8 + "<html><head>§", Merge},
		{"ISO-2022-JP", "robots=noindex", "<html><head><meta charset=iso-2022-jp>", "", Merge},
		{"BOM against ISO-2022-JP", "robots=noindex", bomUTF8 + "<html><head><meta charset=iso-2022-jp>", bomUTF8 + "<html><head>§<meta charset=iso-2022-jp>", Merge},
		{"charset stays in reach", "robots=noindex", "<html><head>" + long + strings.Repeat(" ", 80) + "<meta charset=utf-8><title>", "<html><head>" + long + strings.Repeat(" ", 80) + "<meta charset=utf-8>§<title>", Merge},
		{"charset out of reach before", "robots=noindex", "<html><head>" + long + long + "<meta charset=utf-8>", "<html><head>§" + long + long + "<meta charset=utf-8>", Merge},
		{
			"element moved behind charset", "robots=noindex, nosnippet, noarchive, notranslate", "<html><head><meta name=robots content=all>" + long + strings.Repeat(" ", 50) + "<meta charset=utf-8>",
			"<html><head>" + long + strings.Repeat(" ", 50) + "<meta charset=utf-8>§", Merge,
		},
		{"conditional comment", "robots=noindex", "<!DOCTYPE html><!--[if IE]><head><![endif]--><html><head>", "<!DOCTYPE html><!--[if IE]><head><![endif]--><html><head>§", Merge},

		{"merge", "robots=noindex", `<html><head><meta id=a name=robots content="nosnippet, index">`, `<html><head><meta id=a name=robots content="noindex, nosnippet">`, Merge},
		{"merge unquoted", "robots=noindex", `<html><head><meta content=nosnippet name=ROBOTS>`, `<html><head><meta content="noindex, nosnippet" name=ROBOTS>`, Merge},
		{"merge several", "robots=noindex", `<html><head><meta name=robots content=nosnippet><meta name=robots content="noarchive">`, `<html><head><meta name=robots content="noindex, nosnippet, noarchive">`, Merge},
		{"stricter already", "robots=noindex", `<html><head><meta name=robots content="NOINDEX,nofollow">`, "", Merge},
		{"none says noindex", "robots=noindex", `<html><head><meta name=robots content=none>`, "", Merge},
		{"contradicts itself", "robots=noindex", `<html><head><meta name=robots content="noindex, index">`, `<html><head><meta name=robots content="noindex">`, Merge},
		{"another crawler's own rules", "robots=noindex", `<html><head><meta name=googlebot content=nosnippet>`, `<html><head>§<meta name=googlebot content=nosnippet>`, Merge},
		{"another crawler's permission", "robots=noindex", `<html><head><meta name=googlebot content="index, nosnippet">`, `<html><head>§<meta name=googlebot content="noindex, nosnippet">`, Merge},
		{"crawler of the policy", "robots=noindex|googlebot=nosnippet", `<html><head><meta name=GoogleBot content="noarchive">`, `<html><head><meta name="robots" content="noindex"><meta name=GoogleBot content="nosnippet, noarchive">`, Merge},
		{"unknown name", "robots=noindex", `<html><head><meta name=viewport content="index">`, `<html><head>§<meta name=viewport content="index">`, Merge},
		{"property", "robots=noindex", `<html><head><title>a</title><meta property=robots content=nosnippet>`, `<html><head><title>a</title><meta name="robots" content="noindex, nosnippet">`, Merge},
		{"http-equiv", "robots=noindex", `<html><head><meta http-equiv=X-Robots-Tag content=nosnippet>`, `<html><head><meta name="robots" content="noindex, nosnippet">`, Merge},
		{"http-equiv for one crawler", "robots=noindex", `<html><head><meta http-equiv=X-Robots-Tag content="Googlebot: index">`, `<html><head>§<meta name="googlebot" content="noindex">`, Merge},
		{"http-equiv, a value's colon", "robots=noindex", `<html><head><meta http-equiv=X-Robots-Tag content="max-snippet:5">`, `<html><head><meta name="robots" content="noindex, max-snippet:5">`, Merge},
		{"ACAP", "robots=noindex", `<html><head><meta name='robots' content='ACAP allow-index'>`, `<html><head>§<meta name='robots' content='ACAP allow-index'>`, Merge},
		{"content without a value", "robots=noindex", `<html><head><meta content name=robots id=a>`, `<html><head>§<meta content name=robots id=a>`, Merge},
		{"content without a value but =", "robots=noindex", `<html><head><meta name=robots content = >`, `<html><head>§<meta name=robots content = >`, Merge},
		{"no content", "robots=noindex", `<html><head><meta name=robots>`, `<html><head>§<meta name=robots>`, Merge},
		{"in the body", "robots=noindex", `<html><head></head><body><meta name=robots content=index>`, `<html><head>§</head><body><meta name=robots content=index>`, Merge},
		{"between head and body", "robots=noindex", `<html><head></head><meta name=robots content=index><body>`, `<html><head></head><meta name=robots content="noindex"><body>`, Merge},
		{"in a script in a comment in a script", "robots=noindex", `<html><head><script><!--<<script </script><meta name=robots content=index>--></script>`, `<html><head>§<script><!--<<script </script><meta name=robots content=index>--></script>`, Merge},
		{"in noscript", "robots=noindex", `<html><head><noscript><meta name=robots content=index></noscript>`, `<html><head>§<noscript><meta name=robots content=index></noscript>`, Merge},

		{"declaration of the encoding with rules", "robots=noindex", `<html><head><meta name=robots content=index charset=utf-8>`, `<html><head><meta name=robots content="noindex" charset=utf-8>`, Merge},
		{"and another of them", "robots=noindex", `<html><head><meta name=robots content=nofollow><meta charset=utf-8 name=robots content=index>`, `<html><head><meta name=robots content="noindex, nofollow"><meta charset="utf-8">`, Merge},
		{"no declaration, because no encoding is called that", "robots=noindex", `<html><head><meta charset="utf-8; x" property=robots content=nofollow>`, `<html><head><meta charset="utf-8; x"><meta name="robots" content="noindex, nofollow">`, Merge},
		{"declaration in content", "robots=noindex", `<html><head><meta http-equiv=content-type name=robots content="all, x; charset=utf-8; y">`, `<html><head><meta charset="utf-8"><meta name="robots" content="noindex, x; charset:utf-8; y">`, Merge},
		{"declaration that is no rule", "robots=noindex", `<html><head><meta http-equiv=content-type name=robots content="text/html; charset=utf-8">`, `<html><head>§<meta http-equiv=content-type name=robots content="text/html; charset=utf-8">`, Merge},
		{"declaration for another crawler", "robots=noindex", `<html><head><meta charset=utf-8 name=googlebot content=all>`, `<html><head>§<meta charset="utf-8">`, Replace},
		{"no exception beside a page's noindex", "robots=noindex, indexifembedded", `<html><head><meta name=googlebot content=noindex>`, `<html><head><meta name="robots" content="noindex"><meta name=googlebot content=noindex>`, Merge},
		{"no exception of the page beside everyone's noindex", "robots=noindex", `<html><head><meta name=googlebot content="noindex, indexifembedded">`, `<html><head>§<meta name=googlebot content="noindex">`, Merge},
		{"no exception for everyone beside a crawler's noindex", "googlebot=noindex", `<html><head><meta name=robots content="noindex, indexifembedded">`, `<html><head>§<meta name=robots content="noindex">`, Merge},
		{"nor in the policy", "robots=noindex, indexifembedded|googlebot=noindex", `<html><head><title>`, `<html><head><meta name="robots" content="noindex"><meta name="googlebot" content="noindex"><title>`, Merge},
		{"no exception for an allow entry", "robots=noindex, indexifembedded", `<html><head><meta name=robots content=noindex><meta name=googlebot content=index>`, `<html><head><meta name=robots content=noindex><meta name=googlebot content="noindex">`, Merge},
		{"an exception of both", "robots=noindex, indexifembedded", `<html><head><meta name=googlebot content="noindex, indexifembedded">`, `<html><head>§<meta name=googlebot content="noindex, indexifembedded">`, Merge},
		{"AMP", "robots=noindex", `<!doctype html><html amp lang=en><head><meta charset=utf-8><title>`, `<!doctype html><html amp lang=en><head><meta charset=utf-8>§<title>`, Merge},
		{"AMP by its sign", "robots=noindex|googlebot=nosnippet", "<!doctype html>\n<html lang=en ⚡>\n<head>\n<meta charset=utf-8>\n<meta name=robots content=all>", "<!doctype html>\n<html lang=en ⚡>\n<head>\n<meta charset=utf-8><meta name=\"googlebot\" content=\"nosnippet\">\n<meta name=robots content=\"noindex\">", Merge},
		{"AMP without an encoding", "robots=noindex", `<html ⚡4email><head><title>`, `<html ⚡4email><head>§<title>`, Merge},
		{"no AMP", "robots=noindex", `<html class=amp x-amp><head><meta charset=utf-8>`, `<html class=amp x-amp><head>§<meta charset=utf-8>`, Merge},

		{"replace", "robots=noindex", `<html><head><meta name=robots content="nofollow">`, `<html><head><meta name=robots content="noindex">`, Replace},
		{"replace, equal", "robots=noindex", `<html><head><meta name=robots content="NoIndex">`, "", Replace},
		{"replace others", "robots=noindex", `<html><head><meta name=googlebot content="nofollow">`, `<html><head>§`, Replace},
		{"replace what opened the head", "robots=noindex", `<!DOCTYPE html><meta name=googlebot content=all> <meta name=robots content=noarchive>`, `<!DOCTYPE html><head> <meta name=robots content="noindex">`, Replace},
		{"ACAP stays", "robots=noindex", `<html><head><meta name='robots' content='ACAP allow-index'>`, `<html><head>§<meta name='robots' content='ACAP allow-index'>`, Replace},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			set := testSet(t, strings.Split(tt.policy, "|")...)
			want := strings.ReplaceAll(tt.want, "§", set.HTML())
			if tt.want == "" {
				want = tt.page
			}
			if got, _, _ := rewriteHead([]byte(tt.page), set, tt.mode, false, false, nil); string(got) != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

// The policy has a TDM declaration, but no robots control rules. In mode Replace, the page's robots elements are not
// removed, because the policy has nothing to replace them with.
func TestReplaceLeavesWhatThePolicyDoesNotMention(t *testing.T) {
	reservation := Element{Name: "tdm-reservation", Content: "0", Combine: func(theirs string) string { return theirs }}
	set := NewSet([]Element{reservation}, testTokens, 0)
	page := `<html><head><meta name=robots content="noindex"><meta name=tdm-reservation content="1">`
	if got, _, _ := rewriteHead([]byte(page), set, Replace, false, false, nil); string(got) != page {
		t.Errorf("%s", got)
	}
	both := NewSet([]Element{{Name: Everyone, Rules: robotsrule.Parse("nosnippet")}, reservation}, testTokens, 0)
	want := `<html><head><meta name=robots content="nosnippet"><meta name=tdm-reservation content="0">`
	if got, _, _ := rewriteHead([]byte(page), both, Replace, false, false, nil); string(got) != want {
		t.Errorf("%s", got)
	}
}

func TestNewSet(t *testing.T) {
	set := testSet(t, "robots=noindex", "ROBOTS=nosnippet", "a b=noindex", "x:y=noindex", strings.Repeat("x", 65)+"=noindex", "empty=", `q"<=noai`)
	if got, want := set.HTML(), `<meta name="robots" content="noindex, nosnippet"><meta name="q&#34;&lt;" content="noai">`; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if !NewSet(nil, nil, 0).IsEmpty() || !(*Set)(nil).IsEmpty() || set.IsEmpty() {
		t.Error("IsEmpty")
	}
}

// If browsers do not understand the first declaration of the encoding, the second one must remain within the first
// 1,024 bytes, where browsers look for it.
func TestSecondCharset(t *testing.T) {
	for _, first := range []string{"<meta charset=bogus>", `<meta http-equiv=content-type content="text/html; charset">`, `<meta charset="">`} {
		head := "<!DOCTYPE html><html><head>" + first + "<!--"
		head += strings.Repeat("x", 1000-len(head)) + "--><meta charset=utf-8>"
		page := head + "<title>x</title></head>"
		got, _, _ := rewriteHead([]byte(page), testSet(t, "robots=noindex"), Merge, false, false, nil)
		if want := head + `<meta name="robots" content="noindex"><title>x</title></head>`; string(got) != want {
			t.Errorf("%s: %q", first, got)
		}
	}
}
