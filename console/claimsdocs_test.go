// SPDX-License-Identifier: Apache-2.0

package console

import (
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/claim"
)

var updateClaims = flag.Bool("update", false, "write the table of claims in docs/contributing/claims.md")

// blindSpotNames lists the blind spots that can make a claim false.
var blindSpotNames = []string{
	"unrecorded requests", "database rows that count the requests for several paths together", "deleted data, or an older copy of the data", "a server that is silent or down, or has not sent all rows to the fleet database",
	"servers with different clocks", "recorded traffic of a policy or host that the claim is not about", "a period without traffic, or a period that starts before the first recorded request", "a search engine that has not sent any request",
	"verified and unverified requests, counted together", "an access log without its end, in another format, or without User-Agents", "a server that treats limits, impostors or letter case differently from what the claim assumes",
	"settings of the policy that do not change decisions", "the site's own robots.txt", "options of the Caddyfile", "a crawler whose identity cannot be proven", "outdated address lists",
	"crawlers that follow the group of another crawler in robots.txt", "user-agent patterns that also match other crawlers", "a server whose crawler catalog differs from the one that the claim was made with", "rules that end on a date", "tests in the policy that are not run again when a rule ends on a date",
	"no previous policy for the comparison", "two rules with the same name in the records", "a robots.txt that only clients with the crawler's name but a different identity have read", "a robots.txt with several forms (http, https, merged), if the crawler has read only one of them", "an evidence log that is incomplete, or was restored from a backup", "a time when the site or the server was down",
}

// judged describes how the program handles the blind spots of one claim: the ways in which the claim's data can be
// incomplete. cells maps the name of a blind spot to the test in which it occurs, as package and name. If there is no
// such test, the value in cells begins with "open: " and explains why the program does not detect the blind spot. rest
// is the reason why the blind spots that are not in cells cannot make the claim false.
type judged struct {
	cells map[string]string
	rest  string
}

const loads = "open: "

var claimMatrix = map[string]judged{
	"search-keeps": {map[string]string{
		"unrecorded requests": "activity/replay.TestSearchKeeps", "database rows that count the requests for several paths together": "activity/replay.TestSearchKeepsWithRowsThatLackData",
		"deleted data, or an older copy of the data":                                          "activity/store.TestKilledIsAGap",
		"a server that is silent or down, or has not sent all rows to the fleet database":     "activity/replay.TestSearchKeepsAgainstTheTruth",
		"servers with different clocks":                                                       "activity/store.TestGapsOfAFleet",
		"recorded traffic of a policy or host that the claim is not about":                    "internal/cli.TestSearchGuard",
		"a period without traffic, or a period that starts before the first recorded request": "internal/cli.TestSearchGuard", "a search engine that has not sent any request": "activity/replay.TestSearchKeeps",
		"verified and unverified requests, counted together": "activity/replay.TestSearchLossEqualsAnIndependentCount", "an access log without its end, in another format, or without User-Agents": "internal/cli.TestSearchGuard",
		"a server that treats limits, impostors or letter case differently from what the claim assumes": "activity/replay.TestSearchLossEqualsAnIndependentCount",
		"the site's own robots.txt": "internal/cli.TestCommandsKnowTheFileBelow", "options of the Caddyfile": loads + "a command uses the options verify and merge only if you give them to the command; a running server uses those in its Caddyfile",
		"a crawler whose identity cannot be proven": "internal/cli.TestSearchGuard", "outdated address lists": loads + "replay uses the address lists in the program, and computes their age for the day of the request. The server may have used other lists on that day",
		"crawlers that follow the group of another crawler in robots.txt": "activity/replay.TestSearchLossEqualsAnIndependentCount", "user-agent patterns that also match other crawlers": "activity/replay.TestSearchKeeps",
		"a server whose crawler catalog differs from the one that the claim was made with": "internal/cli.TestSearchGuard", "rules that end on a date": "internal/cli.TestSearchGuard", "no previous policy for the comparison": "activity/replay.TestSearchKeeps", "a time when the site or the server was down": "internal/cli.TestSearchGuard",
		"two rules with the same name in the records": "activity/replay.TestSearchLossEqualsAnIndependentCount",
	}, "the claim is only about rules and requests, and not about what crawlers have read, or what was published or signed"},
	"ready": {map[string]string{"no previous policy for the comparison": "activity/replay.TestSearchKeeps"}, "if the claim search-keeps cannot be judged, this claim cannot be judged either (TestReady). All other conditions of this claim are only about the draft"},
	"nothing-changes": {map[string]string{
		"settings of the policy that do not change decisions": "site/compare.TestEveryKeyIsCompared", "a server that treats limits, impostors or letter case differently from what the claim assumes": "site/compare.TestEveryKeyIsCompared",
		"user-agent patterns that also match other crawlers": "site/compare.TestEveryKeyIsCompared", "crawlers that follow the group of another crawler in robots.txt": "site/compare.TestEveryKeyIsCompared",
		"the site's own robots.txt": "internal/cli.TestCommandsKnowTheFileBelow", "a server whose crawler catalog differs from the one that the claim was made with": "internal/caddyside/catalogstore.TestSearchLosesByCatalog",
	}, "the claim compares two files under one program and one Caddyfile, and does not depend on traffic, lists, clocks or servers"},
	"no-alarm": {map[string]string{
		"unrecorded requests": "console.TestNothingReassuresAboveAGap", "a server that is silent or down, or has not sent all rows to the fleet database": "console.TestNothingReassuresAboveAGap", "servers with different clocks": "activity/store.TestGapsOfAFleet",
		"tests in the policy that are not run again when a rule ends on a date": "source.TestDatesAreAskedAgain", "outdated address lists": "internal/cli.TestCheckSaysWhatCannotBeProven", "a crawler whose identity cannot be proven": "internal/cli.TestCheckSaysWhatCannotBeProven",
		"an evidence log that is incomplete, or was restored from a backup": "console.TestHealthVerifiesTheEvidence",
		"deleted data, or an older copy of the data":                        "activity/store.TestKilledIsAGap",
	}, "the claim sums up alerts and warnings, and each of them has a test. The page with the claim lists what was checked"},
	"none-blocked-unmeant": {map[string]string{
		"unrecorded requests": "console.TestNothingReassuresAboveAGap", "a server that is silent or down, or has not sent all rows to the fleet database": "console.TestNothingReassuresAboveAGap",
		"verified and unverified requests, counted together": "console.TestClaimsAreOfOneIdentity", "two rules with the same name in the records": "console.TestIntendedIsTheRuleItself",
	}, "the claim counts requests that servers recorded as blocked in 24 hours, whatever the policy or the catalog was"},
	"in-force":        {map[string]string{"a time when the site or the server was down": "activity/store.TestInForceOnlyAsRecorded", "tests in the policy that are not run again when a rule ends on a date": "source.TestDatesAreAskedAgain"}, "the claim repeats what servers recorded each minute"},
	"none-unrecorded": {map[string]string{"deleted data, or an older copy of the data": "activity/store.TestKilledIsAGap", "unrecorded requests": "console.TestNothingReassuresAboveAGap", "a server that is silent or down, or has not sent all rows to the fleet database": "console.TestNothingReassuresAboveAGap", "servers with different clocks": "activity/store.TestGapsOfAFleet"}, "the claim is only about whether the server stored each request"},
	"has-read": {map[string]string{
		"a robots.txt that only clients with the crawler's name but a different identity have read": "console.TestClaimsAreOfOneIdentity", "a robots.txt with several forms (http, https, merged), if the crawler has read only one of them": "console.TestClaimsAreOfOneIdentity", "verified and unverified requests, counted together": "console.TestClaimsAreOfOneIdentity",
		"a server that is silent or down, or has not sent all rows to the fleet database": "console.TestNothingReassuresAboveAGap",
	}, "the claim is only about the text of robots.txt, as servers sent it to crawlers"},
	"obeyed": {map[string]string{
		"a robots.txt that only clients with the crawler's name but a different identity have read": "console.TestClaimsAreOfOneIdentity", "a robots.txt with several forms (http, https, merged), if the crawler has read only one of them": "console.TestClaimsAreOfOneIdentity", "verified and unverified requests, counted together": "console.TestClaimsAreOfOneIdentity",
		"unrecorded requests": "console.TestNothingReassuresAboveAGap", "a server that is silent or down, or has not sent all rows to the fleet database": "console.TestNothingReassuresAboveAGap",
		"a crawler whose identity cannot be proven": "console.TestClaimsAreOfOneIdentity",
	}, "the claim compares each request with the text that clients with this identity had fetched before"},
	"did-not-ask": {map[string]string{
		"deleted data, or an older copy of the data": "activity/store.TestKilledIsAGap", "a period without traffic, or a period that starts before the first recorded request": "console.TestClaimsAreOfOneIdentity",
		"verified and unverified requests, counted together": "console.TestClaimsAreOfOneIdentity", "database rows that count the requests for several paths together": "console.TestClaimsAreOfOneIdentity", "unrecorded requests": "console.TestNothingReassuresAboveAGap",
		"a server that is silent or down, or has not sent all rows to the fleet database": "console.TestNothingReassuresAboveAGap",
	}, "the claim counts requests that servers recorded for one path, whatever the policy was"},
	"may-crawl":        {map[string]string{"the site's own robots.txt": "internal/cli.TestCommandsKnowTheFileBelow", "a server that treats limits, impostors or letter case differently from what the claim assumes": "integration_test/agreement.TestAgreement", "a crawler whose identity cannot be proven": "site.TestMayCrawl"}, "the claim is only about one page, one client and one policy, and does not depend on traffic"},
	"tests-pass":       {map[string]string{"tests in the policy that are not run again when a rule ends on a date": "source.TestDatesAreAskedAgain", "the site's own robots.txt": "internal/cli.TestCommandsKnowTheFileBelow", "rules that end on a date": "source.TestDatesAreAskedAgain"}, "the claim is only about the tests in one file, as one version of the program runs them"},
	"same-file":        {map[string]string{"crawlers that follow the group of another crawler in robots.txt": "internal/cli.TestDiff"}, "the claim is only about two texts, and they are read by a parser that shares no code with the program"},
	"lists-current":    {map[string]string{"outdated address lists": "crawlers/identity.TestListsCurrent"}, "the claim is only about the lists that the server has"},
	"sent-all":         {map[string]string{"a server that is silent or down, or has not sent all rows to the fleet database": "console.TestSentAll"}, "the claim is only about one server and the fleet database"},
	"published":        {map[string]string{"a server that is silent or down, or has not sent all rows to the fleet database": "internal/cli.TestConfirmation"}, "the claim only repeats what the servers answered about one version"},
	"audit-clean":      {map[string]string{"a time when the site or the server was down": "audit.TestClean"}, "the claim is only about the responses that the command audit got"},
	"evidence-whole":   {map[string]string{"an evidence log that is incomplete, or was restored from a backup": "console.TestHealthVerifiesTheEvidence"}, "the claim is only about the lines of the evidence log and their signatures"},
	"evidence-last":    {map[string]string{"an evidence log that is incomplete, or was restored from a backup": "internal/cli.TestVerifyEvidence", "deleted data, or an older copy of the data": "console.TestHealthVerifiesTheEvidence"}, "the claim is only about the end of the evidence log"},
	"evidence-excerpt": {map[string]string{"an evidence log that is incomplete, or was restored from a backup": "console.TestEvidenceDownload"}, "the claim is only about the excerpt and its signature"},
}

// claimSays maps each claim to the sentence that it asserts.
var claimSays = map[string]string{
	"audit-clean":          "the audit found no error",
	"did-not-ask":          "no request for this page has the name of this crawler",
	"evidence-excerpt":     "this excerpt of the evidence log was signed, and was not changed after that",
	"evidence-last":        "the evidence log still contains the line that was its last line when the end of the log was copied to another place",
	"evidence-whole":       "the evidence log was not changed or damaged, and is signed",
	"has-read":             "each crawler that reads robots.txt has read the version in force",
	"in-force":             "this version is in force",
	"lists-current":        "no list of addresses or keys is out of date",
	"may-crawl":            "this crawler may crawl this page",
	"no-alarm":             "there is no alert and no warning",
	"none-blocked-unmeant": "no request of a verified search engine was blocked, except by rules with the key intended",
	"none-unrecorded":      "all requests were recorded",
	"nothing-changes":      "the two policies have the same effect and the same text of robots.txt",
	"obeyed":               "this crawler obeyed the robots.txt that it had read",
	"published":            "the servers have loaded the new version",
	"ready":                "this draft can be published",
	"same-file":            "a parser of robots.txt gets the same answers from both files",
	"search-keeps":         "search engines lose nothing, except because of rules with the key intended",
	"sent-all":             "this server has sent all its totals to the fleet database",
	"tests-pass":           "the tests in the policy pass",
}

// TestClaimsPage compares the table of claims and blind spots with the claims that the program can make, and with the
// tests that exist.
func TestClaimsPage(t *testing.T) {
	known := testsOfTheModule(t)
	var b strings.Builder
	for _, c := range claim.All() {
		m, ok := claimMatrix[c.Name]
		if !ok {
			t.Errorf("the table has no row for the claim %s", c.Name)
			continue
		}
		if claimSays[c.Name] == "" {
			t.Errorf("claimSays does not have the claim %s", c.Name)
		}
		fmt.Fprintf(&b, "### %s: %s\n\n| blind spot | test |\n| --- | --- |\n", c.Name, claimSays[c.Name])
		for _, spot := range blindSpotNames {
			switch cell := m.cells[spot]; {
			case cell == "":
			case strings.HasPrefix(cell, loads):
				fmt.Fprintf(&b, "| %s | **open**: %s |\n", spot, strings.TrimPrefix(cell, loads))
			case !known[cell]:
				t.Errorf("%s: there is no test %s", c.Name, cell)
			default:
				pkg, name, _ := strings.Cut(cell, ".Test")
				fmt.Fprintf(&b, "| %s | `%s` in `%s` |\n", spot, "Test"+name, pkg)
			}
		}
		fmt.Fprintf(&b, "| all others | cannot matter: %s |\n\n", m.rest)
		for spot := range maps.Keys(m.cells) {
			if !slices.Contains(blindSpotNames, spot) {
				t.Errorf("%s: %q is not a blind spot", c.Name, spot)
			}
		}
	}
	const page, start, end = "../docs/contributing/claims.md", "<!-- claims -->\n", "<!-- end of claims -->\n"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), start)
	was, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatal("the page has no place for the table")
	}
	if *updateClaims {
		if err := os.WriteFile(page, []byte(before+start+b.String()+end+after), 0o600); err != nil {
			t.Fatal(err)
		}
	} else if was != b.String() {
		t.Errorf("%s is out of date: go test ./console -run TestClaimsPage -update", page)
	}
}

// testsOfTheModule returns the packages and names of all tests, such as site/compare.TestEveryKeyIsCompared.
func testsOfTheModule(t *testing.T) map[string]bool {
	t.Helper()
	all, test := map[string]bool{}, regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)
	err := filepath.WalkDir("..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range test.FindAllStringSubmatch(string(text), -1) {
			all[strings.TrimPrefix(filepath.ToSlash(filepath.Dir(path)), "../")+"."+m[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
