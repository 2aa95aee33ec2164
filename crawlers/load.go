// SPDX-License-Identifier: Apache-2.0

package crawlers

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"go.yaml.in/yaml/v3"
)

// maxFile is the greatest size of a catalogue file, in bytes.
const maxFile = 1 << 20

// load reads every file of the catalogue and checks it as a whole.
func load(fsys fs.FS) (*Catalogue, error) {
	names, err := fs.Glob(fsys, "catalogue/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("listing the catalogue: %w", err)
	}
	files := make(map[string][]byte, len(names))
	for _, name := range names {
		if files[name], err = fs.ReadFile(fsys, name); err != nil {
			return nil, fmt.Errorf("reading the catalogue: %w", err)
		}
	}
	var list []*Crawler
	var errs []error
	for _, name := range names {
		rows, err := parseFile(name, files[name])
		if err != nil {
			errs = append(errs, err)
		}
		list = append(list, rows...)
	}
	errs = append(errs, checkAll(list)...)
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return newCatalogue(list), nil
}

// fileParser reads one file; err gathers every problem, each with its line.
type fileParser struct {
	name     string
	asOf     string
	profiles map[string]Verification
	errs     []error
}

func (p *fileParser) errorf(n *yaml.Node, format string, args ...any) {
	p.errs = append(p.errs, fmt.Errorf("%s:%d: %w", p.name, n.Line, fmt.Errorf(format, args...)))
}

// parseFile returns the crawlers of one catalogue file. Anything unknown,
// repeated or of the wrong shape is an error.
func parseFile(name string, data []byte) ([]*Crawler, error) {
	if len(data) > maxFile {
		return nil, fmt.Errorf("%s: larger than %d bytes", name, maxFile)
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	if err := dec.Decode(&doc); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: holds more than one document", name)
	}
	p := &fileParser{name: name, profiles: map[string]Verification{}}
	var rows []*Crawler
	for key, value := range p.mapping(doc.Content[0]) {
		switch key.Value {
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
			p.errorf(key, "unknown key %q", key.Value)
		}
	}
	return rows, errors.Join(p.errs...)
}

// crawler reads one row and checks what can be checked of it alone.
func (p *fileParser) crawler(key, value *yaml.Node) *Crawler {
	c := &Crawler{Token: key.Value, AsOf: p.asOf}
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
		c.IgnoresStar = p.truth(v)
	case "robots-only":
		c.RobotsOnly = p.truth(v)
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
