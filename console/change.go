// SPDX-License-Identifier: Apache-2.0

package console

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/robotspolicy/caddy-robots-policy/activity/store"
	"github.com/robotspolicy/caddy-robots-policy/claim"
	"github.com/robotspolicy/caddy-robots-policy/effect"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/textdiff"
	"github.com/robotspolicy/caddy-robots-policy/site"
	"github.com/robotspolicy/caddy-robots-policy/site/compare"
	"github.com/robotspolicy/caddy-robots-policy/source"
)

// changeData holds the data of the Change page: a draft and its effects.
type changeData struct {
	File   string
	Base   string // SHA-256 of the version that the draft started from
	Live   string // SHA-256 of the version in force
	Text   string
	Lines  []editorLine
	Rows   int
	Draft  *draft // nil if the draft is not checked yet
	Same   bool   // true if the draft is equal to the text in force
	Hidden bool   // true if the text in force must not be shown here
	Back   string // the label of the version to go back to
	Done   string // the last action on the draft
	Moved  string // the message that says on which version the change is now based
	First  *firstQuestions

	Saved     *source.Draft // the draft that was saved for all users, or nil if there is none
	SavedID   string        // the ID of the saved draft when the page was rendered
	Continues string        // the ID of the saved draft that the text is based on, or "" if there is none

	Returns   source.Return // the relation between the text and earlier published texts
	Again     string        // the label of the version that the draft restores, if the draft undoes an undo
	Accept    []string      // the search engines whose losses are accepted
	Overtaken *overtaken    // not nil if another person changed the text that the draft started from

	now       time.Time
	baseText  string
	baseKnown bool
	Changes   []changeLine
	Edit      *textdiff.Diff
	Robots    []robotsDiff
	Keeps     claim.Claim     // the claim that search engines do not lose anything
	Losses    *compare.Losses // the losses of search engines, found by a comparison of the policies
	Replay    *replayed
	Publish   publishBox
	Decision  decision
	Rights    []reservation
	Problem   string
	Note      string
	Keywords  string
}

// changeLine describes what crawlers gain or lose because of a change.
type changeLine struct{ Effect, Text string }

// robotsDiff holds the differences between a host's robots.txt before and after the change.
type robotsDiff struct {
	Host string
	*textdiff.Diff
}

// publishBox is the form that publishes the draft, or the reasons why it cannot be published.
type publishBox struct {
	Conditions []condition
	Ready      bool
	ReadOnly   string // the reason why the page has no publish button; empty if the page has the button
	WhyNot     string
	Token      string
	MaySave    bool
	MayApprove bool
	MayPublish string   // the reason why the user may not publish; empty if the user may publish
	Losers     []string // the search engines with losses, and the gaps in the data, that the user must accept
	Accepted   bool     // true if the user has accepted the losses of all Losers
}

// Names returns Losers, separated by commas. The form sends this text if the user accepts the losses.
func (b publishBox) Names() string { return strings.Join(b.Losers, ",") }

// condition is one of the conditions for publishing a draft.
type condition struct {
	Passes bool
	Text   string
}

func change(v *view) (*page, error) {
	d := &changeData{Hidden: !v.showsText(), now: v.Now}
	p := &page{template: "change", Title: "What would change", Lead: "Try a change on your own traffic before it goes live.", Data: d}
	if err := v.openFirst(p, d); err != nil || v.Running == nil {
		return p, err
	}
	d.File, d.Base, d.Live = v.Running.File(), v.Running.SHA256, v.Running.SHA256
	d.Keywords, d.Rights = keywords(), reservations(v.Running.Site, v.Now)
	if !d.Hidden {
		d.Text = v.Running.Text
	}
	var err error
	if d.Saved, err = v.sharedDraft(); err != nil {
		d.Problem = err.Error()
	}
	if err := v.openDraft(d); err != nil {
		return nil, err
	}
	v.decideIn(d)
	d.Publish.ReadOnly = v.readOnly(d)
	if d.baseText, d.baseKnown, err = v.textOf(d.Base); err != nil {
		return nil, err
	}
	v.overtake(d)
	done := p
	if err = v.check(d); err == nil {
		p.Lead = d.lead()
		switch v.r.PostFormValue("do") {
		case "publish":
			done, err = v.publish(d)
		case "save", "approve", "discard":
			done, err = v.share(d, v.r.PostFormValue("do"))
		}
	}
	if e, ok := errors.AsType[statusError](err); ok {
		d.Problem, p.Status = e.Error(), e.status
		return p, nil
	}
	return done, err
}

// lead returns the effect of the draft as a sentence.
func (d *changeData) lead() string {
	switch {
	case d.First != nil && d.Draft == nil:
		return "There is no policy yet. Answer the questions to see the resulting robots.txt."
	case d.Draft == nil:
		return "There is no draft. Try a change on your own traffic before it goes live."
	}
	n := 0
	for _, c := range d.Changes {
		n += min(len(c.Effect), 1)
	}
	if h := d.Headline(); n > 0 {
		return plural(n, "thing changes", "things change") + " with this draft. " + sentence(h.Text)
	}
	return "This draft does not change any decision of the policy."
}

// openDraft reads the draft. The draft comes from the form, a stored version, the saved draft, or the version in force.
func (v *view) openDraft(d *changeData) error {
	d.SavedID = d.Saved.ID()
	if v.r.Method == http.MethodPost {
		d.Text, d.Note = strings.ReplaceAll(v.r.PostFormValue("text"), "\r\n", "\n"), v.r.PostFormValue("note")
		if _, sent := v.r.PostForm["base"]; sent {
			d.Base = v.r.PostFormValue("base")
		}
		if _, sent := v.r.PostForm["draft"]; sent {
			d.SavedID = v.r.PostFormValue("draft")
		}
		d.Continues = v.r.PostFormValue("continues")
		for _, names := range v.r.PostForm["accept"] {
			d.Accept = append(d.Accept, strings.Split(names, ",")...)
		}
		d.Back = v.r.PostFormValue("back")
		if d.First != nil && v.r.PostFormValue("do") == "answers" {
			return d.First.write(d)
		}
		return v.upload(d)
	}
	d.Done = v.Param("done")
	if id := v.Param("from"); id != "" && !d.Hidden {
		text, ok, err := v.versionOf(id)
		if err != nil {
			return err
		}
		if !ok {
			return failed(http.StatusNotFound, "the version %s is not stored", strconv.Quote(shorten(id)))
		}
		d.Text = text
		if d.Back = v.Param("back"); d.Back != "" {
			d.Note = "Back to " + shorten(d.Back)
		}
	} else if d.Saved != nil && v.Param("draft") != "none" {
		d.Text, d.Base, d.Note, d.Continues = d.Saved.Text, d.Saved.Base, d.Saved.Note, d.SavedID
	}
	if line := v.Param("expect"); line != "" && !strings.ContainsAny(line, "\r\n") {
		d.Text = withLine(d.Text, "expect", "  - "+line)
	}
	if name := v.Param("name"); name != "" {
		_, entry, _ := strings.Cut(namingLines(name), "\n")
		d.Text = withLine(d.Text, "crawlers", strings.TrimRight(entry, "\n"))
	}
	return nil
}

// upload reads the uploaded file of the form, if the user chose one.
func (v *view) upload(d *changeData) error {
	f, _, err := v.r.FormFile("file")
	if err != nil { // the user did not choose a file
		return nil
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxDraft+1))
	if err == nil && len(b) > 0 {
		d.Text = strings.ReplaceAll(string(b), "\r\n", "\n")
	}
	return err
}

// versionOf returns the text of the published version id: a hash, the first 12 or more digits of a hash, or a label
// such as v3. ok is false if the version is not stored, or if the person may not read its text.
func (v *view) versionOf(id string) (text string, ok bool, err error) {
	for _, p := range v.stands().History {
		if strings.HasPrefix(p.SHA256, id) && len(id) >= 12 {
			return p.Text, v.mayRead(p.Text), nil
		}
	}
	h, err := v.history()
	if err != nil {
		return "", false, err
	}
	for i := range h.publications {
		if h.publications[i].Policy == id || h.publications[i].Label() == id {
			return h.publications[i].Text, v.mayRead(h.publications[i].Text), nil
		}
	}
	return "", false, v.standingError
}

// textOf returns the text of the version whose text has the hash sum. It serves to find the version that a draft
// started from, because the draft has only the hash of this version. ok is false if the text is not known.
func (v *view) textOf(sum string) (text string, ok bool, err error) {
	if sum == v.Running.SHA256 || sum == "" {
		return v.Running.Text, sum == v.Running.SHA256, nil
	}
	if len(sum) != 64 {
		return "", false, nil
	}
	return v.versionOf(sum)
}

// check fills in the problems and changes of the draft.
func (v *view) check(d *changeData) error {
	d.Same = d.Text == v.Running.Text
	d.setLines(nil)
	if v.r.Method == http.MethodGet && (d.Same || d.Hidden) && d.Back == "" {
		return nil
	}
	st := v.stands()
	d.Returns = st.Returns(hashOf(d.Text))
	draft, err := checkDraft(v.ctx, d.File, d.Text, d.Returns)
	if err != nil {
		return err
	}
	d.Draft = draft
	inserted := map[int]bool{}
	if !d.Hidden {
		rows, _ := textdiff.Rows(v.Running.Text, d.Text)
		for _, r := range rows {
			inserted[r.NewNo] = r.Kind == "ins"
		}
		if !d.Same && !v.Running.first {
			d.Edit = textdiff.Compare(v.Running.Text, d.Text)
		}
	}
	d.setLines(inserted)
	if draft.site != nil {
		d.Rights = reservations(draft.site, v.Now)
		d.Robots = v.robotsDiffs(draft.site)
		v.judge(d)
	}
	if d.Returns == source.Undo && st.UndoesUndo() {
		d.Again = st.Undo().Label()
	}
	d.Publish = v.publishBox(d)
	return nil
}

// judge determines what search engines would lose because of the draft.
func (v *view) judge(d *changeData) {
	diff := compare.Sites(v.Running.Site, d.Draft.site, compare.Options{Hosts: hostsOf(v.may), Below: v.Running.below})
	d.Changes, d.Losses = changesInWords(diff), diff.Losses
	if v.store != nil && !v.Running.first {
		t := traffic{store: v.store, policy: v.Running.Name, hosts: v.may, shown: v.shown, days: v.ReplayDays(), below: v.Running.below}
		d.Replay = t.replay(v.ctx, v.Running.Site, d.Draft.site, v.Now)
	}
	d.Keeps = d.judgeKeeps(v)
}

// ReplayDays returns the number of days whose traffic is replayed with the draft.
func (v *view) ReplayDays() int {
	n, _ := strconv.Atoi(v.r.PostFormValue("replay")) // a replay of a year takes seconds, so it runs only on request
	if slices.Contains(periods, n) {
		return n
	}
	return periods[0]
}

// changesInWords describes the gains and losses of crawlers. The losses of search engines come first.
func changesInWords(d *compare.Diff) (all []changeLine) {
	for i := range d.Changes {
		c := &d.Changes[i]
		line := changeLine{string(c.Effect), c.String()}
		if c.Lost&effect.Counted != 0 {
			line.Effect = "search"
		}
		all = append(all, line)
	}
	rank := map[string]int{"search": -3, "loss": -2, "gain": -1}
	slices.SortStableFunc(all, func(a, b changeLine) int { return rank[a.Effect] - rank[b.Effect] })
	if d.Empty() && !d.RobotsTxt && d.Complete {
		return []changeLine{{"", "no decision changes: the draft and the version in force decide the same for every crawler and usage, on every host and path that they name"}}
	}
	for _, text := range d.Words()[len(d.Changes):] {
		all = append(all, changeLine{"", text})
	}
	return all
}

// maxRobotsDiffs limits the number of hosts whose changed robots.txt the page shows.
const maxRobotsDiffs = 4

// robotsDiffs compares the robots.txt of up to 50 hosts under the policy in force with the robots.txt of the same hosts
// under the draft. It returns the first maxRobotsDiffs hosts whose robots.txt differs.
func (v *view) robotsDiffs(draft *site.Site) (all []robotsDiff) {
	hosts := v.Hosts()
	if len(hosts) == 0 {
		hosts = []string{v.MainHost()}
	}
	for _, host := range hosts[:min(len(hosts), 50)] {
		before, _ := v.Running.Site.Robots.Text(host)
		now, _ := draft.Robots.Text(host)
		if before == now {
			continue
		}
		if len(all) < maxRobotsDiffs {
			all = append(all, robotsDiff{host, textdiff.Compare(before, now)})
		}
	}
	return all
}

// draftFile sends the text of the form back as a file.
func draftFile(w http.ResponseWriter, v *view) error {
	if v.r.Method != http.MethodPost {
		return failed(http.StatusMethodNotAllowed, "to download a draft, use the form on the page “What would change”")
	}
	name := "site-policy.yaml"
	if v.Running != nil && strings.HasSuffix(v.Running.File(), ".yaml") {
		name = v.Running.File()
	}
	w.Header().Set("Content-Type", "application/byte-stream")
	w.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name}))
	_, err := w.Write([]byte(v.r.PostFormValue("text")))
	return err
}

// stands returns the text and the published versions of the policy in its storage. The newest version is first. The
// result is empty if the person may not see the text, or if the storage cannot be read.
func (v *view) stands() *source.Standing {
	if v.Running == nil || v.Running.document == nil || !v.showsText() {
		return new(source.Standing)
	}
	if v.standing == nil {
		st, err := v.Running.document.Standing(v.ctx)
		if err != nil {
			v.logger.Warn("the history of a policy cannot be read", zap.String("policy", v.Running.Name), zap.Error(err))
			st = new(source.Standing)
		}
		v.standing, v.standingError = st, err
	}
	return v.standing
}

// publishedAs finds the publication p in the version history of the policy's storage, and returns the entry there, or
// nil if there is none. It compares version numbers, because several versions can have the same text.
func (v *view) publishedAs(p *store.Publication) *source.Published {
	number, _, _ := strings.Cut(p.Number, ".") // the part after the dot depends on the program and the catalog
	n, err := strconv.Atoi(number)
	if err != nil {
		return nil
	}
	if x := v.stands().Version(n); x != nil && strings.HasPrefix(x.SHA256, p.Policy) {
		return x
	}
	return nil
}

// signedOf returns a phrase about who published p and why, as signedWords writes it. It returns "" if the version
// history does not have p.
func (v *view) signedOf(p *store.Publication) string {
	if x := v.publishedAs(p); x != nil {
		return signedWords(x.Signed)
	}
	return ""
}

// signedWords returns a phrase about who did something and why, such as `, by alice: “allow search”`. The page prints
// this phrase after the description of the action.
func signedWords(s source.Signed) (text string) {
	if s.By != "" {
		text = ", by " + english.List(shortenAll(append([]string{s.By}, s.Approved...)), "and")
	}
	if s.Note != "" {
		text += ": “" + shorten(s.Note) + "”"
	}
	return text
}

func shortenAll(names []string) (all []string) {
	for _, name := range names {
		all = append(all, shorten(name))
	}
	return all
}

// effects maps the effects of changes to the words on the page.
var effects = map[string]string{"search": "Search engines lose", "loss": "Lose", "gain": "Gain", "stated": "Changes", "blocking": "Changes", "line": "Changes"}
