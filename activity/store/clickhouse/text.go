// SPDX-License-Identifier: Apache-2.0

package clickhouse

import "strings"

// The bytes that have a meaning in a literal or in a field of TabSeparated, and what stands for them in both.
var (
	escaper   = strings.NewReplacer(`\`, `\\`, "'", `\'`, "\t", `\t`, "\n", `\n`, "\r", `\r`, "\b", `\b`, "\f", `\f`, "\x00", `\0`)
	unescaper = strings.NewReplacer(`\\`, `\`, `\'`, "'", `\t`, "\t", `\n`, "\n", `\r`, "\r", `\b`, "\b", `\f`, "\f", `\0`, "\x00")
)

// Escape writes a text as one field of a row, which is also valid between the quotes of a
// literal.
func Escape(s string) string { return escaper.Replace(s) }

// Quote writes a text as a literal.
func Quote(s string) string { return "'" + Escape(s) + "'" }

// List writes texts as a list of literals in parentheses. There must be one at least.
func List(texts []string) string {
	quoted := make([]string, len(texts))
	for i, t := range texts {
		quoted[i] = Quote(t)
	}
	return "(" + strings.Join(quoted, ", ") + ")"
}
