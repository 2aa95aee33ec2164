// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"

	"github.com/robotspolicy/caddy-robots-policy/site"
)

// prefix is the start of the keys in Caddy storage. Each server has one key.
const prefix = "robots_policy/fleet/"

// Limits of a message. They are needed because each pair of a host and a crawler has its own Reading. Anyone can create
// many of them by fetching the robots.txt of any host in the name of any crawler.
const (
	maxReadings   = 2000
	maxUnverified = 200
	maxMessage    = 4 << 20 // maximum size as JSON, in bytes
	maxOlder      = 32      // if exchange.older contains more versions than this, it is cleared
)

// message is the value that a server writes to its key in the storage. Sequence is different in each message. So the
// other servers can see that this server is running, even if its clock is wrong.
type message struct {
	Sequence int64             `json:"sequence"`
	Policies map[string]string `json:"policies,omitempty"` // the SHA-256 of each policy that the server serves, by name
	Readings []site.Reading    `json:"readings"`
}

func (m *message) encode() ([]byte, error) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	err := errors.Join(json.NewEncoder(z).Encode(m), z.Close())
	return b.Bytes(), err
}

func decode(data []byte) (*message, error) {
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(z, maxMessage)) // read to the end, so that the checksum is verified
	if err != nil {
		return nil, err
	}
	m := new(message)
	if err := json.Unmarshal(text, m); err != nil {
		return nil, err
	}
	m.Readings = m.Readings[:min(len(m.Readings), maxReadings)]
	return m, nil
}

func key(node string) string { return prefix + node + ".json.gz" }
