// SPDX-License-Identifier: Apache-2.0

package headscan

import (
	"bytes"

	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/ascii"
)

// Encoding is a kind of character encoding. It determines whether ASCII bytes can be inserted into a text unchanged.
type Encoding uint8

const (
	// Unlabeled means that the label is missing or unknown. In this case, browsers use an encoding based on ASCII.
	Unlabeled Encoding = iota
	// ASCIIBased is an encoding in which an ASCII byte always means that ASCII character.
	ASCIIBased
	// UTF16 is UTF-16 in either byte order.
	UTF16
	// Other is ISO-2022-JP, or an encoding that browsers do not decode.
	Other
)

// asciiPrefixes has the beginnings of the labels of encodings based on ASCII
// (https://encoding.spec.whatwg.org/#names-and-labels). In a text with such an encoding, the bytes of ASCII markup
// always mean the ASCII characters.
var asciiPrefixes = [...]string{
	"utf-8", "utf8", "unicode-1-1-utf-8", "unicode11utf8", "unicode20utf8", "x-unicode20utf8",
	"us-ascii", "ascii", "ansi_x3.4", "iso-8859", "iso8859", "iso_8859", "iso-ir-", "csisolatin",
	"latin", "l1", "l2", "l3", "l4", "l5", "l6", "l9", "windows-", "cp125", "x-cp125", "cp819", "ibm819",
	"koi", "cskoi8r", "macintosh", "mac", "csmacintosh", "x-mac-", "gb", "x-gbk", "csgb2312",
	"csiso58gb231280", "chinese", "big5", "csbig5", "cn-big5", "x-x-big5", "euc-", "x-euc-jp",
	"cseucpkdfmtjapanese", "cseuckr", "csksc56011987", "shift", "sjis", "x-sjis", "csshiftjis", "ms_kanji",
	"ms932", "ks_c", "ksc", "korean", "ibm866", "cp866", "866", "csibm866", "dos-874", "tis-620",
	"cyrillic", "csisolatincyrillic", "greek", "sun_eu_greek", "ecma-118", "elot_928", "arabic", "asmo-708",
	"ecma-114", "csiso88596", "hebrew", "logical", "visual", "csiso88598", "x-user-defined",
}

var otherPrefixes = [...]string{
	"iso-2022", "csiso2022", "hz-gb", "replacement", "utf-7", "unicode-1-1-utf-7", "csunicode11utf7",
	"utf-32", "ucs-4", "iso-10646-ucs-4", "scsu", "bocu", "cesu", "ebcdic", "ibm0", "cp037", "cp500", "x-ebcdic",
}

var utf16Prefixes = [...]string{"utf-16", "UTF16", "ucs-2", "iso-10646-ucs-2", "csunicode", "unicode", "unicodefe"}

// EncodingOf classifies the label of a character encoding.
func EncodingOf(label []byte) Encoding {
	label = bytes.TrimSpace(label)
	if len(label) == 5 && ascii.EqualFold(label, "utf-8") {
		return ASCIIBased
	}
	if len(label) == 0 || len(label) > 40 {
		return Unlabeled
	}
	label = bytes.ToLower(label)
	for _, kind := range [...]struct {
		prefixes []string
		means    Encoding
	}{{otherPrefixes[:], Other}, {asciiPrefixes[:], ASCIIBased}, {utf16Prefixes[:], UTF16}} {
		for _, p := range kind.prefixes {
			if bytes.HasPrefix(label, []byte(p)) {
				return kind.means
			}
		}
	}
	return Unlabeled
}

// prescan looks for a declaration of the encoding outside the head. Like browsers, it searches the first bytes of
// the page without parsing them as HTML
// (https://html.spec.whatwg.org/multipage/parsing.html#prescan-a-byte-stream-to-determine-its-encoding). It does not
// search if the encoding is known already. It returns false if it needs more bytes.
func (s *Scanner) prescan(b []byte, eof bool) bool {
	if s.prescanned || s.Decided || s.xml || s.Foreign || s.CharsetEnd > 0 && s.CharsetEnd <= CharsetLimit {
		return true
	}
	if len(b) < CharsetLimit && !eof {
		return false
	}
	s.prescanned = true
	b = b[:min(len(b), CharsetLimit)]
	for i := 0; i < len(b); {
		j := bytes.IndexByte(b[i:], '<')
		if j < 0 || i+j+1 >= len(b) {
			return true
		}
		i += j
		rest := b[i+1:]
		switch c := rest[0]; {
		case bytes.HasPrefix(rest, []byte("!--")):
			n := bytes.Index(rest[1:], []byte("-->"))
			if n < 0 {
				return true
			}
			i += 2 + n + 3
		case class[c]&isLetter != 0, c == '/' && len(rest) > 1 && class[rest[1]]&isLetter != 0:
			at := i + 1
			for at < len(b) && class[b[at]]&(isSpace|endsValue) == 0 && (b[at] != '/' || at == i+1) {
				at++
			}
			var m metaAttributes
			end, ok := walk(b, at, &m)
			if !ok {
				return true
			}
			if ascii.EqualFold(b[i+1:at], "meta") && s.declares(b, &m) {
				s.CharsetEnd = end
				return true
			}
			i = end
		case c == '!' || c == '/' || c == '?':
			n := bytes.IndexByte(rest, '>')
			if n < 0 {
				return true
			}
			i += n + 2
		default:
			i++
		}
	}
	return true
}

// declares stores the encoding that a meta tag outside the head declares. It returns false if browsers do not know the
// encoding, or the tag does not declare one.
func (s *Scanner) declares(b []byte, m *metaAttributes) bool {
	v := m.values(b)
	label, ok := m.label(&v)
	if !ok {
		return false
	}
	switch EncodingOf(label) {
	case Unlabeled:
		return false
	case Other:
		s.Foreign = true
	case ASCIIBased, UTF16:
		s.Charset = string(label)
	}
	return true
}

// markup reads the text after "<!", which is a comment, a DOCTYPE or a bogus comment.
func (s *Scanner) markup(b []byte, eof bool) bool {
	rest := b[s.pos+2:]
	const word = "doctype"
	if len(rest) >= 2 && rest[0] == '-' && rest[1] == '-' {
		s.pos, s.state = s.pos+4, stateComment
		return true
	}
	if s.unsure && len(rest) > 0 && rest[0] == '[' {
		return s.stop() // CDATA in foreign content, but a comment in HTML
	}
	if len(rest) >= len(word) && ascii.EqualFold(rest[:len(word)], word) {
		s.pos, s.state, s.doctype = s.pos+2+len(word), stateBogus, true
		return true
	}
	if !eof && (len(rest) == 0 || len(rest) == 1 && rest[0] == '-' ||
		len(rest) < len(word) && ascii.EqualFold(rest, word[:len(rest)])) {
		return false
	}
	s.pos, s.state, s.doctype = s.pos+2, stateBogus, false
	return true
}

// comment skips a comment, which ends with "-->" or "--!>". "<!-->" and "<!--->" are complete comments, too.
func (s *Scanner) comment(b []byte) bool {
	from := s.tok + len("<!--")
	for {
		j := bytes.IndexByte(b[s.pos:], '>')
		if j < 0 {
			s.pos = len(b)
			return false
		}
		i := s.pos + j
		s.pos = i + 1
		in := b[from:i]
		if bytes.HasSuffix(in, []byte("--")) ||
			!s.xml && (len(in) == 0 || string(in) == "-" || bytes.HasSuffix(in, []byte("--!"))) {
			s.state = stateData
			return true
		}
	}
}

// bogus skips a bogus comment or a DOCTYPE. Both end at the first '>', even within quotes.
func (s *Scanner) bogus(b []byte) bool {
	j := bytes.IndexByte(b[s.pos:], '>')
	if j < 0 {
		s.pos = len(b)
		return false
	}
	s.pos += j + 1
	s.state = stateData
	if s.doctype && s.mode != modeTemplate {
		s.isDocument()
		if s.mode == modeInitial {
			s.mode = modeBeforeHTML
		}
	}
	return true
}
