// SPDX-License-Identifier: Apache-2.0

package crawlers

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// fileVersion is the version of the catalog files that [Parse] reads and [Export] writes.
const fileVersion = "1"

// Parse parses a catalog file. name is the file's name in errors. The error joins all errors in the file, each with
// its line.
func Parse(name string, data []byte) (*Catalog, error) {
	p := newFileParser(name)
	rows := p.parse(data)
	if p.version != "" && p.version != fileVersion {
		return nil, fmt.Errorf("%s:1: version %q of the catalog format is not supported; install a newer program, or write the file in version %s", name, p.version, fileVersion)
	}
	if _, err := time.Parse(time.DateOnly, p.asOf); err != nil && len(rows) > 0 { // reported here once, instead of for each row
		return nil, fmt.Errorf("%s:1: as-of is %q; above the crawlers, write the date of the catalog, for example as-of: 2026-11-22", name, p.asOf)
	}
	if err := errors.Join(p.errs...); err != nil {
		return nil, err
	}
	switch {
	case p.version == "":
		return nil, fmt.Errorf("%s:1: version is missing; write version: %s", name, fileVersion)
	case len(rows) == 0:
		return nil, fmt.Errorf("%s:1: the list of crawlers is missing; a catalog must be complete, because it replaces the previous one", name)
	}
	c, err := checked(rows, p.controls, p.asOf, p.browserNames(rows), p.places)
	if err != nil {
		return nil, err
	}
	c.addresses = p.lists
	if builtin, err := Embedded(); err == nil && p.controls == nil {
		c.controls = builtin.controls // a catalog of an older release has no controls section
	}
	if err := errors.Join(c.unrecognized(p.places)...); err != nil {
		return nil, err
	}
	return c, nil
}

// unrecognized returns an error for each crawler that the catalog does not recognize in the crawler's own example
// User-Agents.
func (c *Catalog) unrecognized(places map[*Crawler]string) (errs []error) {
	r := NewRecognizer(c.Patterns())
	for i, cr := range c.crawlers {
		for _, example := range cr.Examples {
			if got, ok := r.Recognize(example); !ok || got != i {
				errs = append(errs, fmt.Errorf("%s: %s is not recognized in its example %q; correct the example or user-agents", places[cr], cr.Token, example))
			}
		}
	}
	return errs
}

// browserNames returns an error for each pattern that the User-Agent of a browser contains. With such a pattern, people
// who read the site would be recognized as crawlers.
func (p *fileParser) browserNames(rows []*Crawler) (errs []error) {
	for _, c := range rows {
		for _, s := range c.Patterns() {
			if NamesBrowser(s) {
				errs = append(errs, fmt.Errorf("%s: %s: %q is in the User-Agent of browsers; write a name that only the crawler has", p.places[c], c.Token, s))
			}
		}
	}
	return errs
}

// Export returns the embedded catalog and the given text of address lists as one file that [Parse] accepts. The date of
// the file is the date of the newer part.
func Export(addresses string) ([]byte, error) { return export(embedded, addresses) }

func export(fsys fs.FS, addresses string) ([]byte, error) {
	names, err := fs.Glob(fsys, "catalog/*.yaml")
	if err != nil {
		return nil, err
	}
	profiles, rows, controls := &yaml.Node{Kind: yaml.MappingNode}, &yaml.Node{Kind: yaml.MappingNode}, &yaml.Node{Kind: yaml.MappingNode}
	newest := ""
	for _, name := range names {
		data, err := fs.ReadFile(fsys, name)
		if err != nil {
			return nil, err
		}
		doc, err := decode(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		asOf := valueOf(doc, "as-of").Value
		newest = max(newest, asOf)
		if v := valueOf(doc, "verification"); v != nil {
			profiles.Content = append(profiles.Content, v.Content...)
		}
		for key, all := range map[string]*yaml.Node{"crawlers": rows, "controls": controls} {
			list := valueOf(doc, key)
			if list == nil {
				continue
			}
			for i := 1; i < len(list.Content); i += 2 {
				if valueOf(list.Content[i], "as-of") == nil {
					list.Content[i].Content = append(list.Content[i].Content, scalar("as-of"), scalar(asOf))
				}
			}
			all.Content = append(all.Content, list.Content...)
		}
	}
	for line := range strings.Lines(addresses) {
		if date, ok := strings.CutPrefix(line, "date "); ok {
			newest = max(newest, strings.TrimSpace(date))
		}
	}
	doc := &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{
		scalar("version"), scalar(fileVersion), scalar("as-of"), scalar(newest),
		scalar("verification"), profiles,
	}}
	if addresses != "" {
		doc.Content = append(doc.Content, scalar("addresses"), &yaml.Node{Kind: yaml.ScalarNode, Style: yaml.LiteralStyle, Value: addresses})
	}
	if len(controls.Content) > 0 {
		doc.Content = append(doc.Content, scalar("controls"), controls)
	}
	doc.Content = append(doc.Content, scalar("crawlers"), rows)
	doc.HeadComment = "SPDX-License-Identifier: Apache-2.0"
	var out bytes.Buffer
	e := yaml.NewEncoder(&out)
	e.SetIndent(2)
	if err := errors.Join(e.Encode(doc), e.Close()); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func scalar(s string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Value: s} }

// valueOf returns the value of a key in a mapping, or nil.
func valueOf(mapping *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i+1]
		}
	}
	return nil
}
