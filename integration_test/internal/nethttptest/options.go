// SPDX-License-Identifier: Apache-2.0

package nethttptest

import (
	"errors"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/handler"
	"github.com/robotspolicy/caddy-robots-policy/metainject"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotstag"
)

var (
	robotsTxtModes = map[string]handler.RobotsTxt{
		"replace": handler.RobotsTxtReplace, "merge": handler.RobotsTxtMerge, "off": handler.RobotsTxtOff,
	}
	metaModes = map[string]metainject.Mode{
		"merge": metainject.Merge, "replace": metainject.Replace, "off": metainject.Off,
	}
)

// setOption applies a line in the block of robots_policy to the options.
func setOption(t testing.TB, o *handler.Options, name string, args []string) (err error) {
	t.Helper()
	known := true
	switch name {
	case "enforce":
		o.MaxMode, known = policy.ParseMode(args[0])
	case "robots_txt":
		o.RobotsTxt, known = robotsTxtModes[args[0]]
	case "robots_txt_max_age":
		o.MaxAge, err = time.ParseDuration(args[0])
	case "meta":
		o.Meta, known = metaModes[args[0]]
	case "headers":
		for _, arg := range args {
			switch {
			case arg == "tailored":
				o.Tailored = true
			case arg == "off":
				o.NoHeaders = true
			case robotstag.ParseChannel(arg) != 0:
				o.Headers |= robotstag.ParseChannel(arg)
			default:
				known = false
			}
		}
	case "verify":
		o.Verifier = verifier(t, args)
	case "reload": // ignored, because the test calls Reload
	default:
		known = false
	}
	if !known {
		return errors.New("is not known")
	}
	return err
}
