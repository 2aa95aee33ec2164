// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"
	"golang.org/x/sync/semaphore"

	"github.com/robotspolicy/caddy-robots-policy/claim"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/deadline"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
	"github.com/robotspolicy/caddy-robots-policy/site"
	"github.com/robotspolicy/caddy-robots-policy/source"
)

// These constants limit the bytes of a draft and of the form that contains it, and the time for a check.
const (
	maxDraft     = 512 << 10
	maxForm      = maxDraft + 64<<10
	draftTimeout = 8 * time.Second
)

// checking allows only one check at a time, because a check costs time and memory.
var checking = semaphore.NewWeighted(1)

// check is the function that checks a draft. Tests replace it.
var check = newDraft

// draft holds a policy text that has been checked, and the results.
type draft struct {
	site        *site.Site // nil if the text has errors
	Diagnostics policyfile.Diagnostics
	Tests       []policyfile.TestResult
	Failing     int
	TestsPass   claim.Claim
	Errors      int
	Warnings    int
}

var (
	errTooLong  = fmt.Errorf("the draft is longer than %d KiB", maxDraft>>10)
	errPanicked = errors.New("checking this draft failed because of an error in the program; undo your last change, and report the error, which is in the log of the server")
	errTooSlow  = errors.New("checking the draft takes too long; shorten it: use categories instead of single crawlers, and wildcards for hosts")
)

// checkDraft checks the text of a draft with newDraft. It returns an error if the text is too long, if the check takes
// too long, or if other checks do not end in time for this check to begin.
func checkDraft(ctx context.Context, name, text string, returns source.Return) (*draft, error) {
	if len(text) > maxDraft {
		return nil, statusError{http.StatusRequestEntityTooLarge, errTooLong}
	}
	wait, stop := context.WithTimeout(ctx, draftTimeout)
	defer stop()
	if checking.Acquire(wait, 1) != nil {
		return nil, failed(http.StatusServiceUnavailable, "other drafts are being checked; try again in a few seconds")
	}
	d, err := deadline.Do(wait, "checking a draft", func(context.Context) (d *draft, err error) {
		defer checking.Release(1)
		defer func() {
			if p := recover(); p != nil {
				caddy.Log().Named("robots_policy.console").Error("panic while checking a draft", zap.Any("panic", p), zap.ByteString("stack", debug.Stack()))
				err = statusError{http.StatusInternalServerError, errPanicked}
			}
		}()
		return check(name, text, returns), nil
	})
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return nil, statusError{http.StatusServiceUnavailable, errTooSlow}
	}
	return d, err
}

// newDraft checks a text in the same way as a server that loads the text. If the only errors are failing tests of the
// policy, the draft still has a site, so that the page can show the effects of the draft.
func newDraft(name, text string, returns source.Return) *draft {
	d := new(draft)
	o := policyfile.Options{Accepted: returns == source.Undo}
	if d.site, d.Diagnostics = site.LoadWith(name, []byte(text), o); slices.ContainsFunc(d.Diagnostics, func(x policyfile.Diagnostic) bool { return x.IsFailedTest() }) {
		d.site, _ = site.LoadWith(name, []byte(text), policyfile.Options{Accepted: true})
	}
	slices.SortStableFunc(d.Diagnostics, func(a, b policyfile.Diagnostic) int { return int(b.Severity) - int(a.Severity) })
	d.Errors, d.Warnings = d.Diagnostics.Count(policy.Error), d.Diagnostics.Count(policy.Warning)
	if d.site == nil {
		return d
	}
	d.Tests = policyfile.TestResults(d.site.Policy.Spec().Expect, d.Diagnostics)
	for _, t := range d.Tests {
		d.Failing += map[claim.Outcome]int{claim.Fails: 1}[t.Outcome]
	}
	d.TestsPass = policyfile.TestsPass(d.site.Policy.Spec().Expect, d.Diagnostics)
	return d
}

// withLine adds a line at the end of the block below a top-level key of a policy file. If the key is missing, withLine
// also adds the key.
func withLine(text, key, line string) string {
	all := strings.Split(strings.TrimSuffix(strings.ReplaceAll(text, "\r\n", "\n"), "\n"), "\n")
	at := slices.IndexFunc(all, func(l string) bool { return strings.HasPrefix(l, key+":") })
	if at < 0 {
		return strings.TrimRight(text, "\n") + "\n\n" + key + ":\n" + line + "\n"
	}
	end := at + 1
	for i := at + 1; i < len(all); i++ {
		if l := all[i]; l != "" && l[0] != ' ' && l[0] != '#' && l[0] != '-' {
			break
		}
		if strings.TrimSpace(all[i]) != "" && !strings.HasPrefix(strings.TrimSpace(all[i]), "#") {
			end = i + 1
		}
	}
	return strings.Join(slices.Insert(all, end, strings.Split(line, "\n")...), "\n") + "\n"
}
