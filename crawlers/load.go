// SPDX-License-Identifier: Apache-2.0

package crawlers

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"

	"go.yaml.in/yaml/v3"
)

// MaxFile is the greatest size of a catalogue file, in bytes.
const MaxFile = 4 << 20

// load reads every file of the catalogue and checks it as a whole.
func load(fsys fs.FS) (*Catalogue, error) {
	names, err := fs.Glob(fsys, "catalogue/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("listing the catalogue: %w", err)
	}
	var list []*Crawler
	var asOf string
	var errs []error
	places := map[*Crawler]string{}
	for _, name := range names {
		data, err := fs.ReadFile(fsys, name)
		if err != nil {
			return nil, fmt.Errorf("reading the catalogue: %w", err)
		}
		p := newFileParser(name)
		list = append(list, p.parse(data)...)
		asOf = max(asOf, p.asOf)
		errs = append(errs, p.errs...)
		maps.Copy(places, p.places)
	}
	return checked(list, asOf, errs, places)
}

// checked makes a catalogue of crawlers if neither errs nor the checks between them find
// anything wrong. places say where each crawler is written.
func checked(list []*Crawler, asOf string, errs []error, places map[*Crawler]string) (*Catalogue, error) {
	errs = append(errs, checkAll(list, places)...)
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return newCatalogue(list, asOf), nil
}

// fileParser reads one file; errs has every problem, each with its line.
type fileParser struct {
	name     string
	version  string
	asOf     string
	profiles map[string]Verification
	places   map[*Crawler]string // file:line of each
	errs     []error
}

func newFileParser(name string) *fileParser {
	return &fileParser{name: name, profiles: map[string]Verification{}, places: map[*Crawler]string{}}
}

func (p *fileParser) errorf(n *yaml.Node, format string, args ...any) {
	p.errs = append(p.errs, fmt.Errorf("%s:%d: %w", p.name, n.Line, fmt.Errorf(format, args...)))
}

// parse returns the crawlers of one catalogue file. Anything unknown, repeated or of the
// wrong shape is an error.
func (p *fileParser) parse(data []byte) []*Crawler {
	doc, err := decode(data)
	if err != nil {
		p.errs = append(p.errs, fmt.Errorf("%s: %w", p.name, err))
		return nil
	}
	var rows []*Crawler
	for key, value := range p.mapping(doc) {
		switch key.Value {
		case "version":
			p.version = p.text(value)
		case "as-of":
			p.asOf = p.text(value)
		case "verification":
			for key, value := range p.mapping(value) {
				p.profiles[key.Value] = p.verification(value)
			}
		case "crawlers":
			for key, value := range p.mapping(value) {
				rows = append(rows, p.crawler(key, value))
			}
		default:
			p.errorf(key, "unknown key %q; a catalogue has version, as-of, verification and crawlers", key.Value)
		}
	}
	return rows
}

// decode returns the only document of a YAML file.
func decode(data []byte) (*yaml.Node, error) {
	if len(data) > MaxFile {
		return nil, fmt.Errorf("larger than %d bytes", MaxFile)
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, errors.New("empty; a catalogue begins with version: 1")
	} else if err != nil {
		return nil, err
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, errors.New("holds more than one document")
	}
	return doc.Content[0], nil
}

// crawler reads one row and checks what can be checked of it alone.
func (p *fileParser) crawler(key, value *yaml.Node) *Crawler {
	c := &Crawler{Token: key.Value, AsOf: p.asOf}
	p.places[c] = fmt.Sprintf("%s:%d", p.name, key.Line)
	for k, v := range p.mapping(value) {
		p.field(c, k, v)
	}
	for _, err := range checkCrawler(c) {
		p.errorf(key, "%s: %w", c.Token, err)
	}
	return c
}

func (p *fileParser) field(c *Crawler, key, v *yaml.Node) {
	switch key.Value {
	case "operator":
		c.Operator = p.text(v)
	case "kind":
		c.Kind = Kind(p.text(v))
	case "kinds":
		for _, k := range p.list(v) {
			c.Kinds = append(c.Kinds, Kind(k))
		}
	case "user-agents":
		c.UserAgents = p.list(v)
	case "follows":
		c.Follows = p.list(v)
	case "ignores-star":
		c.IgnoresStar = p.boolean(v)
	case "robots-only":
		c.RobotsOnly = p.boolean(v)
	case "docs":
		c.Docs = p.text(v)
	case "honours":
		c.Honours = Honours(p.text(v))
	case "training-control":
		c.TrainingControl = p.text(v)
	case "purposes":
		c.Purposes = p.list(v)
	case "verify":
		c.Verification = p.verify(v)
	case "examples":
		c.Examples = p.list(v)
	case "look-alikes":
		c.LookAlikes = p.list(v)
	case "note":
		c.Note = p.text(v)
	case "as-of":
		c.AsOf = p.text(v)
	case "source":
		c.Sources = p.list(v)
	default:
		p.errorf(key, "unknown key %q", key.Value)
	}
}

// verify reads a profile's name or a mapping.
func (p *fileParser) verify(n *yaml.Node) Verification {
	if n.Kind != yaml.ScalarNode {
		return p.verification(n)
	}
	v, ok := p.profiles[n.Value]
	if !ok {
		p.errorf(n, "there is no verification %q above", n.Value)
	}
	return v
}

func (p *fileParser) verification(n *yaml.Node) Verification {
	var v Verification
	for key, value := range p.mapping(n) {
		switch key.Value {
		case "address-lists":
			v.AddressLists = p.list(value)
		case "reverse-dns":
			v.ReverseDNS = p.list(value)
		case "web-bot-auth":
			v.WebBotAuth = p.text(value)
		default:
			p.errorf(key, "unknown key %q", key.Value)
		}
	}
	return v
}
