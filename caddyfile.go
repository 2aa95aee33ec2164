// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"strings"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
)

func init() {
	httpcaddyfile.RegisterDirective("robots_policy", parseCaddyfile)
	httpcaddyfile.RegisterDirectiveOrder("robots_policy", httpcaddyfile.After, "encode")
}

// parseCaddyfile reads the directive with its matcher, if it has one. A single
// argument is always the policy file, also when it begins with "/", as with
// Caddy's own root directive.
func parseCaddyfile(h httpcaddyfile.Helper) ([]httpcaddyfile.ConfigValue, error) {
	h.Next() // the directive's name
	switch n := h.CountRemainingArgs(); {
	case n == 0:
		return nil, h.Err("robots_policy needs a policy file, as in: robots_policy site-policy.yaml")
	case n > 2:
		return nil, h.Err("too many arguments: robots_policy takes a matcher, if need be, and a policy file")
	case n == 1:
		h.Reset()
		handler := new(Handler)
		if err := handler.UnmarshalCaddyfile(h.Dispenser); err != nil {
			return nil, err
		}
		return h.NewRoute(nil, handler), nil
	}
	matchers, err := h.ExtractMatcherSet()
	if err != nil {
		return nil, err
	}
	if h.Next(); h.CountRemainingArgs() > 1 {
		return nil, h.Err("the first of two arguments is a matcher, such as @name or /path/*; the second is the policy file")
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
//	    robots_txt replace|merge|off
//	    robots_txt_max_age <duration>
//	    headers    [robots-tag] [x-robots-tag] [content-usage] [tailored]|off
//	    meta       merge|replace|off
//	    reload     <duration>|off
//	    default    <file>
//	    verify     [lists] [dns] [signatures]|embedded|off
//	    verify_from <ranges...>
//	}
//
// The policy file is not read here: a configuration may be adapted on another
// machine than the one that runs it.
func (h *Handler) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // the directive's name
	if !d.AllArgs(&h.Policy) {
		return d.ArgErr()
	}
	seen := map[string]bool{}
	for d.NextBlock(0) {
		name := d.Val()
		if seen[name] {
			return d.Errf("%s is set twice", name)
		}
		seen[name] = true
		args := d.RemainingArgs()
		if d.NextBlock(d.Nesting()) {
			return d.Errf("%s takes no block", name)
		}
		var err error
		switch name {
		case "enforce":
			h.Enforce, err = oneOf(d, name, args, enforceWords)
		case "robots_txt":
			h.RobotsTxt, err = oneOf(d, name, args, robotsTxtWords)
		case "robots_txt_max_age":
			if h.RobotsTxtMaxAge, err = oneArg(d, name, args, "how long robots.txt may be kept, such as 10m, or 0"); err == nil {
				if _, bad := parseRobotsAge(h.RobotsTxtMaxAge); bad != nil {
					err = d.Err(bad.Error())
				}
			}
		case "meta":
			h.Meta, err = oneOf(d, name, args, metaWords)
		case "reload":
			h.Reload, err = oneArg(d, name, args, "off, or how often to look, such as 10s")
		case "verify":
			h.Verify, err = args, nil
			if len(args) == 0 {
				err = d.Errf("verify takes off, embedded, or some of lists, dns and signatures")
			} else if _, bad := parseVerification(args, nil); bad != nil {
				err = d.Err(bad.Error())
			}
		case "verify_from":
			h.VerifyFrom, err = args, nil
			if len(args) == 0 {
				err = d.Errf("verify_from takes address ranges such as 10.0.0.0/8")
			} else if _, bad := parseVerification(nil, args); bad != nil {
				err = d.Err(bad.Error())
			}
		case "default":
			h.Default, err = oneArg(d, name, args, "the policy file for hosts without one")
		case "headers":
			h.Headers, err = headerNames(d, args)
		default:
			return d.Errf("unrecognized subdirective '%s'; robots_policy knows enforce, robots_txt, robots_txt_max_age, headers, meta, reload, verify, verify_from and default", name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func oneOf(d *caddyfile.Dispenser, name string, args, words []string) (string, error) {
	if len(args) == 1 {
		for _, w := range words {
			if args[0] == w {
				return w, nil
			}
		}
		return "", d.Errf("'%s' is no value of %s: it takes one of %s", args[0], name, strings.Join(words, ", "))
	}
	return "", d.Errf("%s takes one of %s", name, strings.Join(words, ", "))
}

func oneArg(d *caddyfile.Dispenser, name string, args []string, what string) (string, error) {
	if len(args) != 1 {
		return "", d.Errf("%s takes %s", name, what)
	}
	return args[0], nil
}

func headerNames(d *caddyfile.Dispenser, args []string) ([]string, error) {
	for i, a := range args {
		known := false
		for _, w := range headerWords {
			known = known || a == w
		}
		if !known || a == "off" && len(args) > 1 {
			return nil, d.Errf("'%s' is no value of headers: it takes off, or some of %s", a, strings.Join(headerWords[:len(headerWords)-1], ", "))
		}
		for _, b := range args[:i] {
			if a == b {
				return nil, d.Errf("headers names %s twice", a)
			}
		}
	}
	if len(args) == 0 {
		return nil, d.Errf("headers takes off, or some of %s", strings.Join(headerWords[:len(headerWords)-1], ", "))
	}
	return args, nil
}
