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
	"unrecorded requests", "rows that count several paths together", "a deleted database, or an older copy of it", "a server that is silent or down, or has unsent rows",
	"servers with different clocks", "traffic for another policy or host", "a period without traffic, or a first week", "a search engine that has not sent any request",
	"verified and unverified requests mixed", "a log that is cut off, has another format, or lacks User-Agents", "the server's treatment of limits, impostors and letter case",
	"settings that do not change decisions", "the site's own robots.txt", "options of the Caddyfile", "an identity that cannot be proven", "outdated address lists",
	"crawlers that follow another crawler's group", "user-agent patterns that also match other crawlers", "another catalog", "dates in the policy that pass", "tests in the policy that are not run again when a date passes",
	"no previous policy", "rules with the same name", "a version that other clients with the crawler's name have read, but not the clients with the identity that the claim is about", "robots.txt in another form (http, https, merged)", "restored or incomplete evidence", "an outage",
}

// judged describes how the program handles each blind spot of one claim. cells maps a blind spot to the package and the
// name of the test that makes it happen. If there is no such test, the text begins with "open: " and explains why the
// program does not detect it. rest is the reason why all other blind spots cannot make the claim false.
type judged struct {
	cells map[string]string
	rest  string
}

const loads = "open: "

var claimMatrix = map[string]judged{
	"search-keeps": {map[string]string{
		"unrecorded requests": "activity/replay.TestSearchKeeps", "rows that count several paths together": "activity/replay.TestSearchKeepsWithRowsThatLackData",
		"a deleted database, or an older copy of it":          "activity/store.TestKilledIsAGap",
		"a server that is silent or down, or has unsent rows": "activity/replay.TestSearchKeepsAgainstTheTruth",
		"servers with different clocks":                       "activity/store.TestGapsOfAFleet",
		"traffic for another policy or host":                  "internal/cli.TestSearchGuard",
		"a period without traffic, or a first week":           "internal/cli.TestSearchGuard", "a search engine that has not sent any request": "activity/replay.TestSearchKeeps",
		"verified and unverified requests mixed": "activity/replay.TestSearchLossEqualsAnIndependentCount", "a log that is cut off, has another format, or lacks User-Agents": "internal/cli.TestSearchGuard",
		"the server's treatment of limits, impostors and letter case": "activity/replay.TestSearchLossEqualsAnIndependentCount",
		"the site's own robots.txt":                                   "internal/cli.TestCommandsKnowTheFileBelow", "options of the Caddyfile": loads + "a command uses the options verify and merge only if you give them to the command; a running server uses those in its Caddyfile",
		"an identity that cannot be proven": "internal/cli.TestSearchGuard", "outdated address lists": loads + "replay uses the address lists of the program, with the age that they had on the day of the request",
		"crawlers that follow another crawler's group": "activity/replay.TestSearchLossEqualsAnIndependentCount", "user-agent patterns that also match other crawlers": "activity/replay.TestSearchKeeps",
		"another catalog": "internal/cli.TestSearchGuard", "dates in the policy that pass": "internal/cli.TestSearchGuard", "no previous policy": "activity/replay.TestSearchKeeps", "an outage": "internal/cli.TestSearchGuard",
		"rules with the same name": "activity/replay.TestSearchLossEqualsAnIndependentCount",
	}, "the claim is only about rules and requests, and not about what crawlers have read, or what was published or signed"},
	"ready": {map[string]string{"no previous policy": "activity/replay.TestSearchKeeps"}, "the claim cannot be judged if search-keeps cannot be judged (TestReady), and its other conditions are only about the draft"},
	"nothing-changes": {map[string]string{
		"settings that do not change decisions": "site/compare.TestEveryKeyIsCompared", "the server's treatment of limits, impostors and letter case": "site/compare.TestEveryKeyIsCompared",
		"user-agent patterns that also match other crawlers": "site/compare.TestEveryKeyIsCompared", "crawlers that follow another crawler's group": "site/compare.TestEveryKeyIsCompared",
		"the site's own robots.txt": "internal/cli.TestCommandsKnowTheFileBelow", "another catalog": "internal/caddyside/catalogstore.TestSearchLosesByCatalog",
	}, "the claim compares two files under one program and one Caddyfile, and does not depend on traffic, lists, clocks or servers"},
	"no-alarm": {map[string]string{
		"unrecorded requests": "console.TestNothingReassuresAboveAGap", "a server that is silent or down, or has unsent rows": "console.TestNothingReassuresAboveAGap", "servers with different clocks": "activity/store.TestGapsOfAFleet",
		"tests in the policy that are not run again when a date passes": "source.TestDatesAreAskedAgain", "outdated address lists": "internal/cli.TestCheckSaysWhatCannotBeProven", "an identity that cannot be proven": "internal/cli.TestCheckSaysWhatCannotBeProven",
		"restored or incomplete evidence":            "console.TestHealthVerifiesTheEvidence",
		"a deleted database, or an older copy of it": "activity/store.TestKilledIsAGap",
	}, "the claim sums up alerts, and each alert has a test. The claim only says what was checked"},
	"none-blocked-unmeant": {map[string]string{
		"unrecorded requests": "console.TestNothingReassuresAboveAGap", "a server that is silent or down, or has unsent rows": "console.TestNothingReassuresAboveAGap",
		"verified and unverified requests mixed": "console.TestClaimsAreOfOneIdentity", "rules with the same name": "console.TestIntendedIsTheRuleItself",
	}, "the claim counts requests that servers recorded as blocked in 24 hours, whatever the policy or the catalog was"},
	"in-force":        {map[string]string{"an outage": "activity/store.TestInForceOnlyAsRecorded", "tests in the policy that are not run again when a date passes": "source.TestDatesAreAskedAgain"}, "the claim repeats what servers recorded each minute"},
	"none-unrecorded": {map[string]string{"a deleted database, or an older copy of it": "activity/store.TestKilledIsAGap", "unrecorded requests": "console.TestNothingReassuresAboveAGap", "a server that is silent or down, or has unsent rows": "console.TestNothingReassuresAboveAGap", "servers with different clocks": "activity/store.TestGapsOfAFleet"}, "the claim is only about whether the recorders stored each request"},
	"has-read": {map[string]string{
		"a version that other clients with the crawler's name have read, but not the clients with the identity that the claim is about": "console.TestClaimsAreOfOneIdentity", "robots.txt in another form (http, https, merged)": "console.TestClaimsAreOfOneIdentity", "verified and unverified requests mixed": "console.TestClaimsAreOfOneIdentity",
		"a server that is silent or down, or has unsent rows": "console.TestNothingReassuresAboveAGap",
	}, "the claim is only about the text of robots.txt, as servers sent it to crawlers"},
	"obeyed": {map[string]string{
		"a version that other clients with the crawler's name have read, but not the clients with the identity that the claim is about": "console.TestClaimsAreOfOneIdentity", "robots.txt in another form (http, https, merged)": "console.TestClaimsAreOfOneIdentity", "verified and unverified requests mixed": "console.TestClaimsAreOfOneIdentity",
		"unrecorded requests": "console.TestNothingReassuresAboveAGap", "a server that is silent or down, or has unsent rows": "console.TestNothingReassuresAboveAGap",
		"an identity that cannot be proven": "console.TestClaimsAreOfOneIdentity",
	}, "the claim compares each request with the text that clients with this identity had fetched before"},
	"did-not-ask": {map[string]string{
		"a deleted database, or an older copy of it": "activity/store.TestKilledIsAGap", "a period without traffic, or a first week": "console.TestClaimsAreOfOneIdentity",
		"verified and unverified requests mixed": "console.TestClaimsAreOfOneIdentity", "rows that count several paths together": "console.TestClaimsAreOfOneIdentity", "unrecorded requests": "console.TestNothingReassuresAboveAGap",
		"a server that is silent or down, or has unsent rows": "console.TestNothingReassuresAboveAGap",
	}, "the claim counts requests that servers recorded for one path, whatever the policy was"},
	"may-crawl":        {map[string]string{"the site's own robots.txt": "internal/cli.TestCommandsKnowTheFileBelow", "the server's treatment of limits, impostors and letter case": "integration_test/agreement.TestAgreement", "an identity that cannot be proven": "site.TestMayCrawl"}, "the claim is only about one page, one client and one policy, and does not depend on traffic"},
	"tests-pass":       {map[string]string{"tests in the policy that are not run again when a date passes": "source.TestDatesAreAskedAgain", "the site's own robots.txt": "internal/cli.TestCommandsKnowTheFileBelow", "dates in the policy that pass": "source.TestDatesAreAskedAgain"}, "the claim is only about the tests in one file, as one version of the program runs them"},
	"same-file":        {map[string]string{"crawlers that follow another crawler's group": "internal/cli.TestDiff"}, "the claim is only about two texts, and they are read by a parser that shares no code with the program"},
	"lists-current":    {map[string]string{"outdated address lists": "crawlers/identity.TestListsCurrent"}, "the claim is only about the lists that the server has"},
	"sent-all":         {map[string]string{"a server that is silent or down, or has unsent rows": "console.TestSentAll"}, "the claim is only about one server and the fleet database"},
	"published":        {map[string]string{"a server that is silent or down, or has unsent rows": "internal/cli.TestConfirmation"}, "the claim only repeats what the servers answered about one version"},
	"audit-clean":      {map[string]string{"an outage": "audit.TestClean"}, "the claim is only about the responses that one client got from outside"},
	"evidence-whole":   {map[string]string{"restored or incomplete evidence": "console.TestHealthVerifiesTheEvidence"}, "the claim is only about the lines of a file and their signatures"},
	"evidence-last":    {map[string]string{"restored or incomplete evidence": "internal/cli.TestVerifyEvidence", "a deleted database, or an older copy of it": "console.TestHealthVerifiesTheEvidence"}, "the claim is only about the end of a file"},
	"evidence-excerpt": {map[string]string{"restored or incomplete evidence": "console.TestEvidenceDownload"}, "the claim is only about a file and its signature"},
}

// claimSays maps each claim to the sentence that it asserts.
var claimSays = map[string]string{
	"audit-clean":          "the audit found no error",
	"did-not-ask":          "no request for this page has the name of this crawler",
	"evidence-excerpt":     "this excerpt of the evidence log was signed with the key of its owner, and was not changed",
	"evidence-last":        "the evidence log still contains the line that was its last line when the end of the log was copied to another place",
	"evidence-whole":       "the evidence log was not changed or damaged, and is signed",
	"has-read":             "each crawler that reads robots.txt has read the version in force",
	"in-force":             "this version is in force",
	"lists-current":        "no list of addresses or keys is out of date",
	"may-crawl":            "this crawler may crawl this page",
	"no-alarm":             "there is no alert",
	"none-blocked-unmeant": "no request of a verified search engine was blocked, except by rules that intend this",
	"none-unrecorded":      "all requests were recorded",
	"nothing-changes":      "the two policies have the same effect",
	"obeyed":               "this crawler obeyed the robots.txt that it had read",
	"published":            "the servers have loaded the new version",
	"ready":                "this draft can be published",
	"same-file":            "a parser of robots.txt gets the same answers from both files",
	"search-keeps":         "search engines lose nothing, except because of rules that intend the loss",
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
