// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/policies"
	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/recorders"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
	"github.com/robotspolicy/caddy-robots-policy/source"
)

// publisher handles requests to the admin API that publish policies.
type publisher struct{ logger *zap.Logger }

// publication is the response to a request that publishes a version.
type publication struct {
	Policy   string   `json:"policy"`
	Result   string   `json:"result"` // published, unchanged or draft
	SHA256   string   `json:"sha256"`
	Undo     bool     `json:"undo,omitempty"` // the version brings back the text of the previous version
	Changes  []string `json:"changes,omitempty"`
	UndoCost string   `json:"undo_cost,omitempty"` // what search engines lose because of the undo
	Why      string   `json:"why,omitempty"`       // why the version was only saved as a draft
}

// publish publishes a version of a policy in Caddy's storage. The text of the new version is the body of the request.
// If the request has the parameter "undo" or "version", publish uses the text of an earlier version instead. If more
// than one person must approve a version, publish only saves a draft.
func (a publisher) publish(w http.ResponseWriter, r *http.Request) error {
	d, err := writableDocument(r)
	if err != nil {
		return err
	}
	st, err := d.Standing(r.Context())
	if err != nil {
		return apiError(http.StatusServiceUnavailable, err)
	}
	change, err := requestedChange(r, st)
	if err != nil {
		return err
	}
	answer := publication{Policy: d.Name, Result: "unchanged", SHA256: st.SHA256}
	if change.Text == st.Text {
		if o := d.Reload(r.Context()); o.Err != nil {
			return apiError(publishStatus(o.Err), fmt.Errorf("the storage of Caddy already has this version, but Caddy does not serve it: %w", o.Err))
		}
		return respondJSON(w, http.StatusOK, answer)
	}
	if n := policies.Approval(); n > 1 {
		return a.saveDraft(w, r, d, change, n)
	}
	// An operation that has begun is completed even if the client disconnects. Publish has its own time limits.
	o, err := d.Publish(context.WithoutCancel(r.Context()), change)
	if err != nil {
		return apiError(publishStatus(err), fmt.Errorf("not published: %w", err))
	}
	a.signs("version", d, change, o.Now.SHA256)
	status := d.Status()
	answer.Result, answer.SHA256, answer.UndoCost = "published", o.Now.SHA256, status.UndoCost
	answer.Undo = st.Returns(o.Now.SHA256) == source.Undo
	if o.Changes != nil {
		answer.Changes = o.Changes.Words()
	}
	return respondJSON(w, http.StatusOK, answer)
}

// writableDocument returns the policy in Caddy's storage that a request names. If the request names none, it returns
// the only such policy.
func writableDocument(r *http.Request) (*source.Document, error) {
	all := slices.DeleteFunc(allDocuments(), func(d *source.Document) bool { return !d.Writable() })
	name := r.URL.Query().Get("policy")
	if i := slices.IndexFunc(all, func(d *source.Document) bool { return d.Name == name }); i >= 0 {
		return all[i], nil
	}
	switch {
	case len(all) == 0:
		return nil, apiError(http.StatusConflict, errors.New("only a policy in Caddy's storage can be published, but no site uses one; write robots_policy storage:robots_policy/site.yaml in a site"))
	case name != "" || len(all) > 1:
		return nil, apiError(http.StatusBadRequest, fmt.Errorf("set the parameter policy to one of the policies in Caddy's storage: %s", namesOf(all)))
	}
	return all[0], nil
}

// maxName and maxNote limit the length of the author's name and of the note, in bytes.
const maxName, maxNote = 100, 300

func requestedChange(r *http.Request, st *source.Standing) (c source.Change, err error) {
	q := r.URL.Query()
	by := strings.Join(strings.Fields(q.Get("author")), " ")
	c.By, c.Note = policies.AdminAuthor, strings.Join(strings.Fields(q.Get("note")), " ")
	if by != "" {
		c.By = by + ", " + policies.AdminAuthor
	}
	if len(by) > maxName || len(c.Note) > maxNote {
		return c, apiError(http.StatusBadRequest, fmt.Errorf("author must have at most %d bytes, and note at most %d", maxName, maxNote))
	}
	c.Replaces = cmp.Or(q.Get("replaces"), st.SHA256)
	for _, names := range q["accept_loss"] {
		c.Accept = append(c.Accept, strings.Split(names, ",")...)
	}
	if undo := q.Get("undo"); undo != "" && undo != "yes" || q.Has("undo") && q.Has("version") {
		return c, apiError(http.StatusBadRequest, errors.New("set only one of the parameters undo and version; undo has no value, and version has a number, as in version=3"))
	}
	if !q.Has("undo") && !q.Has("version") {
		text, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, policyfile.MaxSize))
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return c, apiError(http.StatusRequestEntityTooLarge, fmt.Errorf("the policy is larger than %d bytes", policyfile.MaxSize))
		}
		if err == nil && len(text) == 0 {
			err = errors.New("the body is empty: send the policy file, as curl --data-binary @site-policy.yaml does, or set the parameter undo or version")
		}
		if c.Text = string(text); err != nil {
			return c, apiError(http.StatusBadRequest, err)
		}
		return c, nil
	}
	if n, err := r.Body.Read(make([]byte, 1)); n > 0 || err != nil && err != io.EOF {
		return c, apiError(http.StatusBadRequest, errors.New("undo and version cannot be combined with a policy in the body"))
	}
	number := 0
	if q.Has("version") {
		if number, err = strconv.Atoi(strings.TrimPrefix(q.Get("version"), "v")); err != nil || number < 1 {
			return c, apiError(http.StatusBadRequest, fmt.Errorf("invalid version %q: must be a number such as 3", q.Get("version")))
		}
	}
	back, err := st.GoBack(number)
	if err != nil {
		return c, apiError(http.StatusConflict, fmt.Errorf("not published: %w", err))
	}
	if q.Has("undo") && st.UndoesUndo() && q.Get("again") != "yes" {
		return c, apiError(http.StatusConflict, fmt.Errorf("not published: the present version is an undo, so a second undo would bring back %s; if that is intended, add the parameter again=yes", back.Label()))
	}
	c.Text, c.Note = back.Text, cmp.Or(c.Note, "back to "+back.Label())
	return c, nil
}

// publishStatus returns the HTTP status for an error that Publish returned.
func publishStatus(err error) int {
	_, invalid := errors.AsType[policyfile.Diagnostics](err)
	_, undecided := errors.AsType[source.UndecidedError](err)
	switch {
	case errors.Is(err, source.ErrStorage) || undecided:
		return http.StatusServiceUnavailable
	case invalid:
		return http.StatusUnprocessableEntity
	}
	return http.StatusConflict
}

// saveDraft saves a draft that others must approve. If the same text is already saved, the author of the request is
// added as an approver. The console shows this approval, but does not count it, because the admin API does not prove
// the author's name.
func (a publisher) saveDraft(w http.ResponseWriter, r *http.Request, d *source.Document, c source.Change, people int) error {
	if _, err := source.Compile(d.Name, []byte(c.Text)); err != nil {
		return apiError(http.StatusUnprocessableEntity, fmt.Errorf("not saved: %w", err))
	}
	draft := &source.Draft{Base: c.Replaces, Text: c.Text, Time: time.Now().UTC(), Signed: c.Signed}
	if err := d.Propose(r.Context(), draft); err != nil {
		return apiError(publishStatus(err), fmt.Errorf("not saved: %w", err))
	}
	sum := source.SumOf(c.Text)
	a.signs("draft", d, c, sum)
	return respondJSON(w, http.StatusAccepted, publication{
		Policy: d.Name, Result: "draft", SHA256: sum,
		Why: fmt.Sprintf("the version is not published yet: with approval %d in the option console, %d people must approve it in the console", people, people),
	})
}

// signs records an action on a version, and the author of the action, in the log and in the evidence log.
func (a publisher) signs(action string, d *source.Document, c source.Change, sum string) {
	a.logger.Warn("the policy was changed through the admin API", zap.String("action", action), zap.String("policy", d.Name),
		zap.String("sha256", sum), zap.String("by", c.By), zap.String("note", c.Note))
	if e := recorders.RunningEvidence(); e != nil {
		e.Sign(action, c.By, c.Note, d.Name, sum)
	}
}
