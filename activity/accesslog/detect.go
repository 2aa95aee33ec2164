// SPDX-License-Identifier: Apache-2.0

package accesslog

import (
	"bytes"
	"errors"
)

// detect finds the format of a log from its first lines: the one of Caddy, Combined,
// with a virtual host or without, or Common that reads the most of them.
func detect(start []byte) (Parser, error) {
	lines := bytes.Split(start, []byte("\n"))
	if len(lines) > 1 {
		lines = lines[:len(lines)-1] // the last one may have been cut
	}
	var best Parser
	most := 0
	for _, name := range []string{"caddy", "combined", "vhost_combined", "common"} {
		p, err := ParseFormat(name)
		if err != nil {
			return nil, err
		}
		var r Record
		n := 0
		for _, l := range lines {
			if p.Parse(bytes.TrimSuffix(l, []byte("\r")), &r) == nil {
				n++
			}
		}
		if n > most {
			best, most = p, n
		}
	}
	if best == nil {
		return nil, errors.New("unknown log format: must be Caddy's JSON, Common or Combined; for another one, write --format")
	}
	return best, nil
}
