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
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// Stdin is the name of the standard input.
const Stdin = "-"

// Expand replaces each glob in names by the files that match it. The other names and the order of names do not change.
// It returns an error for names without a match, names given twice, and directories.
func Expand(names []string) ([]string, error) {
	var files []string
	var infos []fs.FileInfo // infos of the files; nil for the standard input
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
			var info fs.FileInfo
			if f != Stdin {
				var err error
				switch info, err = os.Stat(f); {
				case errors.Is(err, fs.ErrNotExist):
					return nil, fmt.Errorf("there is no access log %s: check the name and the folder", f)
				case err != nil:
					return nil, err
				case info.IsDir():
					return nil, fmt.Errorf("%s is a directory; give the files in it, for example %s", f, filepath.Join(f, "*.log"))
				}
			}
			for i, other := range files {
				switch {
				case f == other:
					return nil, fmt.Errorf("%s is given twice, so its requests would be counted twice; give it once", f)
				case info != nil && infos[i] != nil && os.SameFile(info, infos[i]):
					return nil, fmt.Errorf("%s and %s are the same file, so its requests would be counted twice; give it once", other, f)
				}
			}
			files, infos = append(files, f), append(infos, info)
		}
	}
	return files, nil
}

// Reading configures how logs are read.
type Reading struct {
	Parser  Parser    // parses the lines; nil detects the format of each line
	Workers int       // number of goroutines that parse
	Stdin   io.Reader // the standard input; nil means os.Stdin
}

// chunkSize is the number of bytes that a worker parses at a time. It is also the maximum length of a line.
const chunkSize = 1 << 20

type chunk struct {
	lines  []byte
	buf    *[]byte
	number int        // number among the chunks of all files, from 1
	file   int        // index of the file
	w3c    *w3cFormat // format of the lines at the start of the chunk; workers parse with a copy, see forWorker
}

// Read parses the lines of all files, and passes the record of each line to the function handle. Workers call handle
// concurrently, each with its own number from 0 to Workers-1. Read returns an error if it cannot open a file, or if a
// file has lines and Read cannot parse any of them.
func (r Reading) Read(ctx context.Context, files []string, handle func(worker int, rec *Record)) (Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	parser := r.Parser
	if parser == nil {
		json, err := NewJSON(nil)
		if err != nil {
			return Result{}, err
		}
		parser = newAnyFormat(json.(*jsonFormat).root)
	}
	chunks := make(chan chunk, r.Workers)
	counts := make([][]count, r.Workers)
	var workers sync.WaitGroup
	for w := range r.Workers {
		counts[w] = make([]count, len(files))
		workers.Go(func() { parse(parser.Clone(), chunks, counts[w], func(rec *Record) { handle(w, rec) }) })
	}
	f := feeder{Reading: r, ctx: ctx, chunks: chunks}
	var result Result
	var err error
	for i, name := range files {
		var damage error
		if damage, err = f.read(name, i); err != nil {
			err = fmt.Errorf("%s: %w", name, err)
			break
		}
		if damage != nil {
			result.lacks(GapArchive, name, 0, "request", "in the missing part of a compressed file", damage.Error())
		}
	}
	close(chunks)
	workers.Wait()
	for i, name := range files {
		var c count
		for w := range counts {
			c.add(&counts[w][i])
		}
		if err == nil {
			err = result.file(name, &c)
		}
	}
	return result, err
}

var buffers = sync.Pool{New: func() any { b := make([]byte, chunkSize); return &b }}

// feeder splits files into chunks of whole lines.
type feeder struct {
	Reading
	ctx    context.Context
	chunks chan<- chunk
	sent   int
}

// read sends the chunks of the file name to the workers. number is the index of the file. If a compressed file is
// damaged or ends early, damage describes this; the chunks before the damage have been sent.
func (f *feeder) read(name string, number int) (damage, err error) {
	file := f.Stdin
	if name != Stdin {
		opened, err := os.Open(name)
		if err != nil {
			return nil, errors.Unwrap(err)
		}
		defer opened.Close()
		file = opened
	} else if file == nil {
		file = os.Stdin
	}
	in, err := unpack(file)
	if errors.Is(err, errDamaged) {
		return err, nil
	}
	if err != nil {
		return nil, err
	}
	defer in.Close()
	var w3c *w3cFormat
	var rest []byte // the start of a line that has not been read completely
	skipping := false
	for {
		buf := buffers.Get().(*[]byte)
		n := copy(*buf, rest)
		m, err := io.ReadFull(in, (*buf)[n:])
		if errors.Is(err, errDamaged) {
			damage, err = err, io.EOF
		}
		last := err == io.EOF || err == io.ErrUnexpectedEOF
		if err != nil && !last {
			return nil, err
		}
		data := (*buf)[:n+m]
		if skipping { // skip the rest of a line that is too long
			i := bytes.IndexByte(data, '\n')
			if skipping = i < 0; skipping {
				i = len(data) - 1
			}
			data = data[i+1:]
		}
		end := len(data)
		if !last {
			if end = bytes.LastIndexByte(data, '\n') + 1; end == 0 {
				end, skipping = len(data), true // the line fills the chunk and is counted as bad
			}
		}
		rest = bytes.Clone(data[end:])
		if end > 0 {
			f.sent++
			after := lastW3C(data[:end], w3c) // before the chunk is sent, because a worker frees the buffer after parsing
			select {
			case f.chunks <- chunk{data[:end], buf, f.sent, number, w3c}:
			case <-f.ctx.Done():
				return nil, f.ctx.Err()
			}
			w3c = after
		}
		if last {
			return damage, nil
		}
	}
}

var fieldsLine = []byte("#Fields:")

// lastW3C returns the format of the lines after the given ones: the format that the last #Fields line in lines
// describes. If lines has no such line, this is the format before them.
func lastW3C(lines []byte, before *w3cFormat) *w3cFormat {
	for {
		i := bytes.Index(lines, fieldsLine)
		if i < 0 {
			return before
		}
		line, rest, _ := bytes.Cut(lines[i:], []byte("\n"))
		if i == 0 || lines[i-1] == '\n' {
			before = newW3C(line)
		}
		lines = rest
	}
}

// errDamaged means that a compressed file is damaged or ends early.
var errDamaged = errors.New("ends early or is damaged")

// unpacker marks the errors of a decompressor as errDamaged.
type unpacker struct{ io.ReadCloser }

func (u unpacker) Read(b []byte) (int, error) {
	n, err := u.ReadCloser.Read(b)
	if err != nil && err != io.EOF {
		err = damage(err)
	}
	return n, err
}

func damage(err error) error { return fmt.Errorf("it %w: %w", errDamaged, err) }

// unpack recognizes gzip and zstd by the first bytes, and decompresses them. It returns an error for other kinds of
// packed files, which the variable packed lists, such as ZIP archives. It returns all other data unchanged.
func unpack(in io.Reader) (io.ReadCloser, error) {
	buffered := bufio.NewReaderSize(in, 1<<16)
	start, _ := buffered.Peek(16) // the error does not matter: a file with fewer bytes is not compressed
	switch {
	case bytes.HasPrefix(start, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(buffered)
		if err != nil {
			return nil, damage(err)
		}
		return unpacker{z}, nil
	case bytes.HasPrefix(start, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err := zstd.NewReader(buffered, zstd.WithDecoderMaxWindow(64<<20), zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil, err
		}
		return unpacker{z.IOReadCloser()}, nil
	}
	return io.NopCloser(buffered), refusedFile(start)
}

func parse(p Parser, chunks <-chan chunk, counts []count, handle func(*Record)) {
	var rec Record
	find, _ := p.(*anyFormat)
	for c := range chunks {
		if find != nil {
			find.w3c = c.w3c.forWorker()
		}
		n := &counts[c.file]
		for line := range bytes.SplitSeq(c.lines, []byte("\n")) {
			line = bytes.TrimSuffix(line, []byte("\r"))
			if len(line) == 0 {
				continue
			}
			if find != nil && bytes.HasPrefix(line, fieldsLine) {
				find.w3c = newW3C(line)
				continue
			}
			err := p.Parse(line, &rec)
			if len(rec.inner) > 0 {
				line = rec.inner
			}
			if err != nil {
				if find == nil || line[0] != '#' { // otherwise the line is a comment
					n.bad(c.number, line, err)
				}
				continue
			}
			n.good(&rec, line)
			rec.File = c.file
			handle(&rec)
		}
		buffers.Put(c.buf)
	}
}
