// SPDX-License-Identifier: Apache-2.0

package claim_test

import (
	"fmt"

	"github.com/robotspolicy/caddy-robots-policy/claim"
)

// visits is the subject of a claim: the number of requests that a log holds.
type visits struct {
	Requests claim.Known[int] `gap:"no-log" what:"the log was not read" close:"name the log"`
}

var noVisits = claim.Register("example-no-visits", func(v visits) claim.Finding {
	n, _ := v.Requests.Get()
	return claim.Finding{
		Fails:    n > 0,
		Text:     fmt.Sprintf("The log has %d requests", n),
		Unjudged: "Whether there were requests cannot be judged",
	}
})

// A claim holds only if no gap in the data could change the answer.
func ExampleJudge() {
	for _, v := range []visits{
		{},
		{claim.Read(0, claim.Coverage{})},
		{claim.Read(0, claim.Coverage{Gaps: []claim.Gap{{Name: "cut-lines", What: "2 lines were cut"}}})},
		{claim.Read(3, claim.Coverage{})},
	} {
		c := claim.Judge(noVisits, v)
		fmt.Printf("%s: %s %q\n", c.Outcome(), c.Text(), c.Lines())
	}
	// Output:
	// cannot be judged: Whether there were requests cannot be judged ["the log was not read; name the log; or accept the gap no-log"]
	// holds: The log has 0 requests []
	// cannot be judged: Whether there were requests cannot be judged ["2 lines were cut; or accept the gap cut-lines"]
	// fails: The log has 3 requests []
}
