// SPDX-License-Identifier: Apache-2.0

package policy

// Severity says what a problem does to a policy.
type Severity uint8

// The severities: a policy with an error does not load.
const (
	Warning Severity = iota
	Error
)

// String is the severity in lower case.
func (s Severity) String() string {
	if s == Error {
		return "error"
	}
	return "warning"
}

// Problem is something that the author of a policy should know of.
type Problem struct {
	Severity Severity
	Code     string // stable, such as "not-flattenable"; the documentation has a section of that name
	Pos      Pos
	Message  string // for people who are no engineers, with the cure
}
