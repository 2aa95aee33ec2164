// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"slices"

	"github.com/robotspolicy/caddy-robots-policy/channels"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/rights"
)

// writerOf writes the records of a channel, which are lines after the groups.
type writerOf struct {
	*channels.Records
	channels.RecordWriter
}

func recordWriters(p *policy.Policy) (all []writerOf) {
	for _, ch := range channels.Table {
		if ch.Records != nil {
			all = append(all, writerOf{ch.Records, ch.Records.New(p)})
		}
	}
	return all
}

// recordsOf holds the records of a channel for a host.
type recordsOf struct {
	*channels.Records
	lines []policy.Line
}

// write returns the records that channels add after the groups. It leaves out channels that have no records for the
// host.
func (l *layout) write(host string) (all []recordsOf, problems []policy.Problem) {
	for _, w := range l.records {
		lines, found := w.Write(host)
		if problems = append(problems, found...); lines != nil {
			all = append(all, recordsOf{w.Records, lines})
		}
	}
	return all, problems
}

// document is a document that a line of robots.txt names, such as a license.
type document struct{ field, path string }

// documents lists the documents that the robots.txt of a host names.
func documents(p *policy.Policy, host string) (all []document) {
	for _, ch := range channels.Documents() {
		if path := ch.File.Path(&p.Spec().Publish); path != "" && ch.File.Field != "" {
			all = append(all, document{ch.File.Field, path})
		}
	}
	if len(all) > 0 && !rights.NewView(p, host).StatesAny() {
		return nil
	}
	return all
}

// namesDocuments reports whether lines of robots.txt name documents of the host.
func namesDocuments(publish *policy.Publish) bool {
	return slices.ContainsFunc(channels.Documents(), func(ch *channels.Channel) bool {
		return ch.File.Field != "" && ch.File.Path(publish) != ""
	})
}
