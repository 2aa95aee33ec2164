// SPDX-License-Identifier: Apache-2.0

package robotstag

import (
	"regexp"
	"slices"
	"strings"

	"github.com/dunglas/httpsfv"

	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/ascii"
	"github.com/robotspolicy/caddy-robots-policy/robotsrule"
)

// A reading tells how reliably a line or member of Robots-Tag was understood. The values are sorted from best to worst.
type reading int

const (
	asWritten reading = iota
	repaired
	guessed // the text is not a structured field, and its meaning was guessed
)

// readRobotsTag reads an upstream's lines of Robots-Tag. It reads each line separately, because a malformed line would
// make the whole field unreadable. It accepts the List of draft -03. It also accepts the Dictionary of draft -02, which
// has one form in the text of that draft, *=(noindex nosnippet), and another form in its examples. It also accepts the
// syntax of X-Robots-Tag, which a List parser reads as product tokens without rules. A malformed member or parameter
// does not affect the others, because some readers just split the field at commas and semicolons.
func readRobotsTag(lines []string) (audiences, []Problem) {
	said := map[string][]robotsrule.Set{}
	problems := eachLine(lines, RobotsTagField, lastMemberEnd, func(line string, p []Problem) []Problem {
		line = strings.Trim(line, " \t")
		members, odd, how := readRobotsTagLine(line)
		for _, text := range odd {
			p = addProblem(p, Malformed, RobotsTagField, text)
		}
		if how != asWritten && len(members) > 0 {
			p = addProblem(p, Repaired, RobotsTagField, line)
		}
		for _, m := range members {
			if m = addressed(m); m.Token != Everyone && !isKey(m.Token) {
				p = addProblem(p, BadToken, RobotsTagField, m.Token)
				continue
			}
			said[m.Token] = append(said[m.Token], wordByWord(m.Rules))
		}
		return p
	})
	found := make(audiences, len(said))
	for token, sets := range said {
		found[token] = robotsrule.UnionAll(sets)
	}
	return found, problems
}

// addressed returns a member for everyone with the rules of m if the token of m cannot be the token of a crawler.
// Examples of such tokens are 42 and noindex|nosnippet. Otherwise it returns m unchanged.
func addressed(m Member) Member {
	if m.Token == Everyone || isKey(m.Token) && !strings.Contains(m.Token, ".") && !robotsrule.IsRule(m.Token) {
		return m // the token is valid
	}
	hidden := rulesIn(m.Token)
	switch {
	case !hidden.IsEmpty() && (m.Rules.IsEmpty() || !isKey(m.Token) || robotsrule.IsRule(m.Token)):
		return Member{Everyone, m.Rules.Union(hidden)}
	case !isScope(m.Token):
		return Member{Everyone, m.Rules}
	}
	return m
}

// wordByWord replaces each rule that the field cannot express with the known rules among its words. For example, it
// replaces "noindex nosnippet" with the two rules noindex and nosnippet.
func wordByWord(rules robotsrule.Set) robotsrule.Set {
	if rules.WithoutUnknown() == rules {
		return rules
	}
	lost := rules.ParamsLose()
	var known []robotsrule.Set
	return rules.Without(func(rule string) bool {
		if _, found := slices.BinarySearch(lost, rule); !found {
			return false
		}
		in := rulesIn(rule)
		known = append(known, in)
		return !in.IsEmpty()
	}).Union(robotsrule.UnionAll(known))
}

// ruleText matches a rule with its possible value, or any other word.
var ruleText = regexp.MustCompile(`(?i)\b(max-(?:snippet|video-preview|image-preview))\b[ \t:="'(]*([a-z0-9]+)|[a-z0-9_-]+`)

// rulesIn returns the known restrictive rules among the words of a text.
func rulesIn(text string) robotsrule.Set {
	var found []robotsrule.Set
	for _, m := range ruleText.FindAllStringSubmatch(text, -1) {
		switch word := ascii.Lower(m[0]); {
		case m[1] != "":
			found = append(found, robotsrule.Of(m[1]+":"+m[2]))
		case !strings.HasPrefix(word, "max-") && word != "unavailable_after":
			found = append(found, robotsrule.Of(word))
		}
	}
	return robotsrule.UnionAll(found).Without(isUnknown).Restrictive()
}

// readRobotsTagLine returns the members of a line. odd has the texts of the members that could not be read.
func readRobotsTagLine(line string) (members []Member, odd []string, how reading) {
	if line == "" {
		return nil, nil, asWritten
	}
	if !strings.ContainsAny(line, ";=") {
		if members, ok := legacyLine(line); ok {
			return members, nil, repaired
		}
	}
	members, odd, how = readMembers(line)
	if how == guessed && !strings.Contains(line, ";") {
		if members, ok := legacyLine(line); ok {
			return members, nil, repaired
		}
	}
	return members, odd, how
}

func readMembers(line string) (members []Member, odd []string, how reading) {
	if members, how := readList(line); how != guessed {
		return members, nil, how
	}
	how = repaired
	for _, text := range splitMembers(line) {
		found, read := readList(text)
		if read == guessed {
			found, read = readEntry(text)
		}
		if read == guessed {
			m, ok := readLoosely(text)
			if !ok {
				odd = append(odd, strings.Trim(text, " \t"))
			} else {
				found = []Member{m}
			}
		}
		how = max(how, read)
		members = append(members, found...)
	}
	return members, odd, how
}

// legacyLine reads a line in the syntax of X-Robots-Tag if it contains a known rule.
func legacyLine(line string) ([]Member, bool) {
	known := false
	splitScopes(line, func(_, rule string) {
		name, _, _ := strings.Cut(strings.ReplaceAll(rule, "=", ":"), ":")
		known = known || robotsrule.IsRule(strings.Trim(name, " \t"))
	})
	if !known {
		return nil, false
	}
	found, _ := readXRobotsTag([]string{line})
	return sortedMembers(found), true
}

var equals = regexp.MustCompile(`[ \t]*[:=][ \t]*`)

// readLoosely reads a member that is not a structured field. It expects a product token and rules, separated by
// semicolons. If the token is missing, the rules are for everyone. readLoosely allows white space around each part,
// and a colon instead of an equals sign. It returns false if there is nothing to read.
func readLoosely(text string) (Member, bool) {
	m := Member{Token: Everyone}
	first, rest, _ := strings.Cut(equals.ReplaceAllString(text, ":"), ";")
	first = strings.Trim(first, " \t()\"'")
	if end := strings.IndexAny(first+" ", " \t:()"); !robotsrule.IsRule(first[:end]) {
		m.Token = ascii.Lower(strings.TrimRight(first[:end], `"'`))
		first = strings.TrimLeft(first[end:], " \t:(")
	}
	said := []robotsrule.Set{robotsrule.Parse(first)}
	for rest != "" {
		var text string
		text, rest = cutParam(rest)
		name, value, valued := strings.Cut(strings.Trim(text, " \t"), ":")
		if valued {
			value = "=" + value
		}
		if item, err := httpsfv.UnmarshalItem([]string{"x;" + ascii.Lower(name) + value}); err == nil {
			said = append(said, robotsrule.FromParams(item.Params))
		} else {
			said = append(said, robotsrule.Parse(text))
		}
	}
	m.Rules = robotsrule.UnionAll(said)
	return m, !m.Rules.IsEmpty() || isKey(m.Token) || !rulesIn(m.Token).IsEmpty()
}

// cutParam splits off the first parameter of a member. The parameter ends at a semicolon that is not within a
// String.
func cutParam(s string) (param, rest string) {
	param, rest, _ = strings.Cut(s, ";")
	for strings.Count(param, `"`)%2 == 1 && strings.Contains(rest, `"`) {
		more, after, _ := strings.Cut(rest, ";")
		param, rest = param+";"+more, after
	}
	return param, rest
}

// readList reads the List of draft -03.
func readList(text string) ([]Member, reading) {
	list, err := httpsfv.UnmarshalList([]string{strings.Trim(text, " \t")})
	if err != nil {
		return nil, guessed
	}
	members := make([]Member, 0, len(list))
	worst := asWritten
	for _, member := range list {
		item, ok := member.(httpsfv.Item)
		if !ok {
			return nil, guessed
		}
		rules := robotsrule.FromParams(item.Params)
		var m Member
		how := repaired
		switch value := item.Value.(type) {
		case httpsfv.Token:
			m, how = readToken(strings.ToLower(string(value)), rules)
		case string:
			// A product token that is not a valid Token of RFC 8941 is written as a String.
			m, _ = readToken(strings.ToLower(value), rules)
		default:
			return nil, guessed
		}
		worst = max(worst, how)
		members = append(members, m)
	}
	return members, worst
}

// readToken splits a token that contains a rule, such as "noindex", "googlebot:noindex" or "max-snippet:250".
func readToken(token string, rules robotsrule.Set) (Member, reading) {
	agent, rule, scoped := strings.Cut(token, ":")
	switch {
	case robotsrule.IsRule(agent):
		return Member{Everyone, rules.Union(robotsrule.Parse(token))}, repaired
	case scoped:
		return Member{agent, rules.Union(robotsrule.Parse(rule))}, repaired
	}
	return Member{token, rules}, asWritten
}

// readEntry reads a member of the Dictionary of draft -02, which has one rule or a list of rules after an equals
// sign.
func readEntry(text string) ([]Member, reading) {
	d, err := httpsfv.UnmarshalDictionary([]string{strings.Trim(text, " \t")})
	if err != nil || len(d.Names()) != 1 {
		return nil, guessed
	}
	name := d.Names()[0]
	value, _ := d.Get(name)
	var said []robotsrule.Set
	var bare any = true
	switch value := value.(type) {
	case httpsfv.InnerList:
		said = append(said, robotsrule.FromParams(value.Params))
		for _, item := range value.Items {
			rule := bareRule(item.Value)
			if strings.HasPrefix(name, "max-") {
				rule = param(name, item.Value)
			}
			said = append(said, robotsrule.FromParams(item.Params), rule)
		}
	case httpsfv.Item:
		said = append(said, robotsrule.FromParams(value.Params), bareRule(value.Value))
		bare = value.Value
	}
	if !robotsrule.IsRule(name) {
		return []Member{{name, robotsrule.UnionAll(said)}}, repaired
	}
	return []Member{{Everyone, robotsrule.UnionAll(append(said, param(name, bare)))}}, repaired
}

func param(name string, value any) robotsrule.Set {
	p := httpsfv.NewParams()
	p.Add(name, value)
	return robotsrule.FromParams(p)
}

func bareRule(value any) robotsrule.Set {
	switch value := value.(type) {
	case httpsfv.Token:
		return robotsrule.Parse(string(value))
	case string:
		return robotsrule.Parse(value)
	}
	return robotsrule.Set{}
}
