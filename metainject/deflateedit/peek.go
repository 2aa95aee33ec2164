// SPDX-License-Identifier: Apache-2.0

package deflateedit

// A Status tells why Peek returned.
type Status uint8

const (
	More      Status = iota // there is as much text as was asked for
	NeedInput               // the text goes on in bytes that have not arrived
	End                     // the text is complete
	Corrupt                 // this is not such a stream, or it is damaged here
)

// Peek appends the next limit bytes of the text, or a few more, to text, which
// is the text from its beginning. stream is the stream from its beginning, as far
// as it has arrived; it must grow from call to call and keep its bytes.
func (e *Editor) Peek(stream, text []byte, limit int) ([]byte, Status) {
	if !e.known {
		f, n, ok := parseHeader(stream, e.gzip)
		if !ok {
			return text, NeedInput
		}
		if n < 0 {
			return text, Corrupt
		}
		e.format, e.header, e.known = f, n, true
	}
	e.in.src = stream[e.header:]
	for limit += len(text); len(text) < limit; {
		n, ev := e.in.step(e.buf[:], limit-len(text))
		for _, t := range e.buf[:n] {
			text = appendToken(text, t)
		}
		switch ev {
		case needMore:
			return text, NeedInput
		case endStream:
			return text, End
		case badStream:
			return text, Corrupt
		case gotSome, gotBlock, endBlock, reaches:
		}
	}
	return text, More
}

// Trailing returns how many bytes follow the stream and its trailer, after Peek
// has returned End. It is negative if the trailer is incomplete.
func (e *Editor) Trailing() int {
	return len(e.in.src) - e.in.pos - trailerSize[e.format]
}

func appendToken(text []byte, t token) []byte {
	if t&isMatch == 0 {
		return append(text, byte(t))
	}
	from, n := len(text)-t.dist(), t.length()
	if t.dist() >= n {
		return append(text, text[from:from+n]...)
	}
	for i := range n {
		text = append(text, text[from+i])
	}
	return text
}
