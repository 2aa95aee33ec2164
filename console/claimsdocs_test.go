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
	"unrecorded requests", "rows whose paths were summed up", "a deleted database, or an older copy of it", "a server that is silent or down, or has unsent rows",
	"servers with different clocks", "traffic for another policy or host", "a period without traffic, or a first week", "a search engine that never came",
	"verified and unverified requests mixed", "a log that is cut, of another format, or without User-Agents", "the server's treatment of limits, impostors and letter case",
	"settings that do not change decisions", "the site's own robots.txt", "options of the Caddyfile", "an identity that cannot be proven", "outdated address lists",
	"crawlers that follow another crawler's group", "user-agent patterns that also match other crawlers", "another catalog", "dates in the policy that pass", "tests of the policy that do not run again",
	"no previous policy", "rules with the same name", "a version read by another identity", "robots.txt in another form", "restored or incomplete evidence", "an outage",
}

// judged describes how the program handles each blind spot of one claim. A cell of the table has the package and the
// name of the test that makes the blind spot happen, or says that the blind spot is open. rest is the reason why the
// other blind spots cannot make the claim false.
type judged struct {
	cells map[string]string
	rest  string
}

const loads = "open: "

var claimMatrix = map[string]judged{
	"search-keeps": {map[string]string{
		"unrecorded requests": "activity/replay.TestSearchKeeps", "rows whose paths were summed up": "activity/replay.TestSearchKeepsWithRowsThatLackData",
		"a deleted database, or an older copy of it":          "activity/store.TestKilledIsAGap",
		"a server that is silent or down, or has unsent rows": "activity/replay.TestSearchKeepsAgainstTheTruth",
		"servers with different clocks":                       "activity/store.TestGapsOfAFleet",
		"traffic for another policy or host":                  "internal/cli.TestSearchGuard",
		"a period without traffic, or a first week":           "internal/cli.TestSearchGuard", "a search engine that never came": "activity/replay.TestSearchKeeps",
		"verified and unverified requests mixed": "activity/replay.TestSearchLossEqualsAnIndependentCount", "a log that is cut, of another format, or without User-Agents": "internal/cli.TestSearchGuard",
		"the server's treatment of limits, impostors and letter case": "activity/replay.TestSearchLossEqualsAnIndependentCount",
		"the site's own robots.txt":                                   "internal/cli.TestCommandsKnowTheFileBelow", "options of the Caddyfile": loads + "the command sees verify and merge only if they are given to it; a running server judges with its own",
		"an identity that cannot be proven": "internal/cli.TestSearchGuard", "outdated address lists": loads + "replay asks the lists of the program as of the day of the request",
		"crawlers that follow another crawler's group": "activity/replay.TestSearchLossEqualsAnIndependentCount", "user-agent patterns that also match other crawlers": "activity/replay.TestSearchKeeps",
		"another catalog": "internal/cli.TestSearchGuard", "dates in the policy that pass": "internal/cli.TestSearchGuard", "no previous policy": "activity/replay.TestSearchKeeps", "an outage": "internal/cli.TestSearchGuard",
		"rules with the same name": "activity/replay.TestSearchLossEqualsAnIndependentCount",
	}, "it is about rules and requests, not about what was read, published or signed"},
	"ready": {map[string]string{"no previous policy": "activity/replay.TestSearchKeeps"}, "it has the gaps of search-keeps (TestReady), and its other conditions are about the draft alone"},
	"nothing-changes": {map[string]string{
		"settings that do not change decisions": "site/compare.TestEveryKeyIsCompared", "the server's treatment of limits, impostors and letter case": "site/compare.TestEveryKeyIsCompared",
		"user-agent patterns that also match other crawlers": "site/compare.TestEveryKeyIsCompared", "crawlers that follow another crawler's group": "site/compare.TestEveryKeyIsCompared",
		"the site's own robots.txt": "internal/cli.TestCommandsKnowTheFileBelow", "another catalog": "internal/caddyside/catalogstore.TestSearchLosesByCatalog",
	}, "it compares two files under one program and one Caddyfile; no traffic, list, clock or server is part of it"},
	"no-alarm": {map[string]string{
		"unrecorded requests": "console.TestNothingReassuresAboveAGap", "a server that is silent or down, or has unsent rows": "console.TestNothingReassuresAboveAGap", "servers with different clocks": "activity/store.TestGapsOfAFleet",
		"tests of the policy that do not run again": "source.TestDatesAreAskedAgain", "outdated address lists": "internal/cli.TestCheckSaysWhatCannotBeProven", "an identity that cannot be proven": "internal/cli.TestCheckSaysWhatCannotBeProven",
		"restored or incomplete evidence":            "console.TestHealthVerifiesTheEvidence",
		"a deleted database, or an older copy of it": "activity/store.TestKilledIsAGap",
	}, "it sums up notices, each of which has its own test; it says what was checked, not more"},
	"none-blocked-unmeant": {map[string]string{
		"unrecorded requests": "console.TestNothingReassuresAboveAGap", "a server that is silent or down, or has unsent rows": "console.TestNothingReassuresAboveAGap",
		"verified and unverified requests mixed": "console.TestClaimsAreOfOneIdentity", "rules with the same name": "console.TestIntendedIsTheRuleItself",
	}, "it counts what servers recorded as blocked in 24 hours, whatever the file or the catalog said"},
	"in-force":        {map[string]string{"an outage": "activity/store.TestInForceOnlyAsRecorded", "tests of the policy that do not run again": "source.TestDatesAreAskedAgain"}, "it is what servers recorded each minute"},
	"none-unrecorded": {map[string]string{"a deleted database, or an older copy of it": "activity/store.TestKilledIsAGap", "unrecorded requests": "console.TestNothingReassuresAboveAGap", "a server that is silent or down, or has unsent rows": "console.TestNothingReassuresAboveAGap", "servers with different clocks": "activity/store.TestGapsOfAFleet"}, "it is about the recorders alone"},
	"has-read": {map[string]string{
		"a version read by another identity": "console.TestClaimsAreOfOneIdentity", "robots.txt in another form": "console.TestClaimsAreOfOneIdentity", "verified and unverified requests mixed": "console.TestClaimsAreOfOneIdentity",
		"a server that is silent or down, or has unsent rows": "console.TestNothingReassuresAboveAGap",
	}, "it is about the robots.txt that crawlers fetched, by its text as it was sent"},
	"obeyed": {map[string]string{
		"a version read by another identity": "console.TestClaimsAreOfOneIdentity", "robots.txt in another form": "console.TestClaimsAreOfOneIdentity", "verified and unverified requests mixed": "console.TestClaimsAreOfOneIdentity",
		"unrecorded requests": "console.TestNothingReassuresAboveAGap", "a server that is silent or down, or has unsent rows": "console.TestNothingReassuresAboveAGap",
		"an identity that cannot be proven": "console.TestClaimsAreOfOneIdentity",
	}, "it compares each request with the text that this identity had fetched before"},
	"did-not-ask": {map[string]string{
		"a deleted database, or an older copy of it": "activity/store.TestKilledIsAGap", "a period without traffic, or a first week": "console.TestClaimsAreOfOneIdentity",
		"verified and unverified requests mixed": "console.TestClaimsAreOfOneIdentity", "rows whose paths were summed up": "console.TestClaimsAreOfOneIdentity", "unrecorded requests": "console.TestNothingReassuresAboveAGap",
		"a server that is silent or down, or has unsent rows": "console.TestNothingReassuresAboveAGap",
	}, "it counts what servers recorded for one path, whatever the policy said"},
	"may-crawl":        {map[string]string{"the site's own robots.txt": "internal/cli.TestCommandsKnowTheFileBelow", "the server's treatment of limits, impostors and letter case": "integration_test/agreement.TestAgreement", "an identity that cannot be proven": "site.TestMayCrawl"}, "it is about one page, one client and one policy; no traffic is part of it"},
	"tests-pass":       {map[string]string{"tests of the policy that do not run again": "source.TestDatesAreAskedAgain", "the site's own robots.txt": "internal/cli.TestCommandsKnowTheFileBelow", "dates in the policy that pass": "source.TestDatesAreAskedAgain"}, "it is about the tests in one file under one program"},
	"same-file":        {map[string]string{"crawlers that follow another crawler's group": "internal/cli.TestDiff"}, "it is about two texts, read by a reader that shares no code with the program"},
	"lists-current":    {map[string]string{"outdated address lists": "crawlers/identity.TestListsCurrent"}, "it is about the lists that the server has"},
	"sent-all":         {map[string]string{"a server that is silent or down, or has unsent rows": "console.TestSentAll"}, "it is about one server and the fleet's database"},
	"published":        {map[string]string{"a server that is silent or down, or has unsent rows": "internal/cli.TestConfirmation"}, "it repeats the answers of servers about one text"},
	"audit-clean":      {map[string]string{"an outage": "audit.TestClean"}, "it is about what one client read from outside"},
	"evidence-whole":   {map[string]string{"restored or incomplete evidence": "console.TestHealthVerifiesTheEvidence"}, "it is about the lines of a file and their signatures"},
	"evidence-last":    {map[string]string{"restored or incomplete evidence": "internal/cli.TestVerifyEvidence", "a deleted database, or an older copy of it": "console.TestHealthVerifiesTheEvidence"}, "it is about the end of a file"},
	"evidence-excerpt": {map[string]string{"restored or incomplete evidence": "console.TestEvidenceDownload"}, "it is about a file and its signature"},
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
		fmt.Fprintf(&b, "### %s\n\n| blind spot | test |\n| --- | --- |\n", c.Name)
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
