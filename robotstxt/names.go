// SPDX-License-Identifier: Apache-2.0

package robotstxt

import (
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
)

// group returns the group for the value of a User-agent line. It ignores a version in the value.
func (r *reader) group(value string) *Group {
	name := productToken(value)
	if name == "" || !printable(name) || len(name) > maxName {
		r.note("%q is not the name of a crawler; import and merge leave out its group", value)
		return &Group{Name: value} // this group is not in the file; it collects the lines that follow
	}
	if strings.EqualFold(name, "Mozilla") {
		r.wrong("Google's parser reads the name Mozilla in %q, and no known crawler has this name. "+
			"Write only the name of the crawler that you mean, such as bingbot", value)
	} else if _, others, several := strings.Cut(value, ","); several {
		r.wrong("crawlers read only the name %q in this line, so the group is not for %s. Write a User-agent line for each crawler", name, trim(others))
	} else if before, _, _ := strings.Cut(value, "/"); name != strings.Join(strings.FieldsFunc(before, isSpace), " ") {
		r.note("the name %q is read as %q, as Google's parser does", value, name)
	}
	g := r.file.Group(name)
	if g == nil {
		g = &Group{Name: name, written: value, number: r.number}
		r.file.add(g)
		r.comment()
	}
	return g
}

func (r *reader) purpose(value string) *Group {
	for _, g := range r.file.purposes {
		if strings.EqualFold(g.Name, value) {
			return g
		}
	}
	g := &Group{Name: value, number: r.number}
	r.file.purposes = append(r.file.purposes, g)
	r.comment()
	return g
}

const nameBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"

// productToken returns the name of the crawler in the value of a User-agent line. If the first word is "*", it returns
// "*". The name ends before a "/". If the built-in catalog does not have this name, productToken cuts it before the
// first byte that is not in nameBytes. Google's parser also cuts a name before the first digit.
func productToken(value string) string {
	if first, _, _ := strings.Cut(value, " "); first == "*" || strings.HasPrefix(value, "*\t") {
		return "*"
	}
	name, _, _ := strings.Cut(value, "/")
	name = strings.Join(strings.FieldsFunc(name, isSpace), " ")
	catalog, _ := crawlers.Default() // the built-in catalog is valid
	if _, known := catalog.Lookup(name); known {
		return name
	}
	return name[:len(name)-len(strings.TrimLeft(name, nameBytes))]
}
