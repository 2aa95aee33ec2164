// SPDX-License-Identifier: Apache-2.0

package crawlers

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"

	"go.yaml.in/yaml/v3"
)

// MaxFile is the maximum size of a catalog file, in bytes.
const MaxFile = 4 << 20

// load parses all files of the catalog and checks them together.
func load(fsys fs.FS) (*Catalog, error) {
	names, err := fs.Glob(fsys, "catalog/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("listing the catalog: %w", err)
	}
	var list []*Crawler
	var asOf string
	var errs []error
	places := map[*Crawler]string{}
	var controls []Control
	for _, name := range names {
		data, err := fs.ReadFile(fsys, name)
		if err != nil {
			return nil, fmt.Errorf("reading the catalog: %w", err)
		}
		p := newFileParser(name)
		list = append(list, p.parse(data)...)
		controls = append(controls, p.controls...)
		asOf = max(asOf, p.asOf)
		errs = append(errs, p.errs...)
		maps.Copy(places, p.places)
	}
	return checked(list, controls, asOf, errs, places)
}

// checked returns a catalog with the crawlers in list and the controls. If errs is not empty or checked finds further
// errors, it returns one error that joins all of them. places holds the file and line of each crawler.
func checked(list []*Crawler, controls []Control, asOf string, errs []error, places map[*Crawler]string) (*Catalog, error) {
	errs = append(errs, checkAll(list, places)...)
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	c := newCatalog(list, controls, asOf)
	if err := errors.Join(c.checkControls()...); err != nil {
		return nil, err
	}
	return c, nil
}

// fileParser parses one file of the catalog. It collects all errors with their line numbers in errs.
type fileParser struct {
	name     string
	version  string
	asOf     string
	lists    string // the text of the address lists
	profiles map[string]Verification
	controls []Control
	places   map[*Crawler]string // file:line of each crawler
	errs     []error
}

func newFileParser(name string) *fileParser {
	return &fileParser{name: name, profiles: map[string]Verification{}, places: map[*Crawler]string{}}
}

const maxErrors = 100

func (p *fileParser) errorf(n *yaml.Node, format string, args ...any) {
	if len(p.errs) >= maxErrors {
		return
	}
	p.errs = append(p.errs, fmt.Errorf("%s:%d: %w", p.name, n.Line, fmt.Errorf(format, args...)))
}

// parse returns the crawlers of a catalog file. It adds an error to p.errs for every unknown, repeated or malformed
// element.
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
		case "addresses":
			p.lists = p.text(value)
		case "verification":
			for key, value := range p.mapping(value) {
				p.profiles[key.Value] = p.verification(value)
			}
		case "crawlers":
			for key, value := range p.mapping(value) {
				rows = append(rows, p.crawler(key, value))
			}
		case "controls":
			for key, value := range p.mapping(value) {
				p.control(key, value)
			}
		default:
			p.errorf(key, "unknown key %q; a catalog has version, as-of, verification, addresses, crawlers and controls", key.Value)
		}
	}
	return rows
}

// decode parses a YAML file, which must have exactly one document.
func decode(data []byte) (*yaml.Node, error) {
	if len(data) > MaxFile {
		return nil, fmt.Errorf("the file is larger than %d bytes", MaxFile)
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, errors.New("the file is empty; begin a catalog with version: 1")
	} else if err != nil {
		return nil, err
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, errors.New("the file has more than one YAML document; write one")
	}
	return doc.Content[0], nil
}

// crawler parses one row. It performs the checks that do not need the other rows.
func (p *fileParser) crawler(key, value *yaml.Node) *Crawler {
	c := &Crawler{Token: key.Value, AsOf: p.asOf}
	p.places[c] = fmt.Sprintf("%s:%d", p.name, key.Line)
	p.fields(value, map[string]any{
		"operator": &c.Operator, "category": &c.Category, "further": &c.Further, "results": (*string)(&c.Results), "user-agents": &c.UserAgents, "follows": &c.Follows,
		"ignores-star": &c.IgnoresStar, "reads-meta": &c.ReadsMeta, "robots-only": &c.RobotsOnly, "docs": &c.Docs, "honors": &c.Honors,
		"purposes": &c.Purposes, "verify": &c.Verification,
		"examples": &c.Examples, "look-alikes": &c.LookAlikes, "note": &c.Note, "as-of": &c.AsOf, "source": &c.Sources,
	})
	for _, err := range checkCrawler(c) {
		p.errorf(key, "%s: %w", c.Token, err)
	}
	return c
}

func (p *fileParser) fields(n *yaml.Node, into map[string]any) {
	for key, value := range p.mapping(n) {
		switch to := into[key.Value].(type) {
		case *string:
			*to = p.text(value)
		case *Category:
			*to = Category(p.text(value))
		case *Honors:
			*to = Honors(p.text(value))
		case *bool:
			*to = p.boolean(value)
		case *[]string:
			*to = p.list(value)
		case *[]Category:
			for _, k := range p.list(value) {
				*to = append(*to, Category(k))
			}
		case *Verification:
			*to = p.verify(value)
		default:
			p.errorf(key, "unknown key %q", key.Value)
		}
	}
}

// verify parses the value of a crawler's key "verify": a mapping, or the name of an entry in the file's verification
// section.
func (p *fileParser) verify(n *yaml.Node) Verification {
	if n.Kind != yaml.ScalarNode {
		return p.verification(n)
	}
	v, ok := p.profiles[n.Value]
	if !ok {
		p.errorf(n, "verification has no entry %q", n.Value)
	}
	return v
}

func (p *fileParser) verification(n *yaml.Node) (v Verification) {
	p.fields(n, map[string]any{"address-lists": &v.AddressLists, "reverse-dns": &v.ReverseDNS, "web-bot-auth": &v.WebBotAuth})
	return v
}

// mapping yields the keys and values of a YAML mapping. It skips a repeated key, a key that is not a plain word, and a
// node that is not a mapping, and adds an error for each.
func (p *fileParser) mapping(n *yaml.Node) iter.Seq2[*yaml.Node, *yaml.Node] {
	return func(yield func(_, _ *yaml.Node) bool) {
		if n.Kind != yaml.MappingNode {
			p.errorf(n, "expected a mapping")
			return
		}
		seen := make(map[string]bool, len(n.Content)/2)
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, value := n.Content[i], n.Content[i+1]
			if key.Kind != yaml.ScalarNode || key.Value == "" || key.Tag == "!!merge" {
				p.errorf(key, "expected a name")
				continue
			}
			if seen[key.Value] {
				p.errorf(key, "the key %q occurs twice; remove one", key.Value)
				continue
			}
			seen[key.Value] = true
			if !yield(key, value) {
				return
			}
		}
	}
}

func (p *fileParser) text(n *yaml.Node) string {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" || n.Value == "" {
		p.errorf(n, "expected a text")
		return ""
	}
	return n.Value
}

// list returns the strings of a YAML sequence. A single string is returned as a list with one element.
func (p *fileParser) list(n *yaml.Node) []string {
	if n.Kind != yaml.SequenceNode {
		if s := p.text(n); s != "" {
			return []string{s}
		}
		return nil
	}
	list := make([]string, 0, len(n.Content))
	for _, item := range n.Content {
		if s := p.text(item); s != "" {
			list = append(list, s)
		}
	}
	return list
}

func (p *fileParser) boolean(n *yaml.Node) bool {
	if n.Kind != yaml.ScalarNode || n.Value != "true" && n.Value != "false" {
		p.errorf(n, "expected true or false")
	}
	return n.Value == "true"
}
