// SPDX-License-Identifier: Apache-2.0

package policy

// Severity says what a problem does to a policy.
type Severity uint8

// The severities, mildest first. A policy with an error does not load. A hint
// points out what the author may not have expected.
const (
	Hint Severity = iota
	Warning
	Error
)

var severityNames = [...]string{"hint", "warning", "error"}

// String is the severity in lower case.
func (s Severity) String() string { return severityNames[s] }

// Problem is something that the author of a policy should know about.
type Problem struct {
	Severity Severity
	Code     string // stable, such as "not-flattenable"; docs/lint.md explains it
	Pos      Pos
	Message  string // for readers who are not engineers, with the fix
}
