// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"embed"
	"strings"
	"text/template"
)

//go:embed configs
var configs embed.FS

// Config holds the inputs of a row's configuration.
type Config struct {
	Template string // name of a file in the folder configs
	Port     int    // port on 127.0.0.1 where the row listens
	Answer   string // the Caddyfile directive that answers requests
	Origin   string // host:port of the upstream, for nginx
	Policy   string // path of the policy file
	Dir      string // folder that only this row uses
}

// Tokens returns a regular expression for the crawlers that configurations without this module must block (see
// Refused).
func (Config) Tokens() string { return strings.Join(Refused(), "|") }

// Robots returns the robots.txt that configurations without this module serve.
func (Config) Robots() string {
	return "User-agent: *\nDisallow: /admin/\nDisallow: /search?q=\nContent-Usage: train-ai=n\n\nUser-agent: " +
		strings.Join(Refused(), "\nUser-agent: ") + "\nDisallow: /\n"
}

// Text returns the configuration file, which the template makes from the values of c.
func (c Config) Text() (string, error) {
	t, err := template.ParseFS(configs, "configs/"+c.Template)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	err = t.Execute(&b, c)
	return b.String(), err
}
