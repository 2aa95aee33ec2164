// SPDX-License-Identifier: Apache-2.0

package crawlers

import "testing"

// notCrawlers lists headers of browsers that people use, and of programs that lists of crawlers often confuse with
// crawlers.
var notCrawlers = []struct{ name, ua string }{
	{"editor: Code", "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Code/1.95.3 Chrome/128.0.6613.186 Electron/32.2.5 Safari/537.36"},
	{"editor: Cursor", "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) Cursor/0.45.11 Chrome/128.0.6613.186 Electron/32.2.6 Safari/537.36"},
	{"Silk", "Mozilla/5.0 (Linux; Android 9; KFMUWI) AppleWebKit/537.36 (KHTML, like Gecko) Silk/126.4.1 like Chrome/126.0.6478.122 Safari/537.36"},
	{"SLCC2, not LCC", "Mozilla/4.0 (compatible; MSIE 8.0; Windows NT 6.1; WOW64; Trident/4.0; SLCC2; .NET CLR 2.0.50727; .NET CLR 3.5.30729; Media Center PC 6.0)"},
	{"YakYak, not YaK", "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) yakyak/1.5.11 Chrome/83.0.4103.122 Electron/9.1.0 Safari/537.36"},
	{"Facebook app", "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148 [FBAN/FBIOS;FBAV/470.0.0.40.106;FBBV/612345678;FBDV/iPhone14,5;FBMD/iPhone;FBSN/iOS;FBSV/17.5.1;FBSS/3;FBID/phone;FBLC/en_US;FBOP/5]"},
	{"Facebook app, Android", "Mozilla/5.0 (Linux; Android 14; SM-S918B Build/UP1A.231005.007; wv) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 Chrome/126.0.6478.122 Mobile Safari/537.36 [FB_IAB/FB4A;FBAV/470.0.0.45.110;]"},
	{"Instagram app", "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/21F90 Instagram 337.0.1.23.54 (iPhone14,5; iOS 17_5_1; en_US; en; scale=3.00; 1170x2532; 614064327)"},
	{"Pinterest app", "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148 [Pinterest/iOS]"},
	{"LinkedIn app", "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148 [LinkedInApp]/9.29.8962"},
	{"Twitter app", "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148 Twitter for iPhone/10.44"},
	{"Snapchat app", "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148 Snapchat/12.92.0.35 (like Safari/8618.2.12.10.9, panda)"},
	{"Line app", "Mozilla/5.0 (Linux; Android 14; Pixel 8 Build/AP1A.240505.005; wv) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 Chrome/126.0.6478.122 Mobile Safari/537.36 Line/14.9.0/IAB"},
	{"Google app", "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) GSA/321.0.641971011 Mobile/15E148 Safari/604.1"},
	{"Daum app", "Mozilla/5.0 (Linux; Android 13; SM-G998N) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 Chrome/114.0.5735.196 Mobile Safari/537.36 DaumApps/6.9.1 DaumDevice/mobile"},
	{"Naver app", "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148 Safari/604.1 NAVER(inapp; search; 2000; 12.6.2; 14PRO)"},
	{"Yandex browser", "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/124.0.0.0 YaBrowser/24.6.0.0 Safari/537.36"},
	{"Coc Coc browser", "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) coc_coc_browser/117.0.226 Chrome/111.0.5563.226 Safari/537.36"},
	{"360 browser", "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/86.0.4240.198 Safari/537.36 QIHU 360SE"},
	{"DuckDuckGo browser", "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Mobile/15E148 DuckDuckGo/7 Safari/605.1.15"},
	{"Sogou browser", "Mozilla/5.0 (Windows NT 6.1; WOW64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/58.0.3029.110 Safari/537.36 SE 2.X MetaSr 1.0"},
	{"Huawei browser", "Mozilla/5.0 (Linux; Android 10; HMA-L29; HMSCore 6.13.0.322) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/114.0.5735.196 HuaweiBrowser/14.0.5.303 Mobile Safari/537.36"},
	{"Opera", "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/124.0.0.0 Safari/537.36 OPR/110.0.0.0"},
	{"Edge", "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36 Edg/126.0.0.0"},
	{"CUBOT phone", "Mozilla/5.0 (Linux; Android 12; CUBOT P60) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Mobile Safari/537.36"},
	{"a phone with the name of an animal", "Mozilla/5.0 (Linux; Android 13; SpiderPhone X1) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Mobile Safari/537.36"},
	{"Slack desktop", "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) Slack_SSB/4.39.95 Chrome/126.0.6478.114 Electron/31.1.0 Safari/537.36"},
	{"Thunderbird", "Mozilla/5.0 (X11; Linux x86_64; rv:115.0) Gecko/20100101 Thunderbird/115.12.2"},
	{"podcast app", "AppleCoreMedia/1.0.0.21F90 (iPhone; U; CPU OS 17_5_1 like Mac OS X; en_us)"},
	{"Operator, the word", "Mozilla/5.0 (Linux; Android 13; Operator Edition) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Mobile Safari/537.36"},
	{"a URL of a crawler's page", "LinkStats/1.0 (+https://openai.com/gptbot)"},
	{"a URL and a mail address", "Reader/2.0 (http://www.google.com/bot.html; claudebot@anthropic.com)"},
	{"like Googlebot", "FreshSearch/1.0 (like Googlebot)"},
	{"curl", "curl/8.7.1"},
	{"a part of a hyphenated word", "Anti-Googlebot/1.0"},
	{"a longer hyphenated word", "GPTBot-Checker/1.0"},
	{"empty", ""},
}

func TestNotCrawlers(t *testing.T) {
	c, err := Default()
	if err != nil {
		t.Fatal(err)
	}
	r := NewRecognizer(c.Patterns())
	for _, tt := range notCrawlers {
		if i, ok := r.Recognize(tt.ua); ok {
			t.Errorf("%s: %q is recognized as %s", tt.name, tt.ua, c.At(i).Token)
		}
	}
}

// Each header is recognized as the crawler that sends it, and not as a crawler with a similar name.
func TestLookAlikes(t *testing.T) {
	c, err := Default()
	if err != nil {
		t.Fatal(err)
	}
	r := NewRecognizer(c.Patterns())
	for _, tt := range []struct{ ua, want string }{
		{"Mozilla/5.0 (compatible; Baiduspider/2.0; +http://www.baidu.com/search/spider.html)", "Baiduspider"},
		{"Mozilla/5.0 (compatible; Baiduspider-render/2.0; +http://www.baidu.com/search/spider.html)", "Baiduspider-render"},
		{"Screaming Frog SEO Spider/20.4", "Screaming Frog SEO Spider"},
		{"Sogou web spider/4.0(+http://www.sogou.com/docs/help/webmasters.htm#07)", "Sogou web spider"},
		{"Googlebot-Image/1.0", "Googlebot-Image"},
		{"Mozilla/5.0 (compatible; adidxbot/2.0; +http://www.bing.com/bingbot.htm)", "AdIdxBot"},
		{"TelegramBot (like TwitterBot)", "TelegramBot"},
		{"Feedly/1.0 (+http://www.feedly.com/fetcher.html; like FeedFetcher-Google)", "Feedly"},
		{"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_11_1) AppleWebKit/601.2.4 (KHTML, like Gecko) Version/9.0.1 Safari/601.2.4 facebookexternalhit/1.1 Facebot Twitterbot/1.0", "Apple-Messages"},
		{"Claude-User (claude-code/2.1.86; +https://support.anthropic.com/)", "Claude-User"},
		{"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko; compatible; GoogleAgent-Mariner) Chrome/142.0.7444.162 Safari/537.36", "GoogleAgent-Mariner"},
		{"Mozilla/5.0 (compatible; SemrushBot-SA/0.97; +http://www.semrush.com/bot.html)", "SemrushBot-SA"},
		{"meta-externalfetcher/1.1 (+https://developers.facebook.com/docs/sharing/webmasters/crawler)", "meta-externalfetcher"},
	} {
		i, ok := r.Recognize(tt.ua)
		if !ok || c.At(i).Token != tt.want {
			t.Errorf("%q: got %v, want %s", tt.ua, ok, tt.want)
		}
	}
}
