// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/dustin/go-humanize"

	"github.com/robotspolicy/caddy-robots-policy/crawlers/identity"
	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/auditor"
	"github.com/robotspolicy/caddy-robots-policy/metainject"
	"github.com/robotspolicy/caddy-robots-policy/robotstag"
	"github.com/robotspolicy/caddy-robots-policy/source"
)

func init() {
	httpcaddyfile.RegisterDirective("robots_policy", parseCaddyfile)
	httpcaddyfile.RegisterDirectiveOrder("robots_policy", httpcaddyfile.After, "encode")
	httpcaddyfile.RegisterDirective(decideDirective, parseCaddyfile)
	httpcaddyfile.RegisterDirectiveOrder(decideDirective, httpcaddyfile.After, "encode")
}

const decideDirective = "robots_policy_decide"

// parseCaddyfile parses the directive with an optional matcher. A single argument is always the policy file, even if it
// begins with "/". Caddy's "root" directive treats its argument the same way.
func parseCaddyfile(h httpcaddyfile.Helper) ([]httpcaddyfile.ConfigValue, error) {
	h.Next()
	name := h.Val()
	var matchers caddy.ModuleMap
	switch n := h.CountRemainingArgs(); {
	case n == 0:
		return nil, h.Err("robots_policy needs a policy file, as in: robots_policy site-policy.yaml")
	case n > 2:
		return nil, h.Errf("too many arguments: %s takes an optional matcher and a policy file", name)
	case n == 2:
		var err error
		if matchers, err = h.ExtractMatcherSet(); err != nil {
			return nil, err
		}
		if h.Next(); h.CountRemainingArgs() > 1 {
			return nil, h.Err("the first of two arguments is a matcher, such as @name or /path/*; the second is the policy file")
		}
	}
	h.Reset()
	handler := new(Handler)
	if err := handler.UnmarshalCaddyfile(h.Dispenser); err != nil {
		return nil, err
	}
	return h.NewRoute(matchers, handler), nil
}

// UnmarshalCaddyfile sets up the handler from Caddyfile tokens. Syntax:
//
//	robots_policy [<matcher>] <file> {
//	    enforce    off|log|block
//	    block_with respond|error
//	    robots_txt replace|merge|off
//	    robots_txt_max_age <duration>
//	    headers    [robots-tag] [x-robots-tag] [content-usage] [content-signal] [tailored]|off
//	    meta       merge|replace|off
//	    meta_limit <size>
//	    reload     <duration>|off
//	    default    <file>
//	    verify     [lists] [dns] [signatures]|embedded|off
//	    verify_from <ranges...>
//	    audit      <interval> <url>
//	}
//
// The directive robots_policy_decide has the same syntax, and also requires this line:
//
//	style      nginx|forward|envoy
//
// The policy file is not read here, because a configuration may be adapted on another machine than the server.
func (h *Handler) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next()
	decides := d.Val() == decideDirective
	if !d.AllArgs(&h.Policy) {
		return d.ArgErr()
	}
	h.Place = fmt.Sprintf("%s:%d", d.File(), d.Line())
	seen := map[string]bool{}
	for d.NextBlock(0) {
		name := d.Val()
		if seen[name] {
			return d.Errf("%s is set twice", name)
		}
		seen[name] = true
		args := d.RemainingArgs()
		if d.NextBlock(d.Nesting()) {
			return d.Errf("%s does not take a block", name)
		}
		var err error
		if decides && name == "style" {
			h.Decide, err = oneOf(name, args, decideValues)
		} else {
			err = h.subdirective(name, args)
		}
		if err != nil {
			return d.Err(err.Error())
		}
	}
	if decides && h.Decide == "" {
		return d.Errf("%s needs the subdirective \"style\", which names the protocol of the server that asks for decisions: one of %s", decideDirective, strings.Join(decideValues, ", "))
	}
	return nil
}

// subdirective parses one line in the block of the directive.
func (h *Handler) subdirective(name string, args []string) (err error) {
	switch name {
	case "enforce":
		h.Enforce, err = oneOf(name, args, enforceValues)
	case "block_with":
		h.Refuse, err = oneOf(name, args, refuseValues)
	case "robots_txt":
		h.RobotsTxt, err = oneOf(name, args, robotsTxtValues)
	case "robots_txt_max_age":
		h.RobotsTxtMaxAge, err = maxAge(args)
	case "meta":
		h.Meta, err = oneOf(name, args, metaValues)
	case "meta_limit":
		h.MetaLimit, err = sizeOf(name, args)
	case "reload":
		h.Reload, err = reloadInterval(args)
	case "verify":
		h.Verify = args
		if err = needArgs(name, args, "\"off\", \"embedded\", or one or more of lists, dns and signatures"); err == nil {
			_, err = identity.ParseMethods(args, nil)
		}
	case "verify_from":
		h.VerifyFrom = args
		if err = needArgs(name, args, "address ranges such as 10.0.0.0/8"); err == nil {
			_, err = identity.ParseMethods(nil, args)
		}
	case "default":
		h.Default, err = oneArg(name, args, "the policy file for hosts without a separate policy file")
	case "audit":
		h.Audit, err = auditor.Parse(args)
	case "headers":
		err = h.headersSubdirective(args)
	default:
		err = fmt.Errorf("unrecognized subdirective '%s': must be enforce, block_with, robots_txt, robots_txt_max_age, headers, meta, meta_limit, reload, verify, verify_from, default or audit", name)
	}
	return err
}

// sizeOf parses a size such as 128KiB.
func sizeOf(name string, args []string) (int, error) {
	arg, err := oneArg(name, args, "a size such as 128KiB")
	if err != nil {
		return 0, err
	}
	n, err := humanize.ParseBytes(arg)
	if err != nil || n < minMetaLimit || n > metainject.MostMaxHead {
		return 0, fmt.Errorf("invalid %s %q: must be a size from 1KiB to 16MiB", name, arg)
	}
	return int(n), nil
}

// headersSubdirective parses the names of headers, and the word "tailored".
func (h *Handler) headersSubdirective(args []string) error {
	if err := needArgs("headers", args, "\"off\", or one or more of "+strings.Join(robotstag.ChannelNames(), ", ")+" and tailored"); err != nil {
		return err
	}
	h.Headers = slices.DeleteFunc(slices.Clone(args), func(a string) bool { return a == "tailored" })
	switch len(args) - len(h.Headers) {
	case 0:
	case 1:
		h.Tailored = true
	default:
		return errors.New("\"headers\" has the value tailored twice")
	}
	if h.Tailored && slices.Contains(h.Headers, "off") {
		return errors.New("\"headers off\" cannot be combined with other values")
	}
	return checkHeaders(h.Headers)
}

// maxAge parses the argument of "robots_txt_max_age".
func maxAge(args []string) (*caddy.Duration, error) {
	word, err := oneArg("robots_txt_max_age", args, "a duration such as 10m, or 0")
	if err != nil {
		return nil, err
	}
	age, err := caddy.ParseDuration(word)
	if err != nil {
		return nil, fmt.Errorf("invalid robots_txt_max_age %q: must be a duration such as 10m, or 0", word)
	}
	d := caddy.Duration(age)
	return &d, checkMaxAge(age)
}

// reloadInterval parses the argument of "reload". For "off", it returns a negative duration.
func reloadInterval(args []string) (caddy.Duration, error) {
	const want = "\"off\", or the time between two checks of the policy, such as 10s"
	word, err := oneArg("reload", args, want)
	if err != nil {
		return 0, err
	}
	if word == "off" {
		return caddy.Duration(source.ReloadOff), nil
	}
	interval, err := caddy.ParseDuration(word)
	if err != nil || interval <= 0 {
		return 0, fmt.Errorf("invalid reload %q: must be %s", word, want)
	}
	return caddy.Duration(interval), nil
}

func oneOf(name string, args, values []string) (string, error) {
	value, err := oneArg(name, args, "one of "+strings.Join(values, ", "))
	if err != nil {
		return "", err
	}
	return value, checkValue(name, value, values)
}

func oneArg(name string, args []string, want string) (string, error) {
	if len(args) != 1 {
		return "", fmt.Errorf("%s takes %s", name, want)
	}
	return args[0], nil
}

func needArgs(name string, args []string, want string) error {
	if len(args) == 0 {
		return fmt.Errorf("%s takes %s", name, want)
	}
	return nil
}

var _ caddyfile.Unmarshaler = (*Handler)(nil)
