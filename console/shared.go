// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/policies"
	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/recorders"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
	"github.com/robotspolicy/caddy-robots-policy/site"
	"github.com/robotspolicy/caddy-robots-policy/site/compare"
	"github.com/robotspolicy/caddy-robots-policy/source"
)

// These constants are the names of people's actions in the evidence log.
const (
	actDraft    = "draft"
	actApproval = "approval"
	actDiscard  = "discard"
	actPublish  = "version"
	actUndo     = "undo"
	actReturn   = "return"
)

// sharedDraft returns the saved draft of the policy. It returns nil if no draft is saved, if the draft is already in
// force, or if the person may not see it.
func (v *view) sharedDraft() (*source.Draft, error) {
	if v.Running == nil || v.Running.document == nil || !v.showsText() {
		return nil, nil
	}
	draft, err := v.Running.document.Draft(v.ctx)
	if err != nil {
		return nil, failed(http.StatusServiceUnavailable, "%w", err)
	}
	if draft != nil && (draft.Text == v.Running.Text || !v.mayRead(draft.Text)) {
		return nil, nil // the draft is already published, or this person may not see it
	}
	return draft, nil
}

// mayRead reports whether the person may see text, which is a version or a draft of the policy.
func (v *view) mayRead(text string) bool {
	if v.may == nil {
		return true
	}
	f, _ := policyfile.LoadWith("policy", []byte(text), policyfile.Options{Accepted: true})
	return f != nil && v.onlyNames(f.Spec)
}

// staysInside reports whether the policies before and after differ only in decisions and tests about hosts that the
// person may see.
func (v *view) staysInside(before, after *site.Site) bool {
	if v.may == nil {
		return true
	}
	if v.outside(before) != v.outside(after) {
		return false
	}
	for _, e := range before.File.Spec.Expect {
		e.Pos = policy.Pos{}
		if (e.Host == "" || !slices.Contains(v.may, e.Host)) && !slices.ContainsFunc(after.File.Spec.Expect, func(o policy.Expectation) bool { o.Pos = policy.Pos{}; return o == e }) {
			return false
		}
	}
	d := compare.Sites(before, after, compare.Options{Now: v.Now})
	return d.Complete && !slices.ContainsFunc(d.Changes, func(c compare.Change) bool {
		return len(c.Hosts) == 0 || slices.ContainsFunc(c.Hosts, func(h string) bool { return !slices.Contains(v.may, h) })
	})
}

// outside returns the part of a policy that the person may not change, as a text that can be compared with the part of
// another policy. It leaves out the policy's tests, and the rules that are only for hosts the person may see.
func (v *view) outside(s *site.Site) string {
	spec := *s.File.Spec
	spec.Expect = nil
	spec.Rules = slices.DeleteFunc(slices.Clone(spec.Rules), func(r policy.Rule) bool {
		return len(r.Hosts) > 0 && !slices.ContainsFunc(r.Hosts, func(h policy.Host) bool { return !slices.Contains(v.may, string(h)) })
	})
	return string(policyfile.PrintWith(&spec, policyfile.PrintOptions{Catalog: s.File.Catalog}))
}

// signs records an action and its author, in the log and in the evidence log.
func (v *view) signs(action, text string, by source.Signed) {
	v.logger.Warn("the policy was changed in the console", zap.String("action", action), zap.String("policy", v.Running.Name),
		zap.String("sha256", hashOf(text)), zap.String("by", by.By), zap.Strings("with", by.Approved), zap.String("note", by.Note), zap.String("from", v.r.RemoteAddr))
	if e := recorders.RunningEvidence(); e != nil {
		e.Sign(action, strings.Join(append([]string{by.By}, by.Approved...), ", "), by.Note, v.Running.Name, hashOf(text))
	}
}

// maxNote limits the length of the note about a version.
const maxNote = 300

// signed returns the name of the person who sent a form, and the note in the form.
func (v *view) signed(note string) source.Signed {
	r := []rune(strings.TrimSpace(note))
	return source.Signed{By: v.person.Name, Note: shorten(string(r[:min(len(r), maxNote)]))}
}

// share saves, approves or discards the draft. do is the action from the form.
func (v *view) share(d *changeData, do string) (*page, error) {
	if err := v.mayWrite(editor, d.Base); err != nil {
		return nil, err
	}
	if d.Publish.ReadOnly != "" {
		return nil, failed(http.StatusForbidden, "%s", d.Publish.ReadOnly)
	}
	next, action := &source.Draft{Base: d.Base, Text: d.Text, Time: v.Now, Signed: v.signed(d.Note)}, actDraft
	switch {
	case do != "discard" && (d.Draft.site == nil && v.may != nil || d.Draft.site != nil && !v.staysInside(v.Running.Site, d.Draft.site)):
		return nil, failed(http.StatusForbidden, "The draft was not changed: %s", outsideWords(v.may))
	case do == "discard":
		next, action = nil, actDiscard
	case do == "approve" && (d.Saved == nil || d.Saved.Text != d.Text || d.SavedID != d.Saved.ID()):
		return nil, failed(http.StatusConflict, "Not approved, because another draft was saved after you opened this page. Open the newest draft.")
	case do == "approve" && !d.mayApprove(v):
		return nil, failed(http.StatusForbidden, "Not approved, because you saved this draft, or have already approved it.")
	case do == "approve":
		approved := *d.Saved
		approved.Approved = append(slices.Clone(approved.Approved), v.person.Name)
		next, action = &approved, actApproval
	}
	err := v.Running.document.SaveDraft(v.ctx, d.SavedID, next)
	switch {
	case errors.Is(err, source.ErrOvertaken):
		return nil, failed(http.StatusConflict, "Nothing was changed, because another person changed the draft in the meantime.")
	case err != nil:
		return nil, failed(http.StatusServiceUnavailable, "Nothing was changed: %w", err)
	}
	v.signs(action, d.Text, v.signed(d.Note))
	return &page{redirect: v.Link("change", "done", action, "#", "result")}, nil
}

// mayApprove reports whether the person may approve the saved draft.
func (d *changeData) mayApprove(v *view) bool {
	return d.Saved != nil && d.Saved.Text == d.Text && v.lacks(editor) == "" && v.person.Name != d.Saved.By && !slices.Contains(d.Saved.Approved, v.person.Name)
}

// behind returns the names of the people who saved or approved the text of the draft. It leaves out the person who
// views the page, and people who were not signed in; see policies.Proven.
func (d *changeData) behind(v *view) (names []string) {
	if d.Saved == nil || d.Saved.Text != d.Text || d.Saved.Base != d.Base {
		return nil
	}
	for _, name := range append([]string{d.Saved.By}, d.Saved.Approved...) {
		if name != v.person.Name && !slices.Contains(names, name) && policies.Proven(name) {
			names = append(names, name)
		}
	}
	return names
}

// publish puts a checked draft into force.
func (v *view) publish(d *changeData) (*page, error) {
	if err := v.mayWrite(publisher, d.Base); err != nil {
		return nil, err
	}
	if !d.Publish.Ready {
		return nil, failed(http.StatusConflict, "This draft cannot be published: %s", cmp.Or(d.Publish.ReadOnly, d.Publish.WhyNot))
	}
	by, action := v.signed(d.Note), actPublish
	by.Approved = d.behind(v)
	switch d.Returns {
	case source.Undo:
		action = actUndo
	case source.Earlier:
		action = actReturn
	case source.NeverServed:
	}
	// Publish continues even if the browser disconnects. It has its own time limits.
	o, err := v.Running.document.Publish(context.WithoutCancel(v.ctx), source.Change{
		Replaces: d.Base, Text: d.Text, Accept: d.Accept, Draft: d.Continues, Signed: by,
	})
	switch {
	case errors.Is(err, source.ErrOvertaken):
		return nil, failed(http.StatusConflict, "Another version was published in the meantime. Choose “Check” to compare it with your draft.")
	case errors.Is(err, source.ErrStorage):
		v.logger.Error("publishing from the console failed", zap.String("policy", v.Running.Name), zap.Error(err))
		return nil, failed(http.StatusServiceUnavailable, "Not published: %w. Try again; the page Published shows which version is in force.", err)
	case err != nil:
		return nil, failed(http.StatusConflict, "Not published: %w", err)
	}
	v.signs(action, d.Text, by)
	return &page{redirect: v.Link("published", "done", o.Now.SHA256[:12])}, nil
}

func hashOf(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }
