// SPDX-License-Identifier: Apache-2.0

package agreement

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
)

// exceptions lists the differences that are accepted, with the reasons. For each exception, this package checks the
// actual policy, crawler and path.
var exceptions = map[string]string{
	"not-flattenable": "robots.txt is stricter where longest-match readers cannot express what the policy says; lint says where (docs/reference/messages.md)",
	"temoto: patterns with wildcards match anywhere in the path": "temoto/robotstxt tries a pattern with * or $ at any place of the path",
	"temoto: lengths of patterns with wildcards":                 "temoto/robotstxt counts the bytes of a regular expression",
	"another operator's group":                                   "a crawler that follows the group of another operator's crawler reads it unless that would be laxer than the policy",
	"content-usage-cross":                                        "the paths of preferences cross in too many ways for robots.txt, which says the stricter; lint says so (docs/reference/messages.md)",
	"acap-not-ready":                                             "ACAP 1.0 calls the qualifier not ready, so it is not published; lint says where (docs/reference/messages.md)",
	"purpose-groups-differ":                                      "a crawler of two purposes combines their groups, whose Content-Usage says the stricter; lint says so (docs/reference/messages.md)",
	"acap-purpose":                                               "ACAP cannot say it for one purpose alone, and says the stricter; lint says where (docs/reference/messages.md)",
	"acap-undecidable":                                           "ACAP ranks the patterns in no order, and takes the disallow entry; lint says where (docs/reference/messages.md)",
	"acap: upper and lower case":                                 "ACAP compares paths without case (ACAP 1.0 part 1)",
}

// Every exception must be explained in docs/contributing/agreement.md.
func TestExceptionsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/contributing/agreement.md")
	if err != nil {
		t.Fatal(err)
	}
	for name := range exceptions {
		if !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("docs/contributing/agreement.md does not name the exception %q", name)
		}
	}
}

// tally counts the questions and their results.
type tally struct {
	mu         sync.Mutex
	visits     int
	policies   int
	visitsBy   map[door]int
	policiesBy map[door]int
	answers    map[string]int            // number of answers, keyed by channel
	exceptions map[string]map[string]int // keyed by channel and name
	seen       map[string]int            // how often the questions have led to each result
}

func newTally() *tally {
	return &tally{visitsBy: map[door]int{}, policiesBy: map[door]int{}, answers: map[string]int{}, exceptions: map[string]map[string]int{}, seen: map[string]int{}}
}

func (t *tally) answer(channel string, n int) { t.answers[channel] += n }

func (t *tally) count(what string) { t.seen[what]++ }

func (t *tally) except(channel, name string) {
	if exceptions[name] == "" {
		panic("an exception without a reason: " + name)
	}
	if t.exceptions[channel] == nil {
		t.exceptions[channel] = map[string]int{}
	}
	t.exceptions[channel][name]++
}

// add adds the counts of another tally.
func (t *tally) add(u *tally) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.visits += u.visits
	t.policies += u.policies
	for d, n := range u.visitsBy {
		t.visitsBy[d] += n
		t.policiesBy[d] += u.policiesBy[d]
	}
	for k, n := range u.answers {
		t.answers[k] += n
	}
	for channel, names := range u.exceptions {
		if t.exceptions[channel] == nil {
			t.exceptions[channel] = map[string]int{}
		}
		for name, n := range names {
			t.exceptions[channel][name] += n
		}
	}
	for k, n := range u.seen {
		t.seen[k] += n
	}
}

// table returns the report as text.
func (t *tally) table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-46s %10s %10s\n", "door", "decisions", "policies")
	for _, d := range []door{caddyDoor, netHTTPDoor} {
		fmt.Fprintf(&b, "%-46s %10d %10d\n", d, t.visitsBy[d], t.policiesBy[d])
	}
	b.WriteByte('\n')
	total, excepted := 0, 0
	fmt.Fprintf(&b, "%-46s %10s %10s\n", "channel and reader", "answers", "excepted")
	for _, channel := range slices.Sorted(maps.Keys(t.answers)) {
		n := 0
		for _, k := range t.exceptions[channel] {
			n += k
		}
		fmt.Fprintf(&b, "%-46s %10d %10d\n", channel, t.answers[channel], n)
		for _, name := range slices.Sorted(maps.Keys(t.exceptions[channel])) {
			fmt.Fprintf(&b, "    %-53s %10d\n", name, t.exceptions[channel][name])
		}
		total, excepted = total+t.answers[channel], excepted+n
	}
	fmt.Fprintf(&b, "%-46s %10d %10d\n\nmet on the way:\n", "all", total, excepted)
	for _, what := range slices.Sorted(maps.Keys(t.seen)) {
		fmt.Fprintf(&b, "    %-53s %10d\n", what, t.seen[what])
	}
	return b.String()
}
