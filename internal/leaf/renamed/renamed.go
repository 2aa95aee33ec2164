// SPDX-License-Identifier: Apache-2.0

// Package renamed lists names that this program used before its first release, for testers of earlier versions.
// Messages about an old name give the new one, and stored policies with old names can still be read. The first
// release can drop this package.
package renamed

// Names maps an earlier name to the present one.
type Names map[string]string

var (
	// PolicyKeys are keys of the policy file.
	PolicyKeys = Names{"catalogue": "catalog", "kind": "category", "control-tokens": "controls"}
	// PolicyWords are values of the policy file.
	PolicyWords = Names{"claimed": "any", "refuses-search": "blocks-search", "shuts-out-search": "disallows-search", "unclassified": "none"}
	// Controls are values of publish: controls, which had the name control-tokens.
	Controls = Names{"on": "auto"}
	// Tests are the words that a test in a policy file can begin with.
	Tests = Names{"claimed": "unverified"}
	// Options are options of the Caddyfile.
	Options = Names{"refuse": "block_with", "visits_log": "crawler_log", "catalogue": "catalog", "node": "name", "clickhouse": "fleet_database"}
	// Matcher are words of the matcher crawler. The word "any" is not listed, because it is now every crawler, and
	// no longer an identity.
	Matcher = Names{"unknown": "unlisted"}
	// Catalog are keys of catalog files.
	Catalog = Names{"kind": "category", "kinds": "further", "honours": "honors"}
	// Flags are flags of commands, without hyphens.
	Flags = Names{"catalogue": "catalog", "store": "database", "closed": "disallow"}
	// Arguments are arguments of commands.
	Arguments = Names{"refuse": "block", "unclassified": "none"}
)

// Hint returns the end of a message about an unknown name, such as ` (it is now called "crawler_log")`. It returns
// "" for a name that was never used.
func (n Names) Hint(old string) string {
	if now, ok := n[old]; ok {
		return ` (it is now called "` + now + `")`
	}
	return ""
}
