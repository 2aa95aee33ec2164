// SPDX-License-Identifier: Apache-2.0

// Package policyfile reads a site's policy file: YAML in, a [policy.Policy] and
// diagnostics out. It also lints a policy, prints one as YAML, and gives the JSON
// Schema of the file.
//
// The people who write policy files are publishers. Every diagnostic therefore
// names the place, says what is wrong in plain words, and says what to do.
//
// Values are the source text of YAML's scalars and never YAML's guess at them: on,
// 1e3 and 2027-01-31 are those very characters.
package policyfile
