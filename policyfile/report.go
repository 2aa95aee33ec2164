// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policyfile/lint"
)

// UnknownCrawler is the code of the problem that a rule names an unknown crawler.
const UnknownCrawler = "unknown-crawler"

// maxDiagnostics is the maximum number of errors reported for a file. It is also the maximum number of warnings and
// hints together.
const maxDiagnostics = 10_000

type reporter struct {
	file   string
	lines  []string
	list   Diagnostics
	errors int
	mild   int // warnings and hints
}

func (r *reporter) report(at policy.Pos, code, didYouMean, format string, args ...any) {
	severity, n := severityOf(code), &r.mild
	if severity == policy.Error {
		n = &r.errors
	}
	if *n++; *n > maxDiagnostics {
		return
	}
	message := format
	if len(args) > 0 {
		message = fmt.Sprintf(format, args...)
	}
	r.list = append(r.list, r.diagnostic(policy.Problem{Severity: severity, Code: code, Pos: at, Message: message}, didYouMean))
}

// refuse reports an error and returns false.
func (r *reporter) refuse(n *yaml.Node, code, didYouMean, format string, args ...any) bool {
	r.report(posOf(n), code, didYouMean, format, args...)
	return false
}

func (r *reporter) reportChoice(at policy.Pos, code, didYouMean, problem string, words []string) {
	r.reportAdvice(at, code, didYouMean, problem, "must be "+english.List(words, "or"))
}

// reportAdvice reports a problem. In the message, the suggestion didYouMean comes between problem and advice.
func (r *reporter) reportAdvice(at policy.Pos, code, didYouMean, problem, advice string) {
	n := len(r.list)
	if r.report(at, code, didYouMean, "%s: %s", problem, advice); len(r.list) > n {
		r.list[len(r.list)-1].fixAt = len(english.OneLine(problem))
	}
}

func (r *reporter) diagnostic(p policy.Problem, didYouMean string) Diagnostic {
	d := Diagnostic{
		File: r.file, Pos: p.Pos, Severity: p.Severity, Code: p.Code,
		Message: english.OneLine(p.Message), DidYouMean: english.OneLine(didYouMean),
	}
	if i := strings.Index(d.Message, `": `); i > 0 && strings.HasPrefix(d.Message, "invalid ") {
		d.fixAt = i + 1
	}
	if n := p.Pos.Line; n > 0 && n <= len(r.lines) {
		d.Line = r.lines[n-1]
	}
	return d
}

const maxQuoted = 60

// quote returns a value of the file for use in a message: in quotation marks, and shortened if it is long.
func quote(s string) string {
	short := []rune(s)
	if len(short) > maxQuoted {
		short = append(short[:maxQuoted], '…')
	}
	return `"` + string(short) + `"`
}

// lineBreaks replaces each line break of YAML 1.1 with "\n". The YAML parser counts the lines in the same way.
var lineBreaks = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n")

func splitLines(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(lineBreaks.Replace(s), "\n"), "\n")
}

// Code is a kind of problem.
type Code lint.Code

// codeTable lists the codes of this package, which docs/reference/messages.md explains.
var codeTable = []Code{
	{"file-too-large", policy.Error, "The file is too large"},
	{"file-empty", policy.Error, "The file is empty"},
	{"is-robots-txt", policy.Error, "The file is a robots.txt"},
	{"not-text", policy.Error, "The file is not UTF-8 text"},
	{"yaml-syntax", policy.Error, "The file is not YAML"},
	{"yaml-tab", policy.Error, "A tab where spaces belong"},
	{"needs-quotes", policy.Error, "A value needs quotation marks"},
	{"missing-space", policy.Error, "A space is missing after a colon"},
	{"second-document", policy.Error, "A second YAML document in the file"},
	{"yaml-alias", policy.Error, "A YAML alias, anchor or merge key"},
	{"yaml-tag", policy.Error, "A YAML type tag"},
	{"no-value", policy.Error, "A value is missing"},
	{"wrong-type", policy.Error, "A list, a map or a text in the wrong place"},
	{"duplicate-key", policy.Error, "A key appears twice"},
	{"unknown-key", policy.Error, "An unknown key"},
	{"missing-key", policy.Error, "A key is missing"},
	{"unknown-version", policy.Error, "An unknown version of the format"},
	{"bad-value", policy.Error, "An invalid value"},
	{"bad-name", policy.Error, "An invalid name"},
	{"bad-path", policy.Error, "An invalid path"},
	{"bad-host", policy.Error, "An invalid host"},
	{"bad-address", policy.Error, "An invalid address"},
	{"bad-audience", policy.Error, "An invalid name under \"for\""},
	{"unknown-category", policy.Error, "An unknown category"},
	{"unknown-usage", policy.Error, "An unknown usage"},
	{"bad-usage", policy.Error, "A usage that is not possible at this place of the policy file"},
	{"bad-qualifier", policy.Error, "An invalid qualifier of a usage"},
	{"bad-over-site", policy.Error, "An entry that cannot have \"over-site\""},
	{"contradiction", policy.Error, "A rule contradicts itself"},
	{"bad-robots-tag", policy.Error, "A value of robots-tag that search engines do not document"},
	{"bad-app-directive", policy.Error, "An invalid application directive"},
	{"bad-crawler", policy.Error, "A crawler that cannot be added"},
	{"reference-not-alone", policy.Error, "A key that cannot be combined with permissions-reference"},
	{"too-many-rules", policy.Error, "Too many rules"},
	{"misspelled-crawler-enforced", policy.Error, "A misspelled crawler's name in an enforced rule"},
	{"bad-expectation", policy.Error, "A test that cannot be read"},
	{"expectation-failed", policy.Error, "A test of the policy fails"},

	{"more-than-allowed", policy.Warning, "Too many rules in a policy that Caddy accepted earlier"},
	{"expectation-no-longer-holds", policy.Warning, "A test of the policy no longer passes"},
	{"listed-twice", policy.Warning, "An entry appears twice in a list"},
	{"another-catalog", policy.Warning, "The policy was written for another crawler catalog"},
	{"unknown-operator", policy.Warning, "An unknown operator"},
	{"misspelled-crawler", policy.Warning, "A crawler's name that may be misspelled"},
	{UnknownCrawler, policy.Warning, "An unknown crawler"},
	{"token-not-allowed", policy.Warning, "A crawler's name that RFC 9309 does not allow"},
	{"name-with-space", policy.Hint, "A crawler's name with a space"},
	{"has-a-usage", policy.Warning, "A value of robots-tag that can be written as a usage"},
	{"duplicate-app-directive", policy.Warning, "Two directives for one application and path"},
	{"unused-name", policy.Warning, "A set of paths or a usage that no rule uses"},
}

var severities = func() map[string]policy.Severity {
	m := map[string]policy.Severity{}
	for _, c := range Codes() {
		m[c.Name] = c.Severity
	}
	return m
}()

func severityOf(code string) policy.Severity {
	s, ok := severities[code]
	if !ok {
		panic("policyfile: unknown code " + code)
	}
	return s
}

// Codes lists the codes of policy files. The most severe ones come first. Channels report further codes (see File.Add).
func Codes() []Code {
	all := slices.Clone(codeTable)
	for _, c := range lint.Codes() {
		all = append(all, Code(c))
	}
	slices.SortStableFunc(all, func(a, b Code) int { return cmp.Compare(b.Severity, a.Severity) })
	return all
}
