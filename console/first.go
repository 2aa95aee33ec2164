// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"net/http"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/internal/cli/firstpolicy"
)

// firstQuestions holds the form that creates a first policy. It asks the same questions as the command `init`.
type firstQuestions struct {
	Questions             []firstQuestion
	Host, Closed, Staging string
	Meaning               string // a table of the crawlers that may read the site
	Problem               string

	get func(name string) string
}

// firstQuestion is a yes-or-no question of the form.
type firstQuestion struct {
	Name, Text, Answer string
	More               bool // true if the question depends on the question above, and is asked only after the answer "no"
}

// openFirst fills in the page for a first policy, if the site does not have a policy yet.
func (v *view) openFirst(p *page, d *changeData) (err error) {
	if v.Running == nil {
		v.Running, err = v.waiting()
	}
	switch {
	case err != nil:
		return err
	case v.Running == nil:
		p.Lead, d.Problem = "No policy is loaded.", "No site of this server uses the directive robots_policy."
		return nil
	case !v.Running.first:
		return nil
	}
	d.Hidden = v.lacks(editor) != "" && v.may != nil
	d.First = &firstQuestions{get: v.r.PostFormValue, Host: cmp.Or(v.r.PostFormValue("site"), v.Host)}
	if len(v.may) > 0 {
		d.First.Host = v.may[0]
	}
	d.First.Closed, d.First.Staging = v.r.PostFormValue("disallowed"), v.r.PostFormValue("staging")
	for t, q := range firstpolicy.Topics {
		answer := cmp.Or(v.r.PostFormValue(q.Flag), q.Default.String())
		d.First.Questions = append(d.First.Questions, firstQuestion{q.Flag, q.Question, answer, q.After != firstpolicy.Topic(t)})
	}
	return nil
}

// write replaces the text of the draft d by a policy built from the answers.
func (f *firstQuestions) write(d *changeData) error {
	var a firstpolicy.Answers
	err := cmp.Or(a.AddClosed(f.Closed), a.AddStaging(f.Staging))
	if f.Host != "" && err == nil {
		h, bad := firstpolicy.ParseHost(f.Host, false)
		a.Host, err = string(h), bad
	}
	for t, q := range firstpolicy.Topics {
		if q.After != firstpolicy.Topic(t) && a.To[q.After] != firstpolicy.No {
			continue // the question does not apply
		}
		answer, bad := firstpolicy.ParseAnswer(f.Questions[t].Answer)
		a.To[t], err = answer, cmp.Or(err, bad)
	}
	var b *firstpolicy.Built
	if err == nil {
		b, err = firstpolicy.Build(a)
	}
	if err != nil {
		f.Problem = err.Error()
		return nil
	}
	var table strings.Builder
	if err := b.WriteMeaning(&table, d.now); err != nil {
		return failed(http.StatusInternalServerError, "%w", err)
	}
	f.Meaning, d.Text = table.String(), string(b.Text)
	return nil
}
