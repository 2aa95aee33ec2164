// SPDX-License-Identifier: Apache-2.0

package crawlers

import (
	"fmt"
	"slices"
	"testing"
)

// browserStrings returns User-Agents of browsers and apps. It combines operating systems, devices, engines and product
// names in the same way as the makers of browsers. The headers are generated, so that no external file is needed to
// test that people are not recognized as crawlers.
func browserStrings() (all []string) {
	const gecko = "Mozilla/5.0 (%s; rv:%d.0) Gecko/20100101 Firefox/%d.0"
	const blink = "Mozilla/5.0 (%s) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/%d.0.0.0 %sSafari/537.36%s"
	const webkit = "Mozilla/5.0 (%s) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/%d.%d %sSafari/%s"
	desktops := []string{
		"Windows NT 10.0; Win64; x64", "Windows NT 6.1; WOW64", "Macintosh; Intel Mac OS X 10_15_7", "X11; Linux x86_64", "X11; CrOS x86_64 14541.0.0",
		"X11; Ubuntu; Linux x86_64", "X11; FreeBSD amd64", "Windows NT 10.0; WOW64; Trident/7.0",
	}
	phones := []string{
		"Linux; Android 10; K", "Linux; Android 14; Pixel 8 Pro", "Linux; Android 13; SM-S908B Build/TP1A.220624.014", "Linux; Android 12; CUBOT NOTE 21",
		"Linux; Android 11; Redmi Note 8 Pro", "Linux; Android 9; moto g(7) power", "Linux; U; Android 8.1.0; en-us; SpiderTab 7", "Linux; Android 13; 2201117TG",
		"Linux; Android 15; Robot Phone X", "Linux; Android 12; Crawler 5G", "Linux; Android 7.0; ARCHOS Bot 50",
	}
	apples := []string{"iPhone; CPU iPhone OS 17_5_1 like Mac OS X", "iPad; CPU OS 16_6 like Mac OS X", "iPod touch; CPU iPhone OS 15_8 like Mac OS X"}
	added := []string{
		"", " Edg/126.0.2592.87", " OPR/112.0.0.0", " Vivaldi/6.8", " YaBrowser/24.6.0.0 Yowser/2.5", " Whale/3.26.244.21", " Brave/126", " DuckDuckGo/5",
		" coc_coc_browser/117.0.226", " 360SE", " QQBrowser/12.0.5487.400", " Sleipnir/6.4.15", " Avast/126.0.0.0", " SE 2.X MetaSr 1.0", " Maxthon/7.1.8.9001",
	}
	apps := []string{
		" [FBAN/FBIOS;FBAV/470.0.0.40.106;FBDV/iPhone14,5]", " Instagram 337.0.1.23.54 (iPhone14,5; iOS 17_5_1)", " [LinkedInApp]/9.29.8962", " Twitter for iPhone/10.44",
		" [Pinterest/iOS]", " Snapchat/12.92.0.35", " Line/14.9.0", " MicroMessenger/8.0.49", " GSA/321.0.641971011", " DuckDuckGo/7", " EdgiOS/126.0.2592.86",
		" CriOS/126.0.6478.153", " FxiOS/127.0", " musical_ly_34.5.0 BytedanceWebview/d8a21c6", " BytedanceWebview/d8a21c6 TikTok/34", " baiduboxapp/13.60",
	}
	editors := []string{"Code/1.95.3", "Cursor/0.45.11", "Slack/4.39.95", "Discord/1.0.9154", "Notion/3.12.0", "Obsidian/1.6.5", "Figma/124.2.9", "Postman/11.6.2", "Windsurf/1.2.4"}
	for _, version := range []int{91, 109, 115, 120, 128, 143} {
		for _, system := range desktops {
			all = append(all, fmt.Sprintf(gecko, system, version, version))
			for _, more := range added {
				all = append(all, fmt.Sprintf(blink, system, version, "", more))
			}
		}
		for _, phone := range phones {
			all = append(all, fmt.Sprintf(blink, phone, version, "Mobile ", ""), fmt.Sprintf(blink, phone+"; wv", version, "Mobile ", " [FB_IAB/FB4A;FBAV/470.0.0.45.110;]"))
		}
		for _, app := range editors {
			all = append(all, fmt.Sprintf("Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) %s Chrome/%d.0.6613.186 Electron/32.2.5 Safari/537.36", app, version))
		}
		for _, kindle := range []string{"KFMUWI", "KFTRWI", "AFTMM"} {
			all = append(all, fmt.Sprintf("Mozilla/5.0 (Linux; Android 9; %s) AppleWebKit/537.36 (KHTML, like Gecko) Silk/%d.4.1 like Chrome/%d.0.6478.122 Safari/537.36", kindle, version, version))
		}
	}
	for _, minor := range []int{0, 3, 6} {
		for _, apple := range apples {
			all = append(all, fmt.Sprintf(webkit, apple, 17, minor, "Mobile/15E148 ", "604.1"))
			for _, app := range apps {
				all = append(all, fmt.Sprintf("Mozilla/5.0 (%s) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.%d Mobile/15E148%s", apple, minor, app))
			}
		}
		all = append(all, fmt.Sprintf(webkit, "Macintosh; Intel Mac OS X 10_15_7", 17, minor, "", "605.1.15"))
		for _, more := range []string{"SLCC2; .NET CLR 2.0.50727", "SLCC1; Media Center PC 5.0; InfoPath.2", "GTB7.5; .NET4.0C; .NET4.0E", "BOIE9;ENUS", "Alexa Toolbar"} {
			all = append(all, fmt.Sprintf("Mozilla/4.0 (compatible; MSIE %d.0; Windows NT 6.1; Trident/4.0; %s)", 6+minor/3, more))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func TestBrowserStrings(t *testing.T) {
	c, err := Default()
	if err != nil {
		t.Fatal(err)
	}
	r := NewRecognizer(c.Patterns())
	all := browserStrings()
	if len(all) < 500 {
		t.Errorf("only %d headers", len(all))
	}
	for _, ua := range all {
		if i, ok := r.Recognize(ua); ok {
			t.Errorf("%q is recognized as %s", ua, c.At(i).Token)
		}
	}
}
