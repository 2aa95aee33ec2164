// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/robotspolicy/caddy-robots-policy/source"
)

// tokenKey makes the tokens of forms that write. It is new with every process.
var tokenKey = func() (key [32]byte) {
	_, _ = rand.Read(key[:]) // never fails
	return key
}()

const tokenPeriod = 6 * time.Hour

// token is what a form that writes must send back: a page of another site cannot read
// it. It holds for the version that the page shows.
func token(at time.Time, version string) string {
	mac := hmac.New(sha256.New, tokenKey[:])
	fmt.Fprintf(mac, "%d %s", at.Unix()/int64(tokenPeriod.Seconds()), version)
	return hex.EncodeToString(mac.Sum(nil))
}

// mayWrite reports why a request must not change anything: nil if it may. It must come
// from a page of this origin, with the token of its form.
func (v *view) mayWrite(version string) error {
	switch {
	case !v.admin:
		return failed(http.StatusForbidden, "Pages on a site are for reading. Publish through Caddy's admin API.")
	case !v.options.Write:
		return failed(http.StatusForbidden, "Publishing from here is switched off. It is switched on by console { write } in the global options of the Caddyfile.")
	}
	origin, err := url.Parse(v.r.Header.Get("Origin"))
	site := v.r.Header.Get("Sec-Fetch-Site")
	if err != nil || origin.Host == "" || origin.Host != v.r.Host || site != "" && site != "same-origin" {
		return failed(http.StatusForbidden, "This form was not sent from a page of the console.")
	}
	sent := []byte(v.r.PostFormValue("token"))
	if !hmac.Equal(sent, []byte(token(v.Now, version))) && !hmac.Equal(sent, []byte(token(v.Now.Add(-tokenPeriod), version))) {
		return failed(http.StatusForbidden, "This page is too old. Check the draft again, then publish.")
	}
	return nil
}

// publishBox says whether a draft can be published.
func (v *view) publishBox(d *changeData) publishBox {
	b := publishBox{Token: token(v.Now, d.Base), To: v.Running.Name}
	switch {
	case !v.admin:
		b.ReadOnly = "These pages are for reading. Download the file, and put it where the server reads it."
	case v.Running.document == nil || !v.Running.document.Writable():
		b.ReadOnly = "The policy is read from " + v.Running.Name + ", which the console does not write. Download the file and put it there; the server loads it by itself."
	case !v.options.Write:
		b.ReadOnly = "Publishing from here is switched off. Download the file, or switch it on with console { write } in the global options of the Caddyfile."
	}
	add := func(passes bool, good, bad string) {
		text := good
		if !passes {
			text = bad
			if b.WhyNot == "" {
				b.WhyNot = bad
			}
		}
		b.Conditions = append(b.Conditions, condition{passes, text})
	}
	good := "No errors"
	if d.Draft.Failing > 0 {
		good = "No errors, apart from the tests"
	}
	add(d.Draft.Errors-d.Draft.Failing <= 0, good, plural(d.Draft.Errors-d.Draft.Failing, "error", "errors")+" in the draft")
	if len(d.Draft.Tests) > 0 {
		add(d.Draft.Failing == 0, "All "+plural(len(d.Draft.Tests), "test", "tests")+" pass", plural(d.Draft.Failing, "test fails", "tests fail"))
	}
	if d.Draft.site != nil {
		good, bad := d.guard()
		add(bad == "", "Guard: "+good, "Guard: "+bad)
	}
	add(d.Base == d.Live, "Still based on the version in force", "Another version was published in the meantime. Compare, and start again from it.")
	add(!d.Same, "Differs from the version in force", "The draft is the version in force.")
	b.Ready = b.ReadOnly == "" && b.WhyNot == ""
	return b
}

// guard says what search engines lose by the draft: bad is empty if they lose nothing, and
// good is what shows it.
func (d *changeData) guard() (good, bad string) {
	r := d.Replay
	switch {
	case r == nil && d.Losses.Any():
		return "", "search engines lose something: " + strings.Join(d.Losses.Words(), "; ")
	case r == nil:
		return "no traffic is stored; by comparison of the two policies, search engines lose nothing that is not intended", ""
	case r.TooLong:
		return "", "whether search engines lose anything cannot be judged: there was no time to replay the traffic. Choose fewer days, and check again"
	case r.Loss.Requests > 0:
		return "", "search engines lose " + plural(r.Loss.Requests, "request", "requests") + ": " + r.Loss.Who()
	case len(r.Loss.Undecided) > 0:
		return "", "whether search engines lose anything cannot be judged: " + r.Loss.Unsaid()
	}
	good = fmt.Sprintf("%s of the last %s replayed, and search engines lose none that is not intended", plural(r.Requests, "request", "requests"), plural(r.Days, "day", "days"))
	if d.Losses.Any() {
		good += ". They lose paths that none of them requested: " + strings.Join(d.Losses.Words(), "; ")
	}
	return good, ""
}

// headline is the answer to what the draft would change.
type headline struct {
	Class, Text string
	Lines       []string
}

// Headline is for the template.
func (d *changeData) Headline() headline {
	wrong := d.Draft.Errors > 0
	good, bad := "", ""
	if !wrong {
		good, bad = d.guard()
	}
	switch r := d.Replay; {
	case wrong || bad == "" && d.Publish.WhyNot != "":
		h := headline{Class: "warning", Text: "Not ready: " + d.Publish.WhyNot}
		if wrong {
			h.Class = "alarm"
		}
		return h
	case bad == "":
		return headline{"fine", "Ready to go live", []string{sentence(good)}}
	case r != nil && r.Loss.Requests > 0:
		return headline{"alarm", "Search engines lose " + plural(r.Loss.Requests, "request", "requests") + " of the last " + plural(r.Days, "day", "days"), []string{sentence(r.Loss.Who())}}
	case r != nil:
		return headline{"warning", "Cannot be judged", []string{sentence(bad)}}
	}
	return headline{"alarm", "Search engines lose something", d.Losses.Words()}
}

// publish puts a checked draft into force.
func (v *view) publish(d *changeData) (*page, error) {
	if err := v.mayWrite(d.Base); err != nil {
		return nil, err
	}
	if !d.Publish.Ready {
		return nil, failed(http.StatusConflict, "This draft cannot be published: %s", d.Publish.WhyNot+d.Publish.ReadOnly)
	}
	return v.write(d.Base, d.Text, strings.TrimSpace(d.Note))
}

// maxNote bounds the sentence about a version.
const maxNote = 300

func (v *view) write(base, text, note string) (*page, error) {
	note = shorten(note[:min(len(note), maxNote)])
	// What has begun is finished, whether or not the browser waits for it; Publish has
	// limits of its own.
	o, err := v.Running.document.Publish(context.WithoutCancel(v.ctx), base, text, note)
	switch {
	case errors.Is(err, source.ErrOvertaken):
		return nil, failed(http.StatusConflict, "Another version was published in the meantime. Compare, and check again.")
	case errors.Is(err, source.ErrStorage):
		v.logger.Error("publishing from the console failed", zap.String("policy", v.Running.Name), zap.Error(err))
		return nil, failed(http.StatusServiceUnavailable, "Not published: %w. Try again; the page Published shows which version is in force.", err)
	case err != nil:
		return nil, failed(http.StatusConflict, "Not published: %w", err)
	}
	v.logger.Warn("a policy was published from the console", zap.String("policy", v.Running.Name), zap.String("replaces", base),
		zap.String("sha256", o.Now.SHA256), zap.String("note", note), zap.String("from", v.r.RemoteAddr))
	return &page{redirect: v.Link("published", "done", o.Now.SHA256[:12])}, nil
}

// goBack publishes a version that was in force before.
func (v *view) goBack() (*page, error) {
	base := v.r.PostFormValue("base")
	if err := v.mayWrite(base); err != nil {
		return nil, err
	}
	if v.Running == nil || v.Running.document == nil {
		return nil, failed(http.StatusNotFound, "No policy is loaded that could be replaced.")
	}
	to := v.r.PostFormValue("to")
	for _, p := range v.published() {
		if p.SHA256 != to {
			continue
		}
		d, err := checkDraft(v.ctx, v.Running.File(), p.Text)
		if err != nil {
			return nil, err
		}
		if !d.ok() {
			return nil, failed(http.StatusConflict, "This version has errors by now. Open it as a draft to see them.")
		}
		if err := v.guard(d); err != nil {
			return nil, err
		}
		return v.write(base, p.Text, "Back to "+shortVersion(to))
	}
	return nil, failed(http.StatusNotFound, "This version is not stored any more.")
}

// guard refuses a draft by which search engines lose something, as the page What would
// change does.
func (v *view) guard(draft *draft) error {
	d := &changeData{Draft: draft}
	if err := v.judge(d); err != nil {
		return err
	}
	if _, bad := d.guard(); bad != "" {
		return failed(http.StatusConflict, "Guard: %s. Open this version as a draft to see why.", bad)
	}
	return nil
}
