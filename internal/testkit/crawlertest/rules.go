// SPDX-License-Identifier: Apache-2.0

package crawlertest

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dunglas/httpsfv"
)

// Member is an Item of an RFC 8941 List whose value is a Token.
type Member struct {
	Token  string
	Params map[string]string // the bare items as text; strings have no quotes
	Order  []string          // names of the parameters in their order, with repeated ones
}

// Read8941 reads a List of Tokens with parameters strictly by RFC 8941 §4.2, which does not have Dates and Display
// Strings.
func Read8941(s string) (list []Member, err error) {
	p := &sfReader{s: s}
	p.skip(" ")
	for p.s != "" {
		m := Member{Params: map[string]string{}}
		if m.Token, err = p.token(); err != nil {
			return nil, err
		}
		for strings.HasPrefix(p.s, ";") {
			p.s = strings.TrimLeft(p.s[1:], " ")
			key, value, err := p.param()
			if err != nil {
				return nil, err
			}
			m.Params[key] = value
			m.Order = append(m.Order, key)
		}
		list = append(list, m)
		p.skip(" \t")
		if p.s == "" {
			return list, nil
		}
		if p.s[0] != ',' {
			return nil, fmt.Errorf("no comma at %q", p.s)
		}
		p.s = p.s[1:]
		p.skip(" \t")
		if p.s == "" {
			return nil, fmt.Errorf("comma at the end")
		}
	}
	return list, nil
}

type sfReader struct{ s string }

const (
	sfLower = "abcdefghijklmnopqrstuvwxyz"
	sfAlpha = sfLower + "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	sfDigit = "0123456789"
)

func (p *sfReader) skip(set string) { p.s = strings.TrimLeft(p.s, set) }

func (p *sfReader) take(first, more string) (string, error) {
	if p.s == "" || !strings.Contains(first, p.s[:1]) {
		return "", fmt.Errorf("%q does not start with one of %s", p.s, first)
	}
	rest := strings.TrimLeft(p.s[1:], more)
	got := p.s[:len(p.s)-len(rest)]
	p.s = rest
	return got, nil
}

func (p *sfReader) token() (string, error) {
	return p.take(sfAlpha+"*", sfAlpha+sfDigit+":/!#$%&'*+-.^_`|~")
}

func (p *sfReader) param() (key, value string, err error) {
	if key, err = p.take(sfLower+"*", sfLower+sfDigit+"_-.*"); err != nil || !strings.HasPrefix(p.s, "=") {
		return key, "?1", err
	}
	p.s = p.s[1:]
	switch {
	case strings.HasPrefix(p.s, `"`):
		var b strings.Builder
		for i := 1; i < len(p.s); i++ {
			switch c := p.s[i]; {
			case c == '"':
				p.s = p.s[i+1:]
				return key, b.String(), nil
			case c == '\\' && i+1 < len(p.s) && strings.Contains(`"\`, p.s[i+1:i+2]):
				i++
				b.WriteByte(p.s[i])
			case c < ' ' || c > '~' || c == '\\':
				return "", "", fmt.Errorf("bad byte in a string")
			default:
				b.WriteByte(c)
			}
		}
		return "", "", fmt.Errorf("string without an end")
	case strings.HasPrefix(p.s, "?"):
		value = p.s[:min(2, len(p.s))]
		p.s = p.s[len(value):]
		if value != "?0" && value != "?1" {
			err = fmt.Errorf("no boolean")
		}
	case strings.HasPrefix(p.s, ":"):
		end := strings.IndexByte(p.s[1:], ':')
		if end < 0 {
			return "", "", fmt.Errorf("byte sequence without an end")
		}
		value, p.s = p.s[:end+2], p.s[end+2:]
	case p.s != "" && strings.Contains(sfDigit+"-", p.s[:1]):
		value, _ = p.take(sfDigit+"-", sfDigit+".")
		digits := strings.TrimPrefix(value, "-")
		whole, fraction, decimal := strings.Cut(digits, ".")
		if whole == "" || len(whole) > 15 || decimal && (len(whole) > 12 || fraction == "" || len(fraction) > 3) {
			err = fmt.Errorf("no number: %s", value)
		}
	default:
		value, err = p.token()
	}
	return key, value, err
}

// Rights holds what a search engine may do with a page, and the limits for this.
type Rights struct {
	Index, Embed, Follow, Archive, Translate, Images bool
	Snippet, Video, Image, Until                     int64
	NoCache                                          bool // Bing's nocache; it has no effect with noarchive
}

// Unlimited is the value of a length or a time without a limit.
const Unlimited = 1 << 60

// AllRights returns the rights for a page without rules.
func AllRights() Rights {
	return Rights{
		Index: true, Embed: true, Follow: true, Archive: true, Translate: true, Images: true,
		Snippet: Unlimited, Video: Unlimited, Image: 2, Until: Unlimited,
	}
}

// String lists the rights of AllRights that r does not have.
func (r Rights) String() string {
	var lacks []string
	add := func(lack bool, format string, args ...any) {
		if lack {
			lacks = append(lacks, fmt.Sprintf(format, args...))
		}
	}
	add(!r.Index, "index")
	add(!r.Embed, "embed")
	add(!r.Follow, "follow")
	add(!r.Archive, "archive")
	add(!r.Translate, "translate")
	add(!r.Images, "images")
	add(r.Snippet != Unlimited, "snippets over %d", r.Snippet)
	add(r.Video != Unlimited, "videos over %d", r.Video)
	add(r.Image != 2, "images of size %d", r.Image+1)
	add(r.Until != Unlimited, "use after %s", time.Unix(r.Until, 0).UTC().Format(time.RFC3339))
	add(r.NoCache, "cache")
	if lacks == nil {
		return "everything"
	}
	return "no " + strings.Join(lacks, ", no ")
}

// Within reports whether s includes all rights of r.
func (r Rights) Within(s Rights) bool { return r.And(s) == r }

// And returns the rights that are in both r and s.
func (r Rights) And(s Rights) Rights {
	return Rights{
		r.Index && s.Index, r.Embed && s.Embed, r.Follow && s.Follow, r.Archive && s.Archive, r.Translate && s.Translate, r.Images && s.Images,
		min(r.Snippet, s.Snippet), min(r.Video, s.Video), min(r.Image, s.Image), min(r.Until, s.Until),
		(r.NoCache || s.NoCache) && r.Archive && s.Archive,
	}
}

// Evaluate returns the rights that a search engine has on a page with the given rules. Each rule is a name and a value.
// As search engines document, all rules that forbid something apply together. If there are several limits of the same
// kind, the most restrictive one applies. The rule indexifembedded weakens a noindex.
func Evaluate(rules [][2]string) Rights {
	r := AllRights()
	number := func(v string) int64 {
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil || n < 0 {
			return Unlimited
		}
		return n
	}
	embedded := false
	for _, rule := range rules {
		switch name, value := rule[0], rule[1]; name {
		case "noindex":
			r.Index, r.Embed = false, false
		case "nofollow":
			r.Follow = false
		case "none":
			r.Index, r.Embed, r.Follow = false, false, false
		case "indexifembedded":
			embedded = true
		case "nosnippet":
			r.Snippet = 0
		case "noarchive":
			r.Archive = false
		case "nocache":
			r.NoCache = true
		case "notranslate":
			r.Translate = false
		case "noimageindex":
			r.Images = false
		case "max-snippet":
			r.Snippet = min(r.Snippet, number(value))
		case "max-video-preview":
			r.Video = min(r.Video, number(value))
		case "max-image-preview":
			if i := strings.Index("none standard large", value); value != "" && i >= 0 {
				r.Image = min(r.Image, map[int]int64{0: 0, 5: 1, 14: 2}[i])
			}
		case "unavailable_after":
			for _, layout := range []string{time.RFC3339, "2 Jan 2006 15:04:05 MST", "Monday, 02-Jan-06 15:04:05 MST"} {
				if at, err := time.Parse(layout, value); err == nil {
					r.Until = min(r.Until, at.Unix())
				}
			}
		}
	}
	r.Embed = r.Embed || embedded
	r.NoCache = r.NoCache && r.Archive
	return r
}

// XRules reads X-Robots-Tag and returns the rules by agent. A line can contain the names of agents, each followed by a
// colon. The rules before the first name are for everyone. In a rule with a value, such as "max-snippet: 5", the word
// before the colon is not an agent's name.
func XRules(lines []string) map[string][][2]string {
	found := map[string][][2]string{}
	for _, line := range lines {
		agent := "*"
		parts := strings.Split(line, ",")
		for i := 0; i < len(parts); i++ {
			part := strings.TrimSpace(parts[i])
			for {
				name, rest, ok := strings.Cut(part, ":")
				name = strings.ToLower(strings.TrimSpace(name))
				if !ok || strings.HasPrefix(name, "max-") || name == "unavailable_after" {
					break
				}
				agent, part = name, strings.TrimSpace(rest)
			}
			name, value, _ := strings.Cut(part, ":")
			name, value = strings.ToLower(strings.TrimSpace(name)), strings.TrimSpace(value)
			if name == "unavailable_after" && strings.HasSuffix(value, "day") && i+1 < len(parts) {
				i++
				value += ", " + strings.TrimSpace(parts[i])
			}
			if name != "" {
				found[agent] = append(found[agent], [2]string{name, strings.ToLower(value)})
				if name == "unavailable_after" {
					found[agent][len(found[agent])-1][1] = value
				}
			}
		}
	}
	return found
}

// EvaluateX returns the rights that an agent has if a response has these lines of X-Robots-Tag. The name of the agent
// is in lower case.
func EvaluateX(lines []string, agent string) Rights {
	return EvaluateFor(XRules(lines), agent)
}

// TagRules reads Robots-Tag with three parsers and returns the rules by token. It returns an error if the parsers do
// not agree, or if the field is not in its canonical form.
func TagRules(lines []string) (map[string][][2]string, error) {
	found := map[string][][2]string{}
	if len(lines) == 0 {
		return found, nil
	}
	if len(lines) != 1 {
		return nil, fmt.Errorf("Robots-Tag has %d lines: %q", len(lines), lines)
	}
	list, err := httpsfv.UnmarshalList(lines)
	if err != nil {
		return nil, fmt.Errorf("%q is not a List: %v", lines, err)
	}
	dict, err := httpsfv.UnmarshalDictionary(lines)
	if err != nil {
		return nil, fmt.Errorf("%q is not a Dictionary: %v", lines, err)
	}
	plain, err := Read8941(lines[0])
	if err != nil {
		return nil, fmt.Errorf("RFC 8941 cannot read %q: %v", lines, err)
	}
	if len(list) != len(plain) {
		return nil, fmt.Errorf("%q has %d and %d members", lines, len(list), len(plain))
	}
	for i, m := range plain {
		item := list[i].(httpsfv.Item)
		if item.Value != httpsfv.Token(m.Token) || m.Token != strings.ToLower(m.Token) || len(m.Params) == 0 || len(m.Order) != len(m.Params) {
			return nil, fmt.Errorf("%q: member %q is not allowed there", lines, m.Token)
		}
		if i > 0 && plain[i-1].Token != m.Token && plain[i-1].Token != "*" && plain[i-1].Token >= m.Token || m.Token == "*" && i > 0 && plain[i-1].Token != "*" {
			return nil, fmt.Errorf("%q is not in order", lines)
		}
		for k, v := range m.Params {
			found[m.Token] = append(found[m.Token], [2]string{k, v})
		}
		if i+1 < len(plain) && plain[i+1].Token == m.Token {
			continue // the rule has a second value, and a Dictionary contains only the last one
		}
		entry, _ := dict.Get(m.Token)
		if same, ok := entry.(httpsfv.Item); !ok || same.Value != true || !maps.Equal(paramTexts(item.Params), paramTexts(same.Params)) {
			return nil, fmt.Errorf("%q: member %d is read in different ways", lines, i)
		}
	}
	return found, nil
}

func paramTexts(p *httpsfv.Params) map[string]string {
	texts := map[string]string{}
	for _, n := range p.Names() {
		v, _ := p.Get(n)
		texts[n] = fmt.Sprintf("%T %v", v, v)
	}
	return texts
}

// EvaluateTag returns the rights that an agent has if a response has these lines of Robots-Tag. The name of the agent
// is in lower case.
func EvaluateTag(lines []string, agent string) (Rights, error) {
	rules, err := TagRules(lines)
	return EvaluateFor(rules, agent), err
}

// EvaluateFor returns the rights that one agent has. The keys of rules are names of agents in lower case. The rules for
// "*" and the rules for the agent apply together.
func EvaluateFor(rules map[string][][2]string, agent string) Rights {
	return Evaluate(slices.Concat(rules["*"], rules[agent]))
}
