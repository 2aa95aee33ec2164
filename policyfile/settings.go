// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

const (
	defaultStatus = 403
	maxMessage    = 1000
	maxRetryAfter = 365 * 86400
)

var statuses = []string{"401", "402", "403", "404", "410", "429", "451"}

var enforcementFields = fields[*policy.Enforcement]{
	key("mode", "off, log (only log requests that would be blocked) or block", modeShape,
		func(p *parser, n *yaml.Node, e *policy.Enforcement) {
			e.Mode, p.enforcementAt = p.mode(n, "mode"), posOf(n)
		}, func(w *printer, e *policy.Enforcement) { w.plain("mode", e.Mode.String()) }),
	key("status", "the HTTP status of the response to a blocked request; the default is 403", statusShape(),
		func(p *parser, n *yaml.Node, e *policy.Enforcement) {
			word, _ := p.choice(n, "status", statuses...)
			e.Status, _ = strconv.Atoi(word)
		}, func(w *printer, e *policy.Enforcement) {
			w.plainIf(e.Status != defaultStatus, "status", strconv.Itoa(e.Status))
		}),
	key("impostors", "what the server does with impostors, which are clients that falsely use the name of a crawler; the default is off", modeShape,
		func(p *parser, n *yaml.Node, e *policy.Enforcement) { e.Impostors = p.mode(n, "impostors") },
		func(w *printer, e *policy.Enforcement) {
			w.plainIf(e.Impostors > policy.ModeOff, "impostors", e.Impostors.String())
		}),
	textKey("message", "the text of the response to a blocked request", textShape("one line of text", ""), (*parser).message,
		func(e *policy.Enforcement) *string { return &e.Message }),
	key("retry-after", "the number of seconds after which a blocked crawler may try again",
		shape{"type": "integer", "minimum": 1, "maximum": maxRetryAfter}, func(p *parser, n *yaml.Node, e *policy.Enforcement) {
			e.RetryAfter = time.Duration(p.count(n, "retry-after", maxRetryAfter, "a whole number of seconds above 0 and up to a year, such as 3600")) * time.Second
		}, func(w *printer, e *policy.Enforcement) {
			w.plainIf(e.RetryAfter > 0, "retry-after", strconv.FormatInt(int64((e.RetryAfter+time.Second-1)/time.Second), 10))
		}),
	key("action", "with close, Caddy closes the connection without a response", choiceShape("close"),
		func(p *parser, n *yaml.Node, e *policy.Enforcement) { _, e.Close = p.choice(n, "action", "close") },
		func(w *printer, e *policy.Enforcement) { w.plainIf(e.Close, "action", "close") }),
}

func statusShape() shape {
	codes := make([]any, len(statuses))
	for i, s := range statuses {
		codes[i], _ = strconv.Atoi(s)
	}
	return shape{"enum": codes}
}

func readEnforcement(p *parser, n *yaml.Node, spec *policy.Spec) {
	if n.Kind == yaml.ScalarNode && !p.isJoined(n) {
		spec.Enforcement.Mode, p.enforcementAt = p.mode(n, "enforcement"), posOf(n)
		return
	}
	readMap(p, n, "enforcement", enforcementFields, &spec.Enforcement)
	if !spec.Enforcement.Close {
		return
	}
	for _, name := range []string{"status", "message", "retry-after"} {
		if part := child(n, name); part != nil {
			p.report(posOf(part), "bad-value", "", `"action: close" closes the connection without a response, so this key has no effect; delete one of the two keys`)
			return
		}
	}
}

func printEnforcement(w *printer, spec *policy.Spec) {
	e := spec.Enforcement
	e.Mode, e.Impostors = max(e.Mode, policy.ModeOff), max(e.Impostors, policy.ModeOff)
	if e.Close {
		e.Status, e.Message, e.RetryAfter = 0, "", 0 // "action: close" sends no response, so these settings do not apply
	}
	e.Status = cmp.Or(e.Status, defaultStatus)
	switch e {
	case policy.Enforcement{Mode: policy.ModeOff, Impostors: policy.ModeOff, Status: defaultStatus}:
	case policy.Enforcement{Mode: e.Mode, Impostors: policy.ModeOff, Status: defaultStatus}:
		w.plain("enforcement", e.Mode.String())
	default:
		w.under("enforcement", func() { printMap(w, enforcementFields, &e) })
	}
}

func (p *parser) message(n *yaml.Node, _, text string) bool {
	return len(text) <= maxMessage || p.refuse(n, "bad-value", "", "the message can have up to %d characters", maxMessage)
}

var publishFields = fields[*policy.Publish]{
	switchKey("acap", "the records of ACAP 1.0: auto publishes only rules that no other channel can express, full publishes the whole policy",
		func(b *policy.Publish) *policy.Switch { return &b.ACAP }, "auto", "full", "off"),
	key("everyone", "the form of the group for everyone in robots.txt: plain (the default) names only *, and named also lists the crawlers that ignore *",
		choiceShape("plain", "named"), func(p *parser, n *yaml.Node, b *policy.Publish) {
			word, _ := p.choice(n, "everyone", "plain", "named")
			b.EveryoneNamed = word == "named"
		}, func(w *printer, b *policy.Publish) { w.plainIf(b.EveryoneNamed, "everyone", "named") }),
	key("groups", "which crawlers robots.txt names: all, or short, which leaves out rare crawlers whose rule has enforce: block; the default is short",
		choiceShape("short", "all"), func(p *parser, n *yaml.Node, b *policy.Publish) {
			word, _ := p.choice(n, "groups", "short", "all")
			b.AllGroups = word == "all"
		}, func(w *printer, b *policy.Publish) { w.plainIf(b.AllGroups, "groups", "all") }),
	key("preamble", "a text for a comment at the start of robots.txt, such as a reservation of rights. Write one text for all hosts, or a map of hosts to texts, with \"*\" for all other hosts",
		shape{"anyOf": []any{textShape("lines of text", ""), namedShape("texts by host", hostKeyShape, textShape("lines of text", ""))}},
		readPreamble, printPreamble),
	key("lines", "other lines of robots.txt that are not in a group: Clean-param, which Yandex reads, and Host",
		oneOrMore(textShape("a line, such as Clean-param: ref /articles/", otherLine)), readLines,
		func(w *printer, b *policy.Publish) { w.under("lines", func() { w.items(b.Lines) }) }),
	switchKey("user-agent-purpose", "User-Agent-Purpose lines",
		func(b *policy.Publish) *policy.Switch { return &b.UserAgentPurpose }, "on", "off"),
	switchKey("content-usage", "Content-Usage lines and headers (AIPREF)",
		func(b *policy.Publish) *policy.Switch { return &b.ContentUsage }, "on", "off"),
	key("content-signal", "Content-Signal lines and headers: off (the default), on, immediate, reference or full. The last three also state how far the content may be used: immediate (read, but do not store), reference (index, excerpt, link back) or full",
		choiceShape(contentSignalWords...), readContentSignal,
		func(w *printer, b *policy.Publish) {
			w.plainIf(b.ContentSignal != policy.Off, "content-signal", cmp.Or(b.ContentSignalUse, "on"))
		}),
	key("controls", "the controls that crawler operators offer for opting out of AI, such as the token Google-Extended, or noarchive for Bingbot. With auto (the default), Caddy sends a control only where the rules disallow every usage that the control prevents. To choose controls yourself, write a map from crawlers or tokens to values, such as noarchive. Caddy sends each value where train-ai or ai-use is disallowed. With off, Caddy does not send any control",
		shape{"anyOf": []any{choiceShape(controlWords...), namedShape("controls by crawler or token", textShape("a crawler or token whose operator offers a control against AI", ""), textShape("the value, or off", ""))}},
		readControls, printControls),
	subMap("usage-tokens", "tokens that name groups in robots.txt; each of these groups has the rules for a usage, not for a crawler", usageTokenFields,
		func(b *policy.Publish) *policy.Publish { return b }),
	switchKey("noai", "the words noai and noimageai in the headers and meta tags of pages where train-ai is disallowed for everyone",
		func(b *policy.Publish) *policy.Switch { return &b.NoAI }, "on", "off"),
	switchKey("tdmrep", "TDMRep, which tells programs where text and data mining is reserved: /.well-known/tdmrep.json, headers and meta tags",
		func(b *policy.Publish) *policy.Switch { return &b.TDMRep }, "on", "off"),
	key("rsl", "a document with the licenses that follow from the rules (RSL), and the lines and headers that name this document. The value is on (for /license.xml), a path, or off, which is the default",
		textShape("off, on or a path", `^(off|on|/.*)$`), readRSL, printRSL),
	key("license", "the address of an RSL license that you write yourself, or off", textShape("an address or off", `^(off$|https?://)`),
		readLicense, func(w *printer, b *policy.Publish) { w.text("license", b.License) }),
	switchKey("action-requests", "the action requests of ACAP 1.0, which are not ready for use according to ACAP",
		func(b *policy.Publish) *policy.Switch { return &b.ActionRequests }, "on", "off"),
}

var switchWords = map[string]policy.Switch{"off": policy.Off, "on": policy.On, "auto": policy.Auto, "full": policy.Full}

func switchKey(name, about string, of func(*policy.Publish) *policy.Switch, words ...string) field[*policy.Publish] {
	byDefault := *of(&defaultPublish)
	return key(name, about+"; the default is "+switchWord(byDefault, words), choiceShape(words...), func(p *parser, n *yaml.Node, b *policy.Publish) {
		word, _ := p.choice(n, name, words...)
		*of(b) = switchWords[word]
	}, func(w *printer, b *policy.Publish) { w.plainIf(*of(b) != byDefault, name, switchWord(*of(b), words)) })
}

func switchWord(s policy.Switch, words []string) string {
	for _, word := range words {
		if switchWords[word] == s {
			return word
		}
	}
	return ""
}

var defaultPublish = policy.Publish{ContentUsage: policy.On, Controls: policy.Auto}

const maxPreamble = 32 << 10

// otherLine matches the lines of robots.txt that are valid outside groups. It excludes "#", which would start a
// comment.
const otherLine = `^(Clean-param|Host): [^\s#]([^\x00-\x1f\x7f#]*[^\s#])?$`

const (
	maxOtherLines = 1000
	maxOtherLine  = 2000 // bytes
)

var isOtherLine = regexp.MustCompile(otherLine)

func readLines(p *parser, n *yaml.Node, b *policy.Publish) {
	p.texts(n, "a line", func(n *yaml.Node, text string) {
		switch {
		case !isOtherLine.MatchString(text) || len(text) > maxOtherLine:
			p.refuse(n, "bad-value", "", "invalid line %s: write a line such as Clean-param: ref /articles/ or Host: www.example.com, with up to %d bytes. Rules for crawlers belong under \"rules\"", quote(text), maxOtherLine)
		case len(b.Lines) == maxOtherLines:
			p.refuse(n, "bad-value", "", "\"lines\" under publish can have up to %d lines; join the Clean-param parameters of one path with &", maxOtherLines)
		default:
			b.Lines = append(b.Lines, text)
		}
	})
}

const otherHosts = "*"

var hostKeyShape = textShape("a host, *.HOST or *", "")

func readPreamble(p *parser, n *yaml.Node, b *policy.Publish) {
	p.eachHost(n, "preamble", func(value *yaml.Node, host policy.Host) { p.preamble(value, host, b) })
}

// eachHost calls visit for a setting that may depend on the host. If the setting is a map of hosts, it calls visit for
// each host. Otherwise it calls visit once, with the host "".
func (p *parser) eachHost(n *yaml.Node, what string, visit func(value *yaml.Node, host policy.Host)) {
	if n.Kind != yaml.MappingNode {
		visit(n, "")
		return
	}
	p.eachPair(n, what, func(key, value *yaml.Node) {
		host := policy.Host("")
		if key.Value != otherHosts {
			var err error
			if host, err = policy.ParseHost(key.Value); err != nil {
				p.report(posOf(key), "bad-host", "", "%s: %s", quote(key.Value), err)
				return
			}
		}
		visit(value, host)
	})
}

func (p *parser) preamble(n *yaml.Node, host policy.Host, b *policy.Publish) {
	control := func(c rune) bool {
		return c < ' ' && c != '\n' && c != '\t' || c == 0x7f || c == 0x85 || c == 0x2028 || c == 0x2029
	}
	text := strings.Trim(strings.ReplaceAll(n.Value, "\r\n", "\n"), "\n")
	switch {
	case n.Kind != yaml.ScalarNode:
		p.report(posOf(n), "wrong-type", "", "preamble must be a text, not %s", kindOf(n))
	case strings.TrimSpace(text) == "":
		p.report(posOf(n), "no-value", "", "preamble has no value; write one, or delete the line")
	case strings.ContainsFunc(text, control):
		p.report(posOf(n), "bad-value", "", "preamble has control characters; write plain text")
	case len(text) > maxPreamble:
		p.report(posOf(n), "bad-value", "", "a preamble can have up to %d KiB; put a longer text on a page, and write the address of the page here", maxPreamble>>10)
	default:
		b.Preambles = append(b.Preambles, policy.Preamble{Host: host, Text: text})
	}
}

func printPreamble(w *printer, b *policy.Publish) {
	if len(b.Preambles) == 1 && b.Preambles[0].Host == "" {
		w.block("preamble", b.Preambles[0].Text)
		return
	}
	w.under("preamble", func() {
		for _, a := range b.Preambles {
			w.block(Scalar(cmp.Or(string(a.Host), otherHosts)), a.Text)
		}
	})
}

func (w *printer) block(key, text string) {
	start := ": |"
	if text[0] == ' ' || text[0] == '\t' {
		start = ": |2" // without a number, YAML would read the spaces as indentation
	}
	w.line(key + start)
	w.indent++
	for line := range strings.SplitSeq(text, "\n") {
		if line = strings.TrimRight(line, " \t"); line == "" {
			w.out.WriteByte('\n')
			continue
		}
		w.line(line)
	}
	w.indent--
}
