// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/claim"
	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/effect"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// These constants limit the number of items that a sentence lists individually.
const (
	maxNames = 5
	maxPaths = 6
)

// Words returns the changes in words. Each item is a sentence or a setting.
func (d *Diff) Words() []string {
	words := make([]string, 0, len(d.Changes)+len(d.Settings)+2)
	for i := range d.Changes {
		words = append(words, d.Changes[i].String())
	}
	for i := range d.Settings {
		words = append(words, "setting "+d.Settings[i].String())
	}
	if d.Losses != nil {
		words = append(words, d.Losses.unproven()...)
	}
	if len(words) == 0 {
		nothing := d.NothingChanges()
		words = append(words, strings.TrimSuffix(nothing.Text()+": "+nothing.Missing(), ": "))
	}
	if !d.Complete && !d.Empty() {
		words = append(words, tooLarge)
	}
	return words
}

// changesSubject holds the facts that [nothingChanges] judges.
type changesSubject struct {
	Diff claim.Known[*Diff] `gap:"comparison" what:"the two policies were not compared"`
}

// nothingChanges is the claim that two policies have the same effect and the same text of robots.txt. The claim fails if
// any decision or setting differs. It also fails if only the text of robots.txt differs, and its words then say so.
var nothingChanges = claim.Register("nothing-changes", func(s changesSubject) claim.Finding {
	d, _ := s.Diff.Get()
	f := claim.Finding{Text: "nothing changes", Unjudged: "it cannot be judged whether anything changes"}
	switch {
	case d == nil:
	case !d.Empty():
		f.Fails, f.Text = true, "something changes"
	case d.RobotsTxt:
		f.Fails, f.Text = true, "all decisions and settings remain the same, but the text of robots.txt changes"
	}
	return f
})

// NothingChanges judges whether both policies have the same effect and the same robots.txt.
func (d *Diff) NothingChanges() claim.Claim {
	var c claim.Coverage
	if !d.Complete {
		c.Gaps = append(c.Gaps, claim.Gap{Name: GapTooLarge, What: tooLarge})
	}
	if d.Losses != nil {
		for _, u := range d.Losses.Unread {
			c.Gaps = append(c.Gaps, u.gap())
		}
	}
	return claim.Judge(nothingChanges, changesSubject{claim.Read(d, c)})
}

// uncounted holds the losses of web search that do not count against the search-loss limit.
const uncounted = effect.LossFollow | effect.LossImage | effect.LossPreview | effect.LossVideo | effect.LossCopy | effect.LossDelay

// section is a section of the text, with a title.
type section struct {
	title string
	has   func(*Change) bool
}

// sections holds all sections in order. A change is in the first section that matches it.
var sections = []section{
	{"Search engines lose:", func(c *Change) bool { return c.Lost&effect.Counted != 0 }},
	{"Search engines lose, as intended:", func(c *Change) bool { return c.Intended&effect.Counted != 0 }},
	{"Search engines lose (not counted by the search-loss limit):", func(c *Change) bool { return (c.Lost|c.Intended)&uncounted != 0 }},
	{"Others lose:", func(c *Change) bool { return c.Effect == Loss }},
	{"Gained:", func(c *Change) bool { return c.Effect == Gain }},
	{"Stated differently:", func(c *Change) bool { return c.Effect == Stated }},
	{"Blocking:", func(c *Change) bool { return c.Effect == Edge }},
	{"Other lines:", func(c *Change) bool { return c.Effect == Line }},
}

// WriteText writes the diff as a text for people. It groups the changes by their effects, and starts with the losses of
// search engines.
func (d *Diff) WriteText(w io.Writer) error {
	lines := make([][]string, len(sections)+1)
	for i := range d.Changes {
		c := &d.Changes[i]
		at := slices.IndexFunc(sections, func(s section) bool { return s.has(c) })
		lines[at] = append(lines[at], c.String())
	}
	for i := range d.Settings {
		lines[len(sections)] = append(lines[len(sections)], d.Settings[i].String())
	}
	parts := make([]string, 0, len(lines)+1)
	for i, some := range lines {
		title := "Settings:"
		switch {
		case len(some) == 0:
			continue
		case i < len(sections):
			title = sections[i].title
		case len(d.Changes) == 0:
			title = "No decision changes; these settings do:"
		}
		parts = append(parts, title+"\n  "+strings.Join(some, "\n  ")+"\n")
	}
	for _, words := range d.Words()[len(d.Changes)+len(d.Settings):] {
		parts = append(parts, strings.ToUpper(words[:1])+words[1:]+".\n")
	}
	_, err := io.WriteString(w, strings.Join(parts, "\n"))
	return err
}

// String returns the change as a sentence.
func (c *Change) String() string {
	who, where := c.who(), c.where()
	switch {
	case c.Effect == Edge:
		does := map[string]string{"block": "blocked", "log": "let through and logged", "off": "neither blocked nor logged"}
		if c.New == "log" && c.Old == "off" {
			return fmt.Sprintf("%s: requests for %s are still let through, and now logged", who, where)
		}
		return fmt.Sprintf("%s: requests for %s are now %s", who, where, does[c.New])
	case c.Effect == Line && len(c.Paths) == 0:
		return fmt.Sprintf("%s: %s is now %s (was %s)", who, c.Usages[0], c.New, c.Old)
	case c.Effect == Line && c.Old == noValue && c.New == c.Usages[0]:
		return fmt.Sprintf("%s: %s now applies to %s", who, c.New, where)
	case c.Effect == Line && c.New == noValue && c.Old == c.Usages[0]:
		return fmt.Sprintf("%s: %s no longer applies to %s", who, c.Old, where)
	case c.Effect == Line:
		return fmt.Sprintf("%s: %s of %s is now %s (was %s)", who, c.Usages[0], where, c.New, c.Old)
	case c.New == "disallowed":
		return fmt.Sprintf("%s may no longer %s %s", who, c.does(), where)
	case c.New == "unstated" && c.Old != "disallowed":
		return fmt.Sprintf("%s: the policy no longer states whether they may %s %s", who, c.does(), where)
	case c.New == "unstated":
		return fmt.Sprintf("%s: the policy no longer states that they may not %s %s", who, c.does(), where)
	case c.Old == "unstated":
		return fmt.Sprintf("%s: the policy now states that they may %s %s%s", who, c.does(), where, limitsOf(c.New))
	case c.Old == "disallowed":
		return fmt.Sprintf("%s may now %s %s%s", who, c.does(), where, limitsOf(c.New))
	}
	return fmt.Sprintf("%s may still %s %s, but the limits change: now %s (was %s)", who, c.does(), where, limitsIn(c.New), limitsIn(c.Old))
}

// limitsOf returns the limits in a state, for the end of a sentence. The result is " with limits: max-snippet=50" for
// the state "allowed, max-snippet=50".
func limitsOf(state string) string {
	if limits := limitsIn(state); limits != noLimits {
		return " with limits: " + limits
	}
	return ""
}

const noLimits = "no limits"

// limitsIn returns the limits in a state: "max-snippet=50" for the state "allowed, max-snippet=50".
func limitsIn(state string) string {
	if _, limits, ok := strings.Cut(state, ", "); ok {
		return limits
	}
	return noLimits
}

// verbOf has a verb for each usage whose name is not a verb.
var verbOf = map[string]string{
	policy.TrainAI.String(): "train AI with", policy.AIUse.String(): "use in AI answers",
	policy.Search.String(): "use for search", policy.Follow.String(): "follow links of",
}

func (c *Change) does() string {
	present := slices.DeleteFunc(slices.Clone(c.Usages), func(u string) bool { return !strings.HasPrefix(u, "present") })
	verbs := slices.DeleteFunc(slices.Clone(c.Usages), func(u string) bool { return strings.HasPrefix(u, "present") })
	for i, v := range verbs {
		verbs[i] = cmp.Or(verbOf[v], v)
	}
	switch {
	case slices.Contains(present, "present"):
		verbs = append(verbs, "present")
	case len(present) > 0:
		for _, u := range present {
			verbs = append(verbs, "present the "+strings.TrimPrefix(u, "present-")+" of")
		}
	}
	return english.List(verbs, "and")
}

func (c *Change) who() string {
	var who string
	switch {
	case slices.Contains(c.Crawlers, Everyone):
		who = "everyone"
	case c.everyone != "":
		who = c.everyone
	case len(c.Crawlers) <= maxNames:
		who = crawlerNames(c.Crawlers, maxNames)
		if c.Crawlers[0] == EveryoneElse && slices.ContainsFunc(c.Kinds, func(k Kind) bool { return k.Kind == kindSearch }) {
			who += " (including search engines)"
		}
	default:
		var parts []string
		for _, k := range c.Kinds {
			names := slices.DeleteFunc(slices.Clone(k.Crawlers), func(t string) bool { return !slices.Contains(c.Crawlers, t) })
			switch {
			case len(names) == 0:
			case k.All && len(k.Crawlers) > 1:
				parts = append(parts, "all "+crawlers.Category(k.Kind).Crawlers())
			case k.Kind == "" || k.All:
				parts = append(parts, crawlerNames(names, maxNames))
			default:
				parts = append(parts, fmt.Sprintf("%s (%s)", k.Kind, crawlerNames(names, maxNames)))
			}
		}
		if c.Crawlers[0] == EveryoneElse {
			parts = append(parts, "everyone else")
		}
		who = strings.Join(parts, ", ")
	}
	if c.Identity != "" {
		who = c.Identity + " " + who
	}
	if c.Purpose != "" {
		who += " that name the purpose " + c.Purpose
	}
	return who
}

// before describes the result that the old policy already had for the paths in c.Already, for use in a sentence.
func (c *Change) before() string {
	switch {
	case c.Effect == Loss && c.New == disallowed:
		return "disallowed"
	case c.Effect == Gain && c.Old == disallowed:
		return "allowed"
	default:
		return "the same"
	}
}

func (c *Change) where() string {
	where := strings.Join(c.Paths, ", ")
	if len(c.Paths) > maxPaths {
		where = strings.Join(c.Paths[:maxPaths], ", ") + " and " + english.Count(len(c.Paths)-maxPaths, "more path")
	}
	if slices.Equal(c.Paths, []string{"/"}) {
		where = "the whole site"
	}
	if c.Except != nil {
		where += " (except " + named(c.Except, maxPaths) + ")"
	}
	if c.Already != nil {
		where += " (" + c.before() + " before: " + named(c.Already, maxPaths) + ")"
	}
	if c.Hosts != nil {
		hosts := slices.Clone(c.Hosts)
		for i, h := range hosts {
			if h == "" {
				hosts[i] = "other hosts"
			}
		}
		where += " on " + named(hosts, maxNames)
	}
	return where
}
