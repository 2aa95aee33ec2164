// SPDX-License-Identifier: Apache-2.0

// Package claim makes sentences that reassure users or accuse crawlers, and makes sure that the data support these
// sentences.
//
// A function that reads data returns a [Known] value. The value includes its [Coverage], which describes the available
// and the missing data. The function [Judge] makes a [Claim] from a subject, which is a struct with Known values. A
// Claim never holds if a gap in the subject's data could change the result. All code that prints a tick or a green
// line, or returns the exit code 0 of a safety check, must have a Claim for it.
package claim

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Outcome is the result of a claim. Its number is the exit code of commands that print the claim.
type Outcome int

// The outcomes.
const (
	Holds          Outcome = 0
	Fails          Outcome = 1
	CannotBeJudged Outcome = 3
)

func (o Outcome) String() string {
	return map[Outcome]string{Holds: "holds", Fails: "fails", CannotBeJudged: "cannot be judged"}[o]
}

// Finding is the result of a claim's judge. It says whether the claim fails, and contains the sentences to print.
type Finding struct {
	Fails bool
	// Text is the sentence to print. It says that the claim holds or, if Fails is true, that the claim fails. It begins
	// with a capital letter and has no full stop.
	Text string
	// Details follow the sentence, one on each line.
	Details []string
	// Unjudged is the sentence to print if a gap matters. It does not mention the gaps.
	Unjudged string
	// Matters reports whether a gap could change the outcome from Holds to Fails. If Matters is nil, every gap matters.
	Matters func(Gap) bool
}

// ID identifies a registered claim about a subject. [Register] returns the ID.
type ID[Subject any] struct {
	name  string
	judge func(Subject) Finding
}

// Registered describes a claim for tests and docs. It has the claim's name, and the names of the fields of its
// subject that have a Coverage.
type Registered struct {
	Name   string
	Fields []string
}

var registered []Registered

// Register registers a claim with its judge and returns the ID of the claim. The subject must be a struct. If a field
// of type [Known] holds a value that was never read, this is a gap. The struct tags "gap", "what" and "close" of the
// field are the Name, What and Close of this gap. A field with the tag gap:"-" may remain unread. Register panics if
// another claim has the same name.
func Register[Subject any](name string, judge func(Subject) Finding) *ID[Subject] {
	if slices.ContainsFunc(registered, func(r Registered) bool { return r.Name == name }) {
		panic("claim: " + name + " is registered twice")
	}
	r := Registered{Name: name}
	for f := range reflect.TypeFor[Subject]().Fields() {
		if f.Type.Implements(reflect.TypeFor[coveredValue]()) {
			r.Fields = append(r.Fields, f.Name)
		}
	}
	registered = append(registered, r)
	return &ID[Subject]{name, judge}
}

// All lists the claims that the program can make, in the order of their names.
func All() []Registered {
	return slices.SortedFunc(slices.Values(registered), func(a, b Registered) int { return strings.Compare(a.Name, b.Name) })
}

// coveredValue is an interface that [Known] values and a [Claim] implement.
type coveredValue interface{ covered() (Coverage, bool) }

// Judge calls the judge of a claim with the subject s, and returns the Claim. accepted has the names of gaps that the
// user accepts. Such a gap does not prevent the Claim from holding, but the Claim lists it. No other function makes a
// Claim.
func Judge[Subject any](id *ID[Subject], s Subject, accepted ...string) Claim {
	f := id.judge(s)
	c := Claim{id: id.name, text: f.Text, details: f.Details, outcome: Holds}
	if f.Fails {
		c.outcome = Fails
		return c
	}
	for _, g := range gapsOf(s) {
		switch {
		case f.Matters != nil && !f.Matters(g):
		case slices.Contains(accepted, g.Name):
			c.accepted = append(c.accepted, g)
		default:
			c.gaps = append(c.gaps, g)
		}
	}
	if len(c.gaps) > 0 {
		c.outcome, c.text = CannotBeJudged, f.Unjudged
	}
	return c
}

// gapsOf returns the gaps of a subject's fields, including a gap for each field that was never read.
func gapsOf(subject any) (gaps []Gap) {
	v := reflect.ValueOf(subject)
	for f := range v.Type().Fields() {
		value, ok := reflect.TypeAssert[coveredValue](v.FieldByIndex(f.Index))
		if !ok {
			continue
		}
		c, read := value.covered()
		if !read && f.Tag.Get("gap") != "-" {
			gaps = append(gaps, Gap{Name: f.Tag.Get("gap"), What: f.Tag.Get("what"), Close: f.Tag.Get("close")})
		}
		gaps = append(gaps, c.Gaps...)
	}
	return gaps
}

// A Claim is a sentence with its outcome, made by Judge. The zero Claim has no sentence, and its outcome is
// CannotBeJudged.
type Claim struct {
	id       string
	outcome  Outcome
	text     string
	details  []string
	gaps     []Gap // the gaps that matter and were not accepted
	accepted []Gap // the gaps that matter and were accepted
}

// ID returns the name of the claim.
func (c Claim) ID() string { return c.id }

// Made reports whether Judge made the claim. It returns false for the zero Claim.
func (c Claim) Made() bool { return c.id != "" }

// Outcome returns the result of the claim. It returns CannotBeJudged for the zero Claim.
func (c Claim) Outcome() Outcome {
	if !c.Made() {
		return CannotBeJudged
	}
	return c.outcome
}

// Holds reports whether the claim holds.
func (c Claim) Holds() bool { return c.Outcome() == Holds }

// Text returns the sentence, without a full stop.
func (c Claim) Text() string { return c.text }

// Details returns the lines that follow the sentence, without the gaps.
func (c Claim) Details() []string { return c.details }

// Gaps returns the gaps that make it impossible to judge the claim.
func (c Claim) Gaps() []Gap { return c.gaps }

// Missing returns the gaps as one text, or "" if there are none.
func (c Claim) Missing() string {
	all := make([]string, len(c.gaps))
	for i, g := range c.gaps {
		all[i] = g.What
	}
	return strings.Join(all, "; ")
}

// Lines returns the lines that follow the sentence: the details, the gaps with how to close them, and the accepted
// gaps.
func (c Claim) Lines() (lines []string) {
	lines = append(lines, c.details...)
	for _, g := range c.gaps {
		lines = append(lines, g.String())
	}
	for _, g := range c.accepted {
		lines = append(lines, fmt.Sprintf("accepted (%s): %s", g.Name, g.What))
	}
	return lines
}

// Class returns the CSS class of the claim on a page: "fine", "alert" or "warning".
func (c Claim) Class() string {
	return map[Outcome]string{Holds: "fine", Fails: "alert", CannotBeJudged: "warning"}[c.Outcome()]
}

// Err returns nil if the claim holds, and otherwise an error with the sentence and its lines.
func (c Claim) Err() error {
	if c.Holds() {
		return nil
	}
	return errors.New(strings.Join(append([]string{c.text}, c.Lines()...), "; "))
}

// covered returns the gaps of the claim. With this method, a claim can be a field of another claim's subject.
func (c Claim) covered() (Coverage, bool) { return Coverage{Gaps: c.gaps}, c.Made() }

// MarshalJSON returns the claim with its outcome as JSON.
func (c Claim) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		ID       string   `json:"claim"`
		Outcome  string   `json:"outcome"`
		Text     string   `json:"text"`
		Details  []string `json:"details,omitempty"`
		Gaps     []Gap    `json:"gaps,omitempty"`
		Accepted []Gap    `json:"accepted,omitempty"`
	}{c.id, c.Outcome().String(), c.text, c.details, c.gaps, c.accepted})
}

// Sentence returns a sentence that describes the gap and how to close it. It leaves out the name of the gap. Users need
// this name to accept the gap, but the sentence is only printed where they cannot accept it.
func (g Gap) Sentence() string {
	text := strings.TrimSuffix(g.What+"; "+g.Close, "; ")
	return strings.ToUpper(text[:1]) + text[1:] + "."
}

// String describes the gap and how to close it, and names the gap for users who want to accept it.
func (g Gap) String() string {
	text := g.What
	if g.Close != "" {
		text += "; " + g.Close
	}
	return text + "; or accept the gap " + g.Name
}
