// SPDX-License-Identifier: Apache-2.0

package metainject

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"iter"
)

// A recoder unpacks a body that is pushed to it, and packs what it is told to
// in the same coding. The unpacking libraries pull; they run as a coroutine,
// which is resumed for each piece of the body and hands out each piece of the
// text, so that nothing runs at the same time as the caller.
type recoder struct {
	coding coding
	in     []byte // what the unpacker has not read yet
	eof    bool   // and nothing follows
	single bool   // the unpacker was last given one byte, and there was no more
	yield  func([]byte) bool
	next   func() ([]byte, bool)
	stop   func()
	err    error // why the unpacker ended; nil at the body's proper end
	packer packer
	text   *bufio.Writer // before packer: brotli packs each Write by itself
	buf    [16 << 10]byte
}

var errBehind = errors.New("bytes behind the end")

var errReleased = errors.New("the response is over")

func (c *recoder) start(k coding) {
	c.coding, c.in, c.eof, c.err = k, nil, false, nil
	c.next, c.stop = iter.Pull(iter.Seq[[]byte](c.run))
}

// run is the coroutine. It yields text, or nil when it needs more of the body.
func (c *recoder) run(yield func([]byte) bool) {
	c.yield = yield
	u := unpackers[c.coding].Get().(unpacker)
	err := u.Reset(c)
	for err == nil {
		var n int
		n, err = u.Read(c.buf[:])
		if n > 0 && !yield(c.buf[:n]) {
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
	b, ok := c.next()
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
	if c.stop != nil {
		c.stop()
		c.stop, c.next, c.yield = nil, nil, nil
	}
	if c.packer != nil {
		c.text.Reset(nil)
		c.packer.Reset(nil)
		packers[c.coding].Put(c.packer)
		c.packer = nil
	}
	c.in = nil
}
