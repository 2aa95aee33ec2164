// SPDX-License-Identifier: Apache-2.0

// Package block reads the options in a block of a Caddyfile.
package block

import (
	"slices"
	"strconv"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
)

// Option is an option of a block.
type Option struct {
	name, takes string
	set         func(value string) (must string) // if the value is not valid, returns what it must be; otherwise ""
	read        func(d *caddyfile.Dispenser) error
}

// Value returns an option with one argument. takes describes the argument in error messages, such as "a file". If the
// argument is valid, set stores it and returns "". Otherwise, set returns a text that completes the message "must be
// …".
func Value(name, takes string, set func(value string) (must string)) Option {
	return Option{name: name, takes: takes, set: set}
}

// Text returns an option that stores its argument in *to. The argument may be any text.
func Text(name, takes string, to *string) Option {
	return Value(name, takes, func(value string) string {
		*to = value
		return ""
	})
}

// Number returns an option whose argument is a number. The number must not be less than least or more than most, and
// the option stores it in *to. must describes the valid numbers for the error message.
func Number[T ~int | ~int64](name string, to *T, least, most int64, must string) Option {
	return Value(name, "a number", func(value string) string {
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || n < least || n > most {
			return must
		}
		*to = T(n)
		return ""
	})
}

// Duration returns an option that stores a duration in *to. least is the shortest valid duration. must describes the
// valid durations for the error message.
func Duration(name string, to *caddy.Duration, least time.Duration, must string) Option {
	return Value(name, "a duration", func(value string) string {
		d, err := caddy.ParseDuration(value)
		if err != nil || d < least {
			return must
		}
		*to = caddy.Duration(d)
		return ""
	})
}

// Flag returns an option without arguments, which sets *to to true.
func Flag(name string, to *bool) Option {
	return Option{name: name, read: func(d *caddyfile.Dispenser) error {
		if *to = true; d.NextArg() {
			return d.Errf("%s takes no arguments", name)
		}
		return nil
	}}
}

// Nested returns an option that reads its own arguments and block.
func Nested(name string, read func(d *caddyfile.Dispenser) error) Option {
	return Option{name: name, read: read}
}

// Read reads the block of a directive or option, if there is one. d must be at the last of the arguments that precede
// the block.
func Read(d *caddyfile.Dispenser, options ...Option) error {
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		name, value := d.Val(), ""
		i := slices.IndexFunc(options, func(o Option) bool { return o.name == name })
		if i < 0 {
			names := make([]string, len(options))
			for i, o := range options {
				names[i] = o.name
			}
			return d.Errf("unrecognized option '%s': must be %s", name, english.List(names, "or"))
		}
		o := options[i]
		if o.read != nil {
			if err := o.read(d); err != nil {
				return err
			}
			continue
		}
		if !d.AllArgs(&value) {
			return d.Errf("%s takes one argument, %s", name, o.takes)
		}
		if must := o.set(value); must != "" {
			return d.Errf("invalid %s %q: must be %s", name, value, must)
		}
	}
	return nil
}
