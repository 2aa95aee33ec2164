// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"fmt"
	"strconv"
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

// enforcementReader is the enforcement section while it is read.
type enforcementReader struct {
	to    *policy.Enforcement
	close policy.Pos // of "action: close"
	reply policy.Pos // of the first part that only an answer has
}

var enforcementFields = fields[*enforcementReader]{
	{"mode", "off, log (log what would be refused) or block (refuse it)", false, modeShape, func(p *parser, _, n *yaml.Node, e *enforcementReader) {
		e.to.Mode, p.enforcementAt = p.mode(n, "mode"), posOf(n)
	}},
	{"status", "the HTTP status of a refusal; the default is 403", false, statusShape(), readStatus},
	{"impostors", "what the server does about clients that only claim to be a known crawler; the default is off", false, modeShape, func(p *parser, _, n *yaml.Node, e *enforcementReader) {
		e.to.Impostors = p.mode(n, "impostors")
	}},
	{"message", "the text of a refusal", false, textShape("one line of text", ""), readMessage},
	{"retry-after", "the seconds after which a refused crawler may ask again", false, shape{"type": "integer", "minimum": 1, "maximum": maxRetryAfter}, readRetryAfter},
	{"action", "close drops the connection instead of answering", false, choiceShape("close"), func(p *parser, _, n *yaml.Node, e *enforcementReader) {
		_, e.to.Close = p.choice(n, "action", "close")
		e.close = posOf(n)
	}},
}

func statusShape() shape {
	codes := make([]any, len(statuses))
	for i, s := range statuses {
		codes[i], _ = strconv.Atoi(s)
	}
	return shape{"enum": codes}
}

func readEnforcement(p *parser, _, n *yaml.Node, _ struct{}) {
	if n.Kind == yaml.ScalarNode && !p.isJoined(n) {
		p.spec.Enforcement.Mode, p.enforcementAt = p.mode(n, "enforcement"), posOf(n)
		return
	}
	e := &enforcementReader{to: &p.spec.Enforcement}
	readMap(p, n, "enforcement", enforcementFields, e)
	if e.to.Close && e.reply.Line > 0 {
		p.report(e.reply, "bad-value", "", `"action: close" drops the connection without an answer, so this could not be sent; delete one of the two`)
	}
}

func (e *enforcementReader) answers(n *yaml.Node) {
	if e.reply.Line == 0 {
		e.reply = posOf(n)
	}
}

func readStatus(p *parser, _, n *yaml.Node, e *enforcementReader) {
	e.answers(n)
	if word, ok := p.choice(n, "status", statuses...); ok {
		e.to.Status, _ = strconv.Atoi(word)
	}
}

func readMessage(p *parser, _, n *yaml.Node, e *enforcementReader) {
	e.answers(n)
	text, ok := p.text(n, "message")
	if ok && len(text) > maxMessage {
		p.report(posOf(n), "bad-value", "", "the message can have up to %d characters", maxMessage)
		return
	}
	e.to.Message = text
}

func readRetryAfter(p *parser, _, n *yaml.Node, e *enforcementReader) {
	e.answers(n)
	text, ok := p.text(n, "retry-after")
	if !ok {
		return
	}
	seconds, err := strconv.ParseUint(text, 10, 32)
	if err != nil || seconds == 0 || seconds > maxRetryAfter {
		p.report(posOf(n), "bad-value", "", "invalid retry-after %s: must be a whole number of seconds above 0 and up to a year, such as 3600", quote(text))
		return
	}
	e.to.RetryAfter = time.Duration(seconds) * time.Second
}

var publishFields = fields[struct{}]{
	switchField("acap", "the records of ACAP 1.0: auto for what only they can express, full for the whole policy", func(b *policy.Publish) *policy.Switch { return &b.ACAP }, "auto", "full", "off"),
	{"everyone", "named lists the crawlers that ignore the group of everyone in robots.txt by name; the default is plain", false, choiceShape("plain", "named"), func(p *parser, _, n *yaml.Node, _ struct{}) {
		word, _ := p.choice(n, "everyone", "plain", "named")
		p.spec.Publish.EveryoneNamed = word == "named"
	}},
	switchField("user-agent-purpose", "User-Agent-Purpose lines", func(b *policy.Publish) *policy.Switch { return &b.UserAgentPurpose }),
	switchField("content-usage", "Content-Usage lines and headers (AIPREF); both adds the labels of earlier drafts", func(b *policy.Publish) *policy.Switch { return &b.ContentUsage }, contentUsageWords...),
	{"content-signal", "Content-Signal lines: off, on, or how far content may be used (immediate, reference, full), which is published too; the default is off", false, choiceShape(contentSignalWords...), readContentSignal},
	switchField("control-tokens", "groups for tokens such as Google-Extended, which stand for AI training, where train-ai is disallowed", func(b *policy.Publish) *policy.Switch { return &b.ControlTokens }),
	{"usage-tokens", "names of groups in robots.txt that stand for a usage instead of a crawler", false, mapShape(usageTokenFields), readUsageTokens},
	switchField("tdmrep", "TDMRep: /.well-known/tdmrep.json, headers and meta elements", func(b *policy.Publish) *policy.Switch { return &b.TDMRep }),
	{"rsl", "the RSL document and the lines and headers that name it: off, on for /license.xml, or another path; the default is off", false, textShape("off, on or a path", `^(off|on|/.*)$`), readRSL},
	{"license", "the address of an RSL licence that you write yourself, or off", false, textShape("an address or off", `^(off$|https?://)`), readLicense},
	switchField("action-requests", "the action requests of ACAP 1.0, which calls them not ready", func(b *policy.Publish) *policy.Switch { return &b.ActionRequests }),
}

var onOff = []string{"on", "off"}

var switchWords = map[string]policy.Switch{"off": policy.Off, "on": policy.On, "auto": policy.Auto, "full": policy.Full, "both": policy.Both}

// switchField is a key that is on or off, or one of other words.
func switchField(name, about string, to func(*policy.Publish) *policy.Switch, words ...string) field[struct{}] {
	if words == nil {
		words = onOff
	}
	return field[struct{}]{name, fmt.Sprintf("%s; the default is %s", about, switchName(*to(&defaultPublish), words)), false, choiceShape(words...), func(p *parser, _, n *yaml.Node, _ struct{}) {
		if word, ok := p.choice(n, name, words...); ok {
			*to(&p.spec.Publish) = switchWords[word]
		}
	}}
}

// defaultPublish is what is published when the file does not say.
var defaultPublish = policy.Publish{ACAP: policy.Auto, ContentUsage: policy.On, ControlTokens: policy.On}

// switchName is a switch as a key writes it that takes these words.
func switchName(s policy.Switch, words []string) string {
	for _, name := range words {
		if switchWords[name] == s {
			return name
		}
	}
	return ""
}

func readPublish(p *parser, _, n *yaml.Node, _ struct{}) {
	readMap(p, n, "publish", publishFields, struct{}{})
}
