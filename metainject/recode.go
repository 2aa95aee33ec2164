// SPDX-License-Identifier: Apache-2.0

package metainject

import (
	"bufio"
	"errors"
	"fmt"
	"io"
)

// A recoder unpacks a body that is pushed to it, and packs what it is told to
// in the same coding. The unpacking libraries pull; they run in a goroutine of
// their own, which is resumed for each piece of the body and hands out each piece
// of the text, so that nothing runs at the same time as the caller. It is no
// coroutine of package iter: those bind the callers to a thread, and end the
// process where a handler writes from threads that are locked, as modules do that
// call C.
type recoder struct {
	coding coding
	in     []byte    // what the unpacker has not read yet
	eof    bool      // and nothing follows
	single bool      // the unpacker was last given one byte, and there was no more
	ask    chan bool // lets the unpacker go on, or says that it has to end
	give   chan piece
	runs   bool  // the unpacker
	err    error // why the unpacker ended; nil at the body's proper end
	packer packer
	text   *bufio.Writer  // before packer: brotli packs each Write by itself
	buf    [64 << 10]byte // each time it is full takes a change of goroutines
}

var errBehind = errors.New("bytes behind the end")

var errReleased = errors.New("the response is over")

// A piece is text, or none when more of the body is needed, or at last the end.
type piece struct {
	text     []byte
	over     bool
	panicked any
}

func (c *recoder) start(k coding) {
	c.coding, c.in, c.eof, c.err, c.runs = k, nil, false, nil, true
	if c.ask == nil {
		c.ask, c.give = make(chan bool), make(chan piece)
	}
	go func() {
		defer func() { c.give <- piece{over: true, panicked: recover()} }()
		if <-c.ask {
			c.run()
		}
	}()
}

// yield hands out text, or nil, and waits. It returns false if that was the last.
func (c *recoder) yield(text []byte) bool {
	c.give <- piece{text: text}
	return <-c.ask
}

// next lets the unpacker go on to its next piece, or to its end. ok is false when
// it has come to that. What it panics with, the caller does.
func (c *recoder) next(on bool) (text []byte, ok bool) {
	if !c.runs {
		return nil, false
	}
	c.ask <- on
	p := <-c.give
	if p.over {
		c.runs = false
	}
	if p.panicked != nil {
		panic(p.panicked)
	}
	return p.text, !p.over
}

// run is what the unpacker does.
func (c *recoder) run() {
	u := unpackers[c.coding].Get().(unpacker)
	err := u.Reset(c)
	for err == nil {
		var n int
		n, err = u.Read(c.buf[:])
		if n > 0 && !c.yield(c.buf[:n]) {
			return
		}
	}
	// brotli says this too when it has only read the last byte ahead.
	if c.single && err.Error() == "brotli: excessive input" {
		err = io.EOF
	}
	if err != io.EOF {
		c.err = err
	}
	if err != errReleased {
		unpackers[c.coding].Put(u)
	}
}

// Read gives the unpacker the body, the last byte that there is by itself.
func (c *recoder) Read(b []byte) (int, error) {
	for len(c.in) == 0 {
		if c.eof {
			return 0, io.EOF
		}
		if !c.yield(nil) {
			return 0, errReleased
		}
	}
	n := copy(b, c.in[:max(1, len(c.in)-1)])
	c.in = c.in[n:]
	c.single = n == 1 && len(c.in) == 0
	return n, nil
}

// read gives the next piece of the text. more is false when there is none
// before more of the body comes; over tells that there will be none at all.
func (c *recoder) read() (b []byte, more, over bool) {
	b, ok := c.next(true)
	if !ok && c.err == nil && len(c.in) > 0 {
		c.err = errBehind
	}
	return b, ok && b != nil, !ok
}

// pack begins to write to w.
func (c *recoder) pack(w io.Writer) {
	c.packer = packers[c.coding].Get().(packer)
	c.packer.Reset(w)
	if c.text == nil {
		c.text = bufio.NewWriterSize(c.packer, 32<<10)
	} else {
		c.text.Reset(c.packer)
	}
}

// Write passes more of the body.
func (c *recoder) Write(b []byte) (int, error) {
	c.in = b
	if err := c.drain(); err != nil {
		return 0, err
	}
	return len(b), nil
}

// drain packs all text that can be had.
func (c *recoder) drain() error {
	for {
		text, more, over := c.read()
		if over && c.err != nil {
			return fmt.Errorf("unpacking a page: %w", c.err)
		}
		if !more {
			return nil
		}
		if _, err := c.text.Write(text); err != nil {
			return err
		}
	}
}

// Flush makes all that has come readable at the other end.
func (c *recoder) Flush() error {
	if err := c.text.Flush(); err != nil {
		return err
	}
	return c.packer.Flush()
}

// Close ends the packed body, if the unpacked one has come to its end.
func (c *recoder) Close() error {
	c.in, c.eof = nil, true
	if err := c.drain(); err != nil {
		return err
	}
	if err := c.text.Flush(); err != nil {
		return err
	}
	return c.packer.Close()
}

func (c *recoder) release() {
	for ok := true; ok; {
		_, ok = c.next(false)
	}
	if c.packer != nil {
		c.text.Reset(nil)
		c.packer.Reset(nil)
		packers[c.coding].Put(c.packer)
		c.packer = nil
	}
	c.in = nil
}
