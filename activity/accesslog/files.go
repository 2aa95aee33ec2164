// SPDX-License-Identifier: Apache-2.0

package accesslog

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// Stdin is the name that stands for the standard input.
const Stdin = "-"

// Expand replaces globs by the files that match, in order. Names without a match or named twice, and directories, are
// errors.
func Expand(names []string) ([]string, error) {
	var files []string
	for _, name := range names {
		found := []string{name}
		if name != Stdin && strings.ContainsAny(name, "*?[") {
			if _, err := os.Stat(name); err != nil {
				if found, err = filepath.Glob(name); err != nil {
					return nil, fmt.Errorf("%s: %w", name, err)
				}
				if len(found) == 0 {
					return nil, fmt.Errorf("%s: no file matches", name)
				}
			}
		}
		for _, f := range found {
			if f != Stdin {
				info, err := os.Stat(f)
				switch {
				case errors.Is(err, fs.ErrNotExist):
					return nil, fmt.Errorf("there is no access log %s: check the name and the folder", f)
				case err != nil:
					return nil, err
				case info.IsDir():
					return nil, fmt.Errorf("%s is a directory: name the files in it, as in %s", f, filepath.Join(f, "*.log"))
				}
			}
			if slices.Contains(files, f) {
				return nil, fmt.Errorf("%s is named twice: its requests would count twice", f)
			}
			files = append(files, f)
		}
	}
	return files, nil
}

type Reading struct {
	Parser  Parser    // reads the lines; nil is the format that the start of each file has
	Workers int       // how many goroutines parse
	Stdin   io.Reader // what Stdin stands for, by default os.Stdin
}

type Result struct {
	Lines   int64 // with those that could not be read, without empty ones
	Bad     int64 // lines that could not be read
	BadFile string
	BadLine string // the first of them, shortened
	BadWhy  string
}

// chunkSize is how much a worker parses at a time, and the longest line.
const chunkSize = 1 << 20

type chunk struct {
	lines  []byte
	buf    *[]byte
	parser Parser
	file   string
}

// Read calls handle for each line's record, never concurrently for one worker, from 0 to Workers-1.
func (r Reading) Read(ctx context.Context, files []string, handle func(worker int, rec *Record)) (Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	chunks := make(chan chunk, r.Workers)
	results := make([]Result, r.Workers)
	var workers sync.WaitGroup
	for w := range r.Workers {
		workers.Go(func() { results[w].parse(chunks, func(rec *Record) { handle(w, rec) }) })
	}
	var err error
	for _, f := range files {
		if err = r.readFile(ctx, f, chunks); err != nil {
			err = fmt.Errorf("%s: %w", f, err)
			break
		}
	}
	close(chunks)
	workers.Wait()
	var total Result
	for _, p := range results {
		total.Lines += p.Lines
		total.Bad += p.Bad
		if total.BadLine == "" {
			total.BadFile, total.BadLine, total.BadWhy = p.BadFile, p.BadLine, p.BadWhy
		}
	}
	return total, err
}

var buffers = sync.Pool{New: func() any { b := make([]byte, chunkSize); return &b }}

func (r Reading) readFile(ctx context.Context, name string, chunks chan<- chunk) error {
	file := r.Stdin
	if name != Stdin {
		f, err := os.Open(name)
		if err != nil {
			return errors.Unwrap(err)
		}
		defer f.Close()
		file = f
	} else if file == nil {
		file = os.Stdin
	}
	in, err := unpack(file)
	if err != nil {
		return err
	}
	defer in.Close()
	parser := r.Parser
	var rest []byte // the start of a line whose end was not read yet
	skipping := false
	for {
		buf := buffers.Get().(*[]byte)
		n := copy(*buf, rest)
		m, err := io.ReadFull(in, (*buf)[n:])
		last := err == io.EOF || err == io.ErrUnexpectedEOF
		if err != nil && !last {
			return err
		}
		data := (*buf)[:n+m]
		if skipping { // the rest of a line that is too long
			i := bytes.IndexByte(data, '\n')
			if i < 0 && !last {
				rest = nil
				buffers.Put(buf)
				continue
			}
			data, skipping = data[i+1:], false
		}
		if parser == nil && len(data) > 0 {
			if parser, err = detect(data[:min(len(data), 1<<16)]); err != nil {
				return err
			}
		}
		end := len(data)
		if !last {
			if end = bytes.LastIndexByte(data, '\n') + 1; end == 0 {
				end, skipping = len(data), true // a chunk of one line: it is counted as bad
			}
		}
		rest = bytes.Clone(data[end:])
		if end > 0 {
			select {
			case chunks <- chunk{data[:end], buf, parser, name}:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if last {
			return nil
		}
	}
}

// unpack undoes gzip or zstd, whatever the file is called.
func unpack(in io.Reader) (io.ReadCloser, error) {
	buffered := bufio.NewReaderSize(in, 1<<16)
	start, _ := buffered.Peek(4) // a shorter file is no compressed one
	switch {
	case bytes.HasPrefix(start, []byte{0x1f, 0x8b}):
		return gzip.NewReader(buffered)
	case bytes.Equal(start, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err := zstd.NewReader(buffered, zstd.WithDecoderMaxWindow(64<<20), zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil, err
		}
		return z.IOReadCloser(), nil
	}
	return io.NopCloser(buffered), nil
}

func (r *Result) parse(chunks <-chan chunk, handle func(*Record)) {
	parsers := map[Parser]Parser{}
	var rec Record
	for c := range chunks {
		p := parsers[c.parser]
		if p == nil {
			p = c.parser.Clone()
			parsers[c.parser] = p
		}
		for line := range bytes.SplitSeq(c.lines, []byte("\n")) {
			line = bytes.TrimSuffix(line, []byte("\r"))
			if len(line) == 0 {
				continue
			}
			r.Lines++
			if err := p.Parse(line, &rec); err != nil {
				r.bad(c.file, line, err)
				continue
			}
			handle(&rec)
		}
		buffers.Put(c.buf)
	}
}

func (r *Result) bad(file string, line []byte, why error) {
	r.Bad++
	if r.Bad > 1 {
		return
	}
	const most = 200
	text := string(line[:min(len(line), most)])
	if len(line) > most {
		text += "…"
	}
	r.BadFile, r.BadLine, r.BadWhy = file, strings.ToValidUTF8(text, "\uFFFD"), why.Error()
}
