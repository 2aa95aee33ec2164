// SPDX-License-Identifier: Apache-2.0

package metainject

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/andybalholm/brotli"
)

// A recoder unpacks a zstd or br body that is pushed to it, and packs the
// edited text in the same coding. The unpacking libraries pull; they run in a goroutine
// of their own, which is resumed for each piece of the body and hands out each piece
// of the text, so that nothing runs at the same time as the caller. It is not a
// coroutine of package iter: those bind the callers to a thread, and end the process
// where a handler writes from locked threads, as modules do that call C.
type recoder struct {
	coding   coding
	in       []byte    // what the unpacker has not read yet
	eof      bool      // nothing follows in
	ask      chan bool // lets the unpacker go on, or ends it
	give     chan piece
	running  bool  // the unpacker
	err      error // why the unpacker ended; nil at the body's proper end
	frames   zstdFrames
	single   bool // the unpacker was last given one byte
	probing  bool // and then got the end of input, to see whether it asks for more
	packer   packer
	dst      io.Writer
	out      bytes.Buffer // packed, not yet written to dst
	finished bool         // the packed body is complete; what follows is copied
	reserved int64        // bytes of memory, in recoding
	read     int64        // bytes of the body
	made     int64        // bytes of text
	buf      [16 << 10]byte
}

var (
	errReleased = errors.New("the response is over")
	errBomb     = errors.New("the text is too long for its packed form")
)

const (
	// The text may have bombBase bytes, and bombRatio for each byte of the body. No
	// page comes near that; it bounds the work that a few bytes can cause.
	bombBase  = 1 << 20
	bombRatio = 1024
	// holdOut is how much is packed before any of it is written. Most pages are
	// complete by then, and the memory of the coders is free before the client, which
	// may be slow, gets the first byte.
	holdOut = 16 << 10
	// singleBytes at the end of each piece of a br body are given to the unpacker one
	// by one, with a pretended end after each. The unpacker does not change when it
	// sees one, and reports whether it needs more: so it is known where a body ends that
	// has bytes after its end.
	singleBytes = 1 << 10
)

// errExcess is what the brotli reader returns for bytes after the end. It is not
// exported.
var errExcess = func() error {
	r := brotli.NewReader(bytes.NewReader([]byte{6, 0})) // an empty stream and a byte
	_, err := r.Read(make([]byte, 1))
	return err
}()

// A piece is text; or no text, when more of the body is needed; or the end.
type piece struct {
	text     []byte
	over     bool
	panicked any
}

// start begins to unpack. It returns false if too many bodies are being unpacked at
// this time; stream is the body as far as it has arrived.
func (c *recoder) start(k coding, stream []byte) bool {
	if !c.reserve(costOf(k, stream)) {
		return false
	}
	c.coding, c.in, c.eof, c.err, c.running, c.single, c.probing = k, nil, false, nil, true, false, false
	c.read, c.made, c.finished, c.frames = 0, 0, false, zstdFrames{}
	c.out.Reset()
	if c.ask == nil {
		c.ask, c.give = make(chan bool), make(chan piece)
	}
	go func() {
		defer func() { c.give <- piece{over: true, panicked: recover()} }()
		if <-c.ask {
			c.run()
		}
	}()
	return true
}

// yield hands out text, or nil, and waits. It returns false if that was the last.
func (c *recoder) yield(text []byte) bool {
	c.give <- piece{text: text}
	return <-c.ask
}

// next lets the unpacker go on to its next piece, or to its end. ok is false at the
// end. If the unpacker panics, so does the caller.
func (c *recoder) next(on bool) (text []byte, ok bool) {
	if !c.running {
		return nil, false
	}
	c.ask <- on
	p := <-c.give
	if p.over {
		c.running = false
	}
	if p.panicked != nil {
		panic(p.panicked)
	}
	return p.text, !p.over
}

// run is what the unpacker does.
func (c *recoder) run() {
	u := unpackers[c.coding].get().(unpacker)
	err := u.Reset(c)
	for err == nil {
		var n int
		n, err = u.Read(c.buf[:])
		if err == io.ErrUnexpectedEOF && c.probing {
			err = nil // it does need more
		}
		if n > 0 && !c.yield(c.buf[:n]) {
			return
		}
	}
	if err == errExcess && c.single {
		err = io.EOF // it says so at the proper end too
	}
	if err != io.EOF {
		c.err = err
	}
	if err != errReleased && c.reserved <= pooledCost {
		_ = u.Reset(nil) // it only drops the reader
		unpackers[c.coding].put(u)
	}
}

// Read gives the unpacker the body.
func (c *recoder) Read(b []byte) (int, error) {
	if c.single && !c.probing {
		c.probing = true
		return 0, io.EOF
	}
	for {
		if c.coding == zstdCoding {
			if n := c.frames.read(b, &c.in); n > 0 {
				return n, nil
			}
			if c.frames.ended {
				return 0, io.EOF
			}
		}
		if len(c.in) > 0 {
			break
		}
		if c.eof {
			c.probing = false
			return 0, io.EOF
		}
		if !c.yield(nil) {
			return 0, errReleased
		}
	}
	n := min(len(b), len(c.in)-singleBytes)
	if c.single, c.probing = n < 1, false; c.single {
		n = 1
	}
	copy(b, c.in[:n])
	c.in = c.in[n:]
	return n, nil
}

// push gives it more of the body.
func (c *recoder) push(b []byte, eof bool) {
	c.in, c.eof = b, eof
	c.read += int64(len(b))
}

// unpack returns the next piece of the text. more is false when there is none
// before more of the body arrives; over means that there will be none at all.
func (c *recoder) unpack() (text []byte, more, over bool) {
	text, ok := c.next(true)
	if c.made += int64(len(text)); c.made > bombBase+bombRatio*c.read {
		c.err = errBomb
		return nil, false, true
	}
	c.grow(c.made)
	return text, ok && text != nil, !ok
}

// behind returns the bytes of the body after its end.
func (c *recoder) behind() []byte {
	if c.coding == zstdCoding {
		return append(c.frames.head, c.in...)
	}
	return c.in
}

// pack begins to write to w.
func (c *recoder) pack(w io.Writer) {
	c.dst = w
	c.packer = packers[c.coding].get().(packer)
	c.packer.Reset(&c.out)
}

// Write passes more of the body.
func (c *recoder) Write(b []byte) (int, error) {
	if c.finished {
		return c.dst.Write(b)
	}
	c.push(b, false)
	if err := c.drain(); err != nil {
		return 0, err
	}
	if c.out.Len() < holdOut && !c.finished {
		return len(b), nil
	}
	return len(b), c.emit()
}

// drain packs all text that there is.
func (c *recoder) drain() error {
	for {
		text, more, over := c.unpack()
		if over && c.err != nil {
			return fmt.Errorf("unpacking a page: %w", c.err)
		}
		if over {
			return c.finish()
		}
		if !more {
			return nil
		}
		if _, err := c.packer.Write(text); err != nil {
			return err
		}
	}
}

// finish completes the packed body and copies what follows its end.
func (c *recoder) finish() error {
	if c.finished {
		return nil
	}
	c.finished = true
	err := c.packer.Close()
	c.out.Write(c.behind())
	c.in = nil
	c.releaseCoders()
	return err
}

// emit writes what is packed.
func (c *recoder) emit() error {
	if c.out.Len() == 0 {
		return nil
	}
	_, err := c.dst.Write(c.out.Bytes())
	c.out.Reset()
	return err
}

// Flush writes what is needed for a reader to see all text that has arrived.
func (c *recoder) Flush() error {
	if !c.finished {
		if err := c.packer.Flush(); err != nil {
			return err
		}
	}
	return c.emit()
}

// Close ends the packed body, if the unpacked one has reached its end.
func (c *recoder) Close() error {
	if !c.finished {
		c.push(nil, true)
		if err := c.drain(); err != nil {
			return errors.Join(err, c.emit())
		}
	}
	return c.emit()
}

// release frees everything.
func (c *recoder) release() {
	c.releaseCoders()
	c.in, c.dst = nil, nil
	if c.out.Cap() > 4*holdOut {
		c.out = bytes.Buffer{}
	}
}

func (c *recoder) releaseCoders() {
	for ok := true; ok; {
		_, ok = c.next(false)
	}
	if c.packer != nil {
		c.packer.Reset(nil)
		packers[c.coding].put(c.packer)
		c.packer = nil
	}
	c.unreserve()
}
