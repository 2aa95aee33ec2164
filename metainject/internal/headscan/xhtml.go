// SPDX-License-Identifier: Apache-2.0

package headscan

import (
	"bytes"
	"strings"

	"golang.org/x/net/html"
)

// XHTML is read as XML: names are case-sensitive, no elements are implied, and the text of scripts and styles is
// markup. Only "/>" and end tags close an element. Elements of namespaces other than XHTML are skipped. A page with an
// internal DTD subset, or a root other than html, is not changed.

const (
	endOfInstruction = "?>"
	endOfCDATA       = "]]>"
	namespace        = "http://www.w3.org/1999/xhtml"
)

func (s *Scanner) xmlData(b []byte) bool {
	j := bytes.IndexByte(b[s.pos:], '<')
	if j < 0 {
		s.pos = len(b)
		return false
	}
	s.pos += j
	s.tok = s.pos
	rest := b[s.pos+1:]
	const cdata, doctype = "![CDATA[", "!DOCTYPE"
	if len(rest) == 0 {
		return false
	}
	switch c := rest[0]; {
	case c == '?':
		s.pos, s.state, s.doctype = s.pos+2, stateXMLUntil, false
	case c == '/':
		s.end, s.name, s.pos, s.state = true, s.pos+2, s.pos+2, stateTagName
	case c != '!':
		s.end, s.name, s.pos, s.state = false, s.pos+1, s.pos+1, stateTagName
	case bytes.HasPrefix(rest, []byte("!--")):
		s.pos, s.state = s.pos+4, stateComment
	case bytes.HasPrefix(rest, []byte(cdata)):
		s.pos, s.state = s.pos+1+len(cdata), stateXMLUntil
	case bytes.HasPrefix(rest, []byte(doctype)):
		return s.xmlDoctype(b)
	case len(rest) < len(cdata):
		return false
	default:
		return s.stop()
	}
	return true
}

// xmlDoctype skips a document type declaration of at most 1 KiB.
func (s *Scanner) xmlDoctype(b []byte) bool {
	rest := b[s.tok:]
	var quote byte
	for i, c := range rest {
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '[':
			return s.stop()
		case c == '>':
			s.pos = s.tok + i + 1
			return true
		}
		if i == 1<<10 {
			return s.stop()
		}
	}
	return false
}

// xmlUntil skips a processing instruction or a CDATA section.
func (s *Scanner) xmlUntil(b []byte) bool {
	until := endOfCDATA
	if b[s.tok+1] == '?' {
		until = endOfInstruction
	}
	from := max(s.tok+2, s.pos-len(until))
	j := bytes.Index(b[from:], []byte(until))
	if j < 0 {
		s.pos = len(b)
		return false
	}
	s.pos, s.state = from+j+len(until), stateData
	if text := b[s.tok:s.pos]; s.mode == modeInitial && !s.Decided && bytes.HasPrefix(text, []byte("<?xml ")) {
		if _, v, ok := bytes.Cut(text, []byte("encoding")); ok {
			v = bytes.TrimLeft(v, " \t\r\n=")
			if len(v) > 0 {
				v, _, _ = bytes.Cut(v[1:], v[:1])
				s.Foreign = s.Foreign || EncodingOf(v) != ASCIIBased
			}
		}
	}
	return true
}

// xmlTag handles a complete tag that ends at end.
func (s *Scanner) xmlTag(b []byte, end int, m *metaAttributes) bool {
	s.pos, s.state, s.slash = end, stateData, b[end-2] == '/'
	name := string(b[s.name:s.nameEnd])
	if ns := m.attrs[attrNamespace]; ns.given && !strings.Contains(name, ":") && html.UnescapeString(string(ns.value(b))) != namespace {
		name = "" // an element of another namespace
	}
	switch {
	case s.mode == modeInitial:
		if s.end || s.slash || name != "html" {
			return s.stop()
		}
		s.mode, s.Document = modeBeforeHead, true
	case s.mode == modeBeforeHead:
		switch {
		case s.end || strings.Contains(name, ":"):
			return s.stop()
		case name != "head":
			s.HeadAt, s.HeadEnd, s.Headless = s.tok, s.tok, true
			return s.stop()
		case s.slash:
			s.HeadAt, s.HeadEnd, s.Headless = end-len("/>"), end, true
			return s.stop()
		}
		s.HeadAt, s.mode = s.pos, modeInHead
	case s.end:
		if s.depth == 0 {
			return s.stop()
		}
		if s.depth--; s.depth == 0 && s.open {
			s.metas[len(s.metas)-1].End, s.open = s.pos, false
		}
	default:
		if s.depth == 0 && name == "meta" {
			n := len(s.metas)
			s.meta(b, m)
			s.open = len(s.metas) > n && !s.slash
		}
		if !s.slash {
			s.depth++
		}
	}
	return true
}
