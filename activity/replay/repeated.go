// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"

	"github.com/robotspolicy/caddy-robots-policy/activity/accesslog"
	"github.com/robotspolicy/caddy-robots-policy/claim"
)

// sample is the hash of a crawler's request in a log. If two logs have equal samples, they probably contain the same
// requests. The first sampledFirst requests of each log are sampled. A later request is sampled only if its hash is
// divisible by sampledOf. So if a later request is in two logs, it is sampled in both or in neither.
type sample struct {
	file int
	sum  uint64
}

const (
	sampledFirst = 4096
	sampledOf    = 256
	// Two logs probably contain the same requests if they have at least commonEnough common samples. If one of the logs
	// has fewer samples, all of its samples must be common.
	commonEnough = 10
)

func (t *tally) sample(r *accesslog.Record) {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%d %s %s %s %s", r.Time.UnixNano(), r.ClientIP, r.Host, r.Target, r.UserAgent)
	if sum := h.Sum64(); t.sampled[r.File] < sampledFirst || sum%sampledOf == 0 {
		t.sampled[r.File]++
		t.samples[sample{r.File, sum}] = true
	}
}

// repeated returns a gap for each pair of logs that contain the same requests.
func (t *tally) repeated(names []string) (gaps []claim.Gap) {
	of, in := map[int]int{}, map[uint64][]int{} // of: number of samples of each file; in: files that contain a sample
	for s := range t.samples {
		of[s.file]++
		in[s.sum] = append(in[s.sum], s.file)
	}
	common := map[[2]int]int{}
	for _, files := range in {
		slices.Sort(files)
		for i, a := range files {
			for _, b := range files[i+1:] {
				common[[2]int{a, b}]++
			}
		}
	}
	for _, pair := range slices.SortedFunc(maps.Keys(common), func(a, b [2]int) int { return cmp.Or(a[0]-b[0], a[1]-b[1]) }) {
		if n := common[pair]; n >= min(commonEnough, of[pair[0]], of[pair[1]]) {
			gaps = append(gaps, claim.Gap{
				Name: gapRepeated, What: names[pair[0]] + " and " + names[pair[1]] + " have requests in common, which are counted twice", Close: "give each log only once",
			})
		}
	}
	return gaps
}

// repeatedIn returns a gap if stored, the tally of the activity database, and t, the tally of the logs, have requests
// from the same period.
func (t *tally) repeatedIn(o *Options, stored *tally) (gaps []claim.Gap) {
	if t.requests == 0 || stored.requests == 0 || stored.first.After(t.last) || t.first.After(stored.last) {
		return nil
	}
	return append(gaps, claim.Gap{
		Name: gapRepeated, What: "the logs and " + o.StoreName + " cover the same period, so some requests may be counted twice",
		Close: "use only one of them, or limit the period with --since and --until",
	})
}
