// SPDX-License-Identifier: Apache-2.0

package clickhouse

import "strings"

// escaper escapes the bytes with a special meaning in a string literal or in a field of TabSeparated. unescaper does
// the opposite.
var (
	escaper   = strings.NewReplacer(`\`, `\\`, "'", `\'`, "\t", `\t`, "\n", `\n`, "\r", `\r`, "\b", `\b`, "\f", `\f`, "\x00", `\0`)
	unescaper = strings.NewReplacer(`\\`, `\`, `\'`, "'", `\t`, "\t", `\n`, "\n", `\r`, "\r", `\b`, "\b", `\f`, "\f", `\0`, "\x00")
)

// Escape returns a text as a field of a TabSeparated row. The result can also be used between the quotes of a literal.
func Escape(s string) string { return escaper.Replace(s) }

// Quote returns a text as a string literal.
func Quote(s string) string { return "'" + Escape(s) + "'" }
