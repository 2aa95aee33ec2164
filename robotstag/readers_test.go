// SPDX-License-Identifier: Apache-2.0

package robotstag

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"
)

// The readers here share no code with the package: they are what a crawler's
// author would write from RFC 8941, from the drafts and from the engines' pages.

// sfMember is an Item of an RFC 8941 List whose value is a Token.
type sfMember struct {
	token  string
	params map[string]string // the bare items as text; strings unquoted
	order  []string
}

// read8941 reads a List of Tokens with parameters strictly by RFC 8941 §4.2,
// which knows neither Dates nor Display Strings.
func read8941(s string) (list []sfMember, err error) {
	p := &sfReader{s: s}
	p.skip(" ")
	for p.s != "" {
		m := sfMember{params: map[string]string{}}
		if m.token, err = p.token(); err != nil {
			return nil, err
		}
		for strings.HasPrefix(p.s, ";") {
			p.s = strings.TrimLeft(p.s[1:], " ")
			key, value, err := p.param()
			if err != nil {
				return nil, err
			}
			m.params[key] = value
			m.order = append(m.order, key)
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
				return "", "", fmt.Errorf("bad octet in a string")
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

// rights is what an engine may still do with a page, and for how long.
type rights struct {
	index, embed, follow, archive, translate, images bool
	snippet, video, image, until                     int64
}

func allRights() rights {
	const unlimited = 1 << 60
	return rights{true, true, true, true, true, true, unlimited, unlimited, 2, unlimited}
}

func (r rights) within(s rights) bool {
	return (!r.index || s.index) && (!r.embed || s.embed) && (!r.follow || s.follow) && (!r.archive || s.archive) &&
		(!r.translate || s.translate) && (!r.images || s.images) &&
		r.snippet <= s.snippet && r.video <= s.video && r.image <= s.image && r.until <= s.until
}

func (r rights) both(s rights) rights {
	return rights{r.index && s.index, r.embed && s.embed, r.follow && s.follow, r.archive && s.archive, r.translate && s.translate, r.images && s.images,
		min(r.snippet, s.snippet), min(r.video, s.video), min(r.image, s.image), min(r.until, s.until)}
}

// evaluate applies rules, given by name and value, as the engines' pages say:
// the more restrictive applies, negative rules add up, indexifembedded softens a
// noindex.
func evaluate(t *testing.T, rules [][2]string) rights {
	r := allRights()
	number := func(v string) int64 {
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil || n < 0 {
			return 1 << 60
		}
		return n
	}
	embedded := false
	for _, rule := range rules {
		switch name, value := rule[0], rule[1]; name {
		case "noindex":
			r.index, r.embed = false, false
		case "nofollow":
			r.follow = false
		case "none":
			r.index, r.embed, r.follow = false, false, false
		case "indexifembedded":
			embedded = true
		case "nosnippet":
			r.snippet = 0
		case "noarchive":
			r.archive = false
		case "notranslate":
			r.translate = false
		case "noimageindex":
			r.images = false
		case "max-snippet":
			r.snippet = min(r.snippet, number(value))
		case "max-video-preview":
			r.video = min(r.video, number(value))
		case "max-image-preview":
			if i := strings.Index("none standard large", value); value != "" && i >= 0 {
				r.image = min(r.image, map[int]int64{0: 0, 5: 1, 14: 2}[i])
			}
		case "unavailable_after":
			for _, layout := range []string{time.RFC3339, "2 Jan 2006 15:04:05 MST", "Monday, 02-Jan-06 15:04:05 MST"} {
				if at, err := time.Parse(layout, value); err == nil {
					r.until = min(r.until, at.Unix())
				}
			}
		}
	}
	r.embed = r.embed || embedded
	return r
}

// xAgents and evalX read X-Robots-Tag: a line speaks to everyone until a name
// and a colon say otherwise, and names of rules with values are no agents.
func xRules(lines []string) map[string][][2]string {
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

func evalX(t *testing.T, lines []string, agent string) rights {
	rules := xRules(lines)
	return evaluate(t, append(append([][2]string{}, rules["*"]...), rules[agent]...))
}

// rtRules reads Robots-Tag with three readers, which must agree, and gives the
// rules by token.
func rtRules(t *testing.T, lines []string) map[string][][2]string {
	t.Helper()
	found := map[string][][2]string{}
	if len(lines) == 0 {
		return found
	}
	if len(lines) != 1 {
		t.Fatalf("Robots-Tag has %d lines: %q", len(lines), lines)
	}
	list, err := httpsfv.UnmarshalList(lines)
	if err != nil {
		t.Fatalf("%q is no List: %v", lines, err)
	}
	dict, err := httpsfv.UnmarshalDictionary(lines)
	if err != nil {
		t.Fatalf("%q is no Dictionary: %v", lines, err)
	}
	plain, err := read8941(lines[0])
	if err != nil {
		t.Fatalf("RFC 8941 cannot read %q: %v", lines, err)
	}
	if len(list) != len(plain) || len(dict.Names()) != len(plain) {
		t.Fatalf("%q has %d, %d and %d members", lines, len(list), len(dict.Names()), len(plain))
	}
	for i, m := range plain {
		item := list[i].(httpsfv.Item)
		entry, _ := dict.Get(m.token)
		if item.Value != httpsfv.Token(m.token) || dict.Names()[i] != m.token || entry.(httpsfv.Item).Value != true {
			t.Fatalf("%q: member %d is read in different ways", lines, i)
		}
		if m.token != strings.ToLower(m.token) || m.token == "*" && i > 0 || len(m.params) == 0 {
			t.Fatalf("%q: member %q must not stand there", lines, m.token)
		}
		if i > 0 && plain[i-1].token != "*" && plain[i-1].token >= m.token {
			t.Fatalf("%q is not in order", lines)
		}
		if len(m.order) != len(m.params) || !maps.Equal(paramTexts(item.Params), paramTexts(entry.(httpsfv.Item).Params)) {
			t.Fatalf("%q: the parameters of %q are read in different ways", lines, m.token)
		}
		for k, v := range m.params {
			found[m.token] = append(found[m.token], [2]string{k, v})
		}
	}
	return found
}

func paramTexts(p *httpsfv.Params) map[string]string {
	texts := map[string]string{}
	for _, n := range p.Names() {
		v, _ := p.Get(n)
		texts[n] = fmt.Sprintf("%T %v", v, v)
	}
	return texts
}

func evalRT(t *testing.T, lines []string, agent string) rights {
	t.Helper()
	rules := rtRules(t, lines)
	return evaluate(t, append(append([][2]string{}, rules["*"]...), rules[agent]...))
}

func TestRead8941(t *testing.T) {
	for _, good := range []string{"*;noindex", `a;b=1;c="x\"";d=?0;e=-1.5;f=x:y, g`, "a;b=:YQ==:"} {
		if _, err := read8941(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{"*;unavailable_after=@1", `a;b=%"x"`, "a,", "a;", "a;B", "a b", "a;b=", `a;b="é"`, "a;b=1.", "9a"} {
		if got, err := read8941(bad); err == nil {
			t.Errorf("%q is read as %v", bad, got)
		}
	}
}
