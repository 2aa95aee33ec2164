// SPDX-License-Identifier: Apache-2.0

package accesslog

import (
	"bytes"
	"errors"
)

// anyFormat finds out the format of each line separately, so that a log may mix formats. No line is valid in two
// formats, so the order in which Parse tries the formats does not change the result.
type anyFormat struct {
	json *jsonFormat
	text []*textFormat
	last int        // index in text of the format that parsed the last line
	w3c  *w3cFormat // format of the last #Fields line; nil if there was no such line
}

var errNoJSON = errors.New("it is not a JSON object")

// newAnyFormat returns a parser for all predefined formats and for JSON logs. root describes the fields of the JSON
// objects.
func newAnyFormat(root *node) *anyFormat {
	f := &anyFormat{json: newJSON(root)}
	for _, name := range []string{"combined", "vhost_combined", "common", "alb"} {
		t, err := compile(name, formats[name])
		if err != nil {
			panic("accesslog: " + err.Error()) // cannot happen: the format is built in
		}
		f.text = append(f.text, t)
	}
	return f
}

func (f *anyFormat) Clone() Parser { return newAnyFormat(f.json.root) }

func (f *anyFormat) Parse(line []byte, r *Record) error {
	if len(line) == 0 {
		return errNoJSON
	}
	if line[0] == '{' {
		return f.json.Parse(line, r)
	}
	if f.w3c != nil {
		if err := f.w3c.Parse(line, r); err == nil {
			return nil
		}
	}
	last := f.text[f.last].Parse(line, r)
	if last == nil {
		return nil
	}
	asJSON := errNoJSON
	if line[len(line)-1] == '}' {
		if asJSON = f.json.Parse(line, r); asJSON == nil || asJSON == errNoRequest || r.inner != nil {
			return asJSON
		}
	}
	complete := last == errNoRequest
	for i, t := range f.text {
		if i == f.last {
			continue
		}
		switch t.Parse(line, r) {
		case nil:
			f.last = i
			return nil
		case errNoRequest:
			complete = true
		}
	}
	switch {
	case complete:
		return errNoRequest
	case f.w3c != nil:
		return f.w3c.Parse(line, r)
	case bytes.IndexByte(line, '{') >= 0 && asJSON == errNoJSON:
		return errJSON
	case asJSON != errNoJSON:
		return asJSON
	}
	// The error comes from text[0] and not from the last format, so that it does not depend on the previous lines.
	return f.text[0].Parse(line, r)
}
