// SPDX-License-Identifier: Apache-2.0

package compare_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/effect"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
	"github.com/robotspolicy/caddy-robots-policy/site"
	"github.com/robotspolicy/caddy-robots-policy/site/compare"
)

func load(t testing.TB, rules string) *site.Site {
	t.Helper()
	s, ds := site.Load("p.yaml", []byte("version: 1\n"+rules))
	if s == nil {
		t.Fatal(ds)
	}
	return s
}

const base = "rules:\n  - for: everyone\n    disallow:\n      crawl: /admin/\n"

// shut is a rule for a category of crawlers. own is a rule that names its crawlers.
const (
	shut = "  - for: category:ai-training\n    disallow:\n      crawl: /\n    enforce: block\n"
	own  = "  - for: [Bingbot, Googlebot, DuckDuckBot, YandexBot, Qwantbot, Mojeekbot, UptimeRobot]\n    allow:\n      crawl: /news/\n"
)

// The rules few and several disallow a section for some crawlers. Two of the crawlers in the rule few are not in the
// catalog.
const (
	few     = "  - for: [GPTBot, ClaudeBot, OwnBot, OurBot]\n    disallow:\n      crawl: /members/\ncrawlers: {OwnBot: {}, OurBot: {}}\n"
	several = "  - for: [GPTBot, ClaudeBot, CCBot, Bingbot, YandexBot, AhrefsBot]\n    disallow:\n      crawl: /members/\n"
)

func categories() string {
	var all []string
	for _, k := range crawlers.Categories() {
		all = append(all, "category:"+string(k))
	}
	return strings.Join(all, ", ")
}

// If a change comes from a rule for a category, the text names the category without numbers of crawlers.
func TestListsKinds(t *testing.T) {
	t.Parallel()
	for _, category := range []string{"search", "preview", "monitoring"} {
		d := compare.Sites(load(t, base), load(t, base+"  - for: category:"+category+"\n    disallow:\n      crawl: /a/\n"), compare.Options{})
		if got, want := d.Words(), []string{"all " + category + " crawlers may no longer crawl /a/"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestWords(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, old, new string
		want           []string
		search         bool // true if search engines lose something
	}{
		{"nothing", base, base, []string{"nothing changes"}, false},
		{"a comment", base, "# hello\n" + base, []string{"nothing changes"}, false},
		{
			"everyone", base, base + "      index: /drafts/\n",
			[]string{"everyone may no longer index /drafts/"},
			true,
		},
		{
			"one crawler is shut out and blocked", base, base + "  - for: GPTBot\n    disallow:\n      crawl: /\n    enforce: block\n",
			[]string{"GPTBot may no longer crawl the whole site (disallowed before: /admin/)", "GPTBot: requests for the whole site are now blocked"},
			false,
		},
		{
			"and let in again", base + "  - for: GPTBot\n    disallow:\n      crawl: /\n    enforce: block\n", base,
			[]string{"GPTBot: requests for the whole site are now neither blocked nor logged", "GPTBot may now crawl the whole site (except /admin/)"},
			false,
		},
		{
			"a search engine is shut out", base, base + "  - for: Bingbot\n    disallow:\n      crawl: /news/\n",
			[]string{"Bingbot may no longer crawl /news/"},
			true,
		},
		{
			"an exemption", base, base + "  - for: Bingbot\n    allow:\n      crawl: /admin/\n",
			[]string{"Bingbot may now crawl /admin/"},
			false,
		},
		{
			"a family", "rules:\n  - for: everyone\n    disallow:\n      crawl: /\n", "rules:\n  - for: everyone\n    disallow:\n      crawl: /\n  - for: Applebot\n    allow:\n      crawl: /\n",
			[]string{"Applebot may now crawl the whole site"},
			false,
		},
		{
			"on one host", base, base + "  - for: everyone\n    hosts: old.example.com\n    disallow:\n      index: /\n",
			[]string{"everyone may no longer index the whole site on old.example.com"},
			true,
		},
		{
			"on two hosts, one of which has a rule for search engines",
			base, base + "  - for: everyone\n    hosts: [a.example, b.example]\n    disallow: {crawl: /x/}\n  - for: Googlebot-Image\n    hosts: a.example\n    robots-tag: noindex\n",
			[]string{"everyone may no longer crawl /x/ on a.example, b.example", "Googlebot-Image: noindex now applies to the whole site on a.example"},
			true,
		},
		{
			"where two patterns cross", "rules:\n  - for: everyone\n    disallow:\n      crawl: [/shop/, \"/*?\"]\n",
			"rules:\n  - for: everyone\n    disallow:\n      crawl: [\"/*?\"]\n    allow:\n      crawl: /shop/open/\n",
			[]string{"everyone may now crawl /shop/ (except /shop/*?)", "everyone may now crawl /shop/open/"},
			false,
		},
		{
			"inside an allow entry", "rules:\n  - for: everyone\n    disallow:\n      crawl: /\n    allow:\n      crawl: /open/\n",
			"rules:\n  - for: everyone\n    disallow:\n      crawl: [/, /open/closed/]\n    allow:\n      crawl: /open/\n",
			[]string{"everyone may no longer crawl /open/closed/"},
			true,
		},
		{
			"only the sitemap", base, "sitemaps:\n  - /s.xml\n" + base,
			[]string{"setting sitemaps: none → /s.xml"},
			false,
		},
		{
			"only rights documents and signals", base + "publish: {rsl: on}\n", base + "publish: {rsl: /l.xml, tdmrep: on}\n",
			[]string{"setting publish.rsl: on → /l.xml", "setting publish.tdmrep: none → on"},
			false,
		},
		{
			"only what is done about it", base + "  - for: GPTBot\n    disallow:\n      crawl: /x\n    enforce: log\n",
			base + "  - for: GPTBot\n    disallow:\n      crawl: /x\n    enforce: block\n",
			[]string{"GPTBot: requests for /x are now blocked"},
			false,
		},
		{
			"no longer said", base + "    allow:\n      search: /\n", base,
			[]string{"everyone: the policy no longer states whether they may use for search the whole site"},
			false,
		},
		{
			"a limit", base + "    allow:\n      present-snippet: /\n", base + "    allow:\n      present-snippet: {paths: /, max-length: 50-chars}\n",
			nil, true,
		},
		{
			"a crawl-delay", base, base + "    crawl-delay: 5\n",
			[]string{"everyone: crawl-delay of the whole site is now 5s (was none)"},
			false,
		},
		{
			"a search engine does not wait", base + "    crawl-delay: 5\n", base + "    crawl-delay: 5\n  - for: Bingbot\n    crawl-delay: none\n",
			[]string{"Bingbot: crawl-delay of the whole site is now none (was 5s)"},
			false,
		},
		{
			"AI alone", base, base + "      train-ai: /\n      ai-use: /\n",
			[]string{"everyone may no longer train AI with and use in AI answers the whole site"},
			false,
		},
		{
			"for verified clients", "rules:\n  - for: everyone\n    disallow:\n      crawl: /\n",
			"rules:\n  - for: everyone\n    disallow:\n      crawl: /\n  - for: Googlebot\n    identity: verified\n    allow:\n      crawl: /\n",
			nil, false,
		},
		{
			"everyone, though some could not before",
			base + shut, "rules:\n  - for: everyone\n    disallow:\n      crawl: [/admin/, /members/]\n" + shut,
			[]string{"everyone may no longer crawl /members/"},
			true,
		},
		{
			"everyone but a few",
			"rules:\n  - for: everyone\n    disallow:\n      crawl: [/admin/, /members/]\n" + shut, base + shut,
			[]string{"everyone except ai-training crawlers may now crawl /members/"},
			false,
		},
		{
			"everyone, and many have rules of their own",
			base + own, "rules:\n  - for: everyone\n    disallow:\n      crawl: [/admin/, /members/]\n" + own,
			[]string{"everyone may no longer crawl /members/"},
			true,
		},
		{
			"everyone but one that a rule of its own lets in",
			base, "rules:\n  - for: everyone\n    disallow:\n      crawl: [/admin/, /members/]\n  - for: GPTBot\n    allow:\n      crawl: /members/\n",
			[]string{"everyone except GPTBot may no longer crawl /members/"},
			true,
		},
		{
			"everyone but one that may still crawl a part",
			base + "  - for: GPTBot\n    disallow:\n      crawl: /members/\n    allow:\n      crawl: /members/free/\n",
			"rules:\n  - for: everyone\n    disallow:\n      crawl: [/admin/, /members/]\n  - for: GPTBot\n    disallow:\n      crawl: /members/\n    allow:\n      crawl: /members/free/\n",
			[]string{"everyone except GPTBot may no longer crawl /members/"},
			true,
		},
		{
			"a few of a category, and crawlers of none",
			"rules:\n  - for: everyone\n    disallow:\n      crawl: [/admin/, /members/]\n" + few, base + few,
			[]string{"everyone except OurBot, OwnBot, ClaudeBot, GPTBot may now crawl /members/"},
			false,
		},
		{
			"every category, and not everyone else",
			base, base + "  - for: [" + categories() + "]\n    disallow:\n      crawl: /members/\n",
			[]string{"all search crawlers, all academic crawlers, all ads crawlers, all ai-agent crawlers, all ai-assistant crawlers, all ai-input crawlers, all ai-training crawlers, all archive crawlers, all feed crawlers, all monitoring crawlers, all preview crawlers, all security crawlers, all seo crawlers may no longer crawl /members/"},
			true,
		},
		{
			"other limits", base + "    allow:\n      index: {paths: /, time-limit: until-2998-12-31}\n", base + "    allow:\n      index: {paths: /, time-limit: until-2999-12-31}\n",
			[]string{"everyone may still index the whole site, but the limits change: now time-limit=until-2999-12-31 (was time-limit=until-2998-12-31)"},
			false,
		},
		{
			"limits of some paths", base + "    allow: {present-snippet: /}\n", base + "    allow:\n      present-snippet: {paths: /, max-length: 50-chars}\n",
			[]string{"everyone may still present the snippet of the whole site, but the limits change: now max-length=50-chars (was no limits)"},
			true,
		},
		{
			"stated with limits", base, base + "    allow:\n      index: [/, {paths: /news/, time-limit: until-2999-12-31}]\n",
			[]string{"everyone: the policy now states that they may index /news/ with limits: time-limit=until-2999-12-31", "everyone: the policy now states that they may index the whole site (except /news/)"},
			true,
		},
		{
			"all but the home page", base, base + "  - for: everyone\n    disallow: {index: /}\n    allow: {index: \"/$\", train-ai: /}\n",
			[]string{"everyone may no longer index the whole site (except /$)", "everyone: the policy now states that they may index /$", "everyone: the policy now states that they may train AI with the whole site"},
			true,
		},
		{
			"all but what begins with a tilde", base, base + "  - for: everyone\n    disallow: {crawl: /}\n    allow: {crawl: [/~, \"/*0*\"]}\n",
			[]string{"everyone may no longer crawl the whole site (except /~, /*0) (disallowed before: /admin/)"},
			true,
		},
		{
			"in another letter case", base, "rules:\n  - for: everyone\n    disallow:\n      crawl: /Admin/\n",
			[]string{"everyone may no longer crawl /Admin/", "everyone may now crawl /admin/"},
			true,
		},
		{
			"intended", base, base + "  - for: Bingbot\n    disallow: {crawl: /news/}\n    intended: true\n",
			[]string{"Bingbot may no longer crawl /news/", "setting rules[Bingbot].intended: none → true"},
			false,
		},
		{
			"the links of pages", base, base + "      follow: /\n",
			[]string{"everyone may no longer follow links of the whole site"},
			false,
		},
		{
			"too many to name",
			"rules:\n  - for: everyone\n    disallow:\n      crawl: [/admin/, /members/]\n" + several, base + several,
			[]string{"everyone else (including search engines) may now crawl /members/"},
			false,
		},
		{
			"one path too many to name", base, base + "  - for: everyone\n    disallow: {crawl: [/1/, /2/, /3/, /4/, /5/, /6/, /7/]}\n",
			[]string{"everyone may no longer crawl /1/, /2/, /3/, /4/, /5/, /6/ and 1 more path"},
			true,
		},
		{
			"a crawler that is named like a group of crawlers", "crawlers:\n  everyone else: {}\n" + base, "crawlers:\n  everyone else: {}\n" + base + "  - for: [everyone else]\n    disallow: {crawl: /x/}\n",
			[]string{"\"everyone else\" may no longer crawl /x/"},
			false,
		},
		{
			"what is logged for every crawler",
			base + shut + "enforcement: log\n", "rules:\n  - for: everyone\n    disallow:\n      crawl: [/admin/, /members/]\n" + shut + "enforcement: log\n",
			[]string{"everyone may no longer crawl /members/", "every known crawler except ai-training crawlers: requests for /members/ are still let through, and now logged"},
			true,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := compare.Sites(load(t, c.old), load(t, c.new), compare.Options{})
			if got := d.Words(); c.want != nil && !slices.Equal(got, c.want) {
				t.Errorf("\n got %q\nwant %q", got, c.want)
			}
			if c.want == nil {
				t.Logf("%q", d.Words())
			}
			if got := len(d.Losses.Found) > 0; got != c.search {
				t.Errorf("search engines lose something: %v, want %v; %q", got, c.search, d.Words())
			}
			if got := slices.ContainsFunc(d.Changes, func(c compare.Change) bool { return c.Lost&effect.Counted != 0 }); got != c.search {
				t.Errorf("a change says that search engines lose something: %v, want %v", got, c.search)
			}
			if !d.Complete {
				t.Error("not complete")
			}
		})
	}
}

func TestJSON(t *testing.T) {
	d := compare.Sites(load(t, base), load(t, base+"  - for: [GPTBot, Bingbot]\n    hosts: www.example.com\n    disallow:\n      crawl: /a/\n"), compare.Options{})
	got, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"changes":[{"effect":"loss","usages":["crawl"],"old":"allowed","new":"disallowed","crawlers":["Bingbot","GPTBot"],` +
		`"categories":[{"category":"search","crawlers":["Bingbot"]},{"category":"ai-training","crawlers":["GPTBot"]}],` +
		`"hosts":["www.example.com"],"paths":["/a/"],"search_loss":"crawl"}],"robots_txt":true,"complete":true}`
	if string(got) != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
}

// Comparing hostile policies does not take long. If the comparison is not complete, the result says so.
func TestBounded(t *testing.T) {
	testkit.Slow(t)
	var hosts, stars strings.Builder
	hosts.WriteString("rules:\n")
	for i := range 600 {
		fmt.Fprintf(&hosts, "  - for: Bot%c%c\n    hosts: h%d.example.com\n    disallow:\n      index: /%d\n", 'a'+i%26, 'a'+i/26, i, i)
	}
	stars.WriteString("rules:\n  - for: everyone\n    disallow:\n      crawl: /\n    allow:\n      crawl:\n")
	for i := range 200 {
		fmt.Fprintf(&stars, "        - \"/*%c*%c*%c*\"\n", 'a'+i%26, 'a'+i/7%26, 'a'+i/3%26)
	}
	stars.WriteString("  - for: GPTBot\n    disallow:\n      crawl:\n")
	for i := range 200 {
		fmt.Fprintf(&stars, "        - \"/*%c*%c*%c\"\n", 'a'+i%26, 'a'+i/5%26, 'a'+i/11%26)
	}
	for name, rules := range map[string]string{"hosts": hosts.String(), "stars": stars.String()} {
		t.Run(name, func(t *testing.T) {
			d := compare.Sites(load(t, rules), load(t, "rules:\n  - for: everyone\n    disallow:\n      crawl: /*x*y\n"), compare.Options{})
			if _, covered := d.Losses.Known().Get(); name == "hosts" && (d.Complete || len(covered.Gaps) != 1) {
				t.Errorf("it is said to be complete: %+v", covered.Gaps)
			}
		})
	}
}

// A policy cannot list a crawler with one of the texts that stand for groups of crawlers in Change.Crawlers.
func TestNamesOfEveryone(t *testing.T) {
	for _, name := range []string{compare.Everyone, compare.EveryoneElse} {
		if crawlers.CanBeListed(name) {
			t.Errorf("a policy can list %q", name)
		}
	}
}

// Two patterns such as `/a*b` and `/*c` cross: some paths match both, but each also matches other paths. If all
// patterns of two policies cross, the policies can have thousands of changes, even if each has only 200 lines. A reload
// compares policies too, so the comparison must stop before it has found all of these changes.
func TestCrossingPolicies(t *testing.T) {
	read := func(name string) *site.Site {
		data, err := os.ReadFile("testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return load(t, strings.TrimPrefix(string(data), "version: 1\n"))
	}
	d := compare.Sites(read("crossing-old.yaml"), read("crossing-new.yaml"), compare.Options{})
	if _, covered := d.Losses.Known().Get(); d.Complete || len(covered.Gaps) == 0 {
		t.Errorf("the comparison is complete, with the gaps %v", covered.Gaps)
	}
}

// If patterns overlap, each change has exactly the exceptions that are within its paths.
func TestExceptionsThatCross(t *testing.T) {
	for name, c := range map[string]struct {
		rules string
		want  []string // the crawlers, paths and exceptions of each loss
	}{
		"an exception only crosses another path": {
			`  - {for: Googlebot, intended: true, disallow: {crawl: "/*b$"}}
  - {for: everyone, intended: true, allow: {crawl: "/*ba"}, disallow: {crawl: "/a*b"}}
`,
			[]string{"[(all crawlers)] [/a*b] [/a*ba]", "[Google-InspectionTool Googlebot Googlebot-Image Googlebot-Mobile Googlebot-News Googlebot-Video] [/*b$] []"},
		},
		"an exception crosses a path within the change": {
			`  - {for: AlphaBot, intended: true, disallow: {crawl: "/a*b"}}
  - {for: everyone-else, intended: true, allow: {crawl: "/*a$"}, disallow: {crawl: /a}}
crawlers: {AlphaBot: {operator: Alpha}}
`,
			[]string{"[(all crawlers)] [/a] [/a$ /a*a$]", "[AlphaBot] [/a*b] []"},
		},
		"a part of an exception lies within another path": {
			`  - {for: AlphaBot, intended: true, disallow: {crawl: "/*a$"}, allow: {crawl: /abab}}
  - {for: everyone-else, intended: true, disallow: {crawl: "/a*$"}}
  - {for: "operator:Alpha", intended: true, disallow: {crawl: /a}}
crawlers: {AlphaBot: {operator: Alpha}}
`,
			[]string{"[(all other crawlers)] [/a] []", "[AlphaBot] [/a] [/abab]", "[AlphaBot] [/*a$] [/abab*a$]"},
		},
		"an exception that three patterns make together": {
			`  - {for: AlphaBot, intended: true, disallow: {crawl: "/a*b"}, allow: {crawl: "/*ba"}}
  - {for: everyone, intended: true, allow: {crawl: "/a*b"}, disallow: {crawl: "/*ab"}}
crawlers: {AlphaBot: {operator: Alpha}}
`,
			[]string{"[(all other crawlers)] [/*ab] [/ab /a*ab]", "[AlphaBot] [/*ab] [/a*aba /a*bab /a*ab*ba /a*ba*ab]", "[AlphaBot] [/a*b] [/a*ba]"},
		},
		"a disallow entry for two audiences with different exceptions": {
			`  - {for: everyone, intended: true, allow: {crawl: "/a*b"}}
  - {for: "operator:Alpha", intended: true, allow: {crawl: "/*a$"}}
  - {for: [everyone-else, "operator:Alpha"], intended: true, disallow: {crawl: "/*ab"}}
crawlers: {AlphaBot: {operator: Alpha}}
`,
			[]string{"[(all other crawlers)] [/*ab] [/ab /a*ab]", "[AlphaBot] [/*ab] [/ab*a$ /a*ab*a$]"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			changes, _ := compare.Decisions(load(t, "").Policy, load(t, "rules:\n"+c.rules).Policy, compare.Options{})
			var said []string
			for _, c := range changes {
				if c.Effect == compare.Loss {
					said = append(said, fmt.Sprint(c.Crawlers, c.Paths, c.Except))
				}
			}
			if !slices.Equal(said, c.want) {
				t.Errorf("%q, want %q", said, c.want)
			}
		})
	}
}
