// SPDX-License-Identifier: Apache-2.0

package edit

import (
	"errors"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/robotspolicy/caddy-robots-policy/policyfile"
	"github.com/robotspolicy/caddy-robots-policy/site"
	"github.com/robotspolicy/caddy-robots-policy/site/compare"
)

// Publish switches a channel on or off in the text of a policy file. The file must not have errors. register is the
// channel's key in the section "publish". The errors are the same as those of [Apply].
func Publish(name, text, register string, on bool, now time.Time) (*Result, error) {
	before, ds := site.LoadWith(name, []byte(text), policyfile.Options{Now: now, Accepted: true})
	if before == nil {
		return nil, &InvalidError{ds}
	}
	p := pair{key: register, value: map[bool]string{true: "on", false: "off"}[on]}
	d, ok := parse(text)
	if ok {
		switch _, publish := child(d.root, "publish"); {
		case publish == nil && d.root.Style&yaml.FlowStyle != 0:
			ok = false
		case publish == nil:
			text = d.insertLines(len(text), block("", []pair{{key: "publish", pairs: []pair{p}}}))
		case len(publish.Content) == 0:
			text, ok = d.put(publish, flow([]pair{p}))
		default:
			if text, ok = d.set(publish, p.key, p.value); !ok { // the last value of the section has several lines
				at := d.lineStart(d.start(publish.Content[0]))
				text, ok = d.replace(at, at, strings.Repeat(" ", publish.Column-1)+p.key+": "+p.value+d.eol), true
			}
		}
	}
	e := &editor{known: ds}
	after, ds := site.LoadWith(name, []byte(text), policyfile.Options{Now: now})
	ds = slices.DeleteFunc(ds, e.isKnown)
	switch {
	case !ok:
		return nil, errors.New("a file with this layout cannot be edited automatically; write publish: {" + p.key + ": " + p.value + "} by hand")
	case after == nil:
		return nil, &InvalidError{ds}
	}
	return &Result{Text: text, Site: after, Diagnostics: ds, Diff: compare.Sites(before, after, compare.Options{Now: now})}, nil
}
