// SPDX-License-Identifier: Apache-2.0

package crawlers

import (
	"errors"
	"fmt"
	"slices"

	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/ascii"
)

// Row is an entry of the policy file's `crawlers` section. It adds a crawler or changes the crawler with the same
// token. Fields that the entry leaves out are not changed.
type Row struct {
	Token string // the product token, in any letter case
	// Operator and Category are not changed if they are empty.
	Operator string
	Category Category
	Results  Results // not changed if empty
	// UserAgent is the string that identifies the crawler, if it is not the token. Recognition is not changed if
	// UserAgent is empty.
	UserAgent string
	// Follows and Purposes are not changed if they are nil.
	Follows  []string
	Purposes []string
	// IgnoresStar, ReadsMeta and RobotsOnly are not changed if they are nil.
	IgnoresStar *bool
	ReadsMeta   *bool
	RobotsOnly  *bool
	// AddressLists, ReverseDNS and WebBotAuth are not changed if they are nil. All URLs must be https URLs.
	AddressLists []string
	ReverseDNS   []string
	WebBotAuth   *string
}

// RowError describes an error in a [Row].
type RowError struct {
	Token string // token of the row
	// Field is the field's name in the policy file: token, category, user-agent, follows, purposes, results,
	// robots-only, address-lists, reverse-dns or signature-directory.
	Field string
	Err   error // the error in the field
}

func (e *RowError) Error() string { return fmt.Sprintf("%s: %s %v", e.Token, e.Field, e.Err) }

// Unwrap returns Err.
func (e *RowError) Unwrap() error { return e.Err }

// Merge returns a copy of c with the rows applied. If a row has an error, Merge returns a nil catalog and an error that
// joins a [*RowError] for each error found.
func (c *Catalog) Merge(rows ...Row) (*Catalog, error) {
	list := slices.Clone(c.crawlers)
	at := make(map[string]int, len(list)+len(rows))
	for i, cr := range list {
		at[ascii.Lower(cr.Token)] = i
	}
	fresh := make(map[string]bool, len(rows))
	var errs []error
	for _, row := range rows {
		key := ascii.Lower(row.Token)
		if fresh[key] {
			errs = append(errs, &RowError{row.Token, "token", errors.New("occurs twice; remove one entry")})
			continue
		}
		fresh[key] = true
		base := &Crawler{Token: row.Token, Honors: HonorsUnknown}
		i, known := at[key]
		if known {
			base = list[i]
		}
		cr := row.apply(base)
		errs = append(errs, checkRow(row, cr)...)
		if known {
			list[i] = cr
		} else {
			at[key] = len(list)
			list = append(list, cr)
		}
	}
	for _, row := range rows {
		for _, f := range row.Follows {
			if _, ok := at[ascii.Lower(f)]; !ok {
				errs = append(errs, &RowError{row.Token, "follows", fmt.Errorf("must name crawlers in the catalog or in this file, not %q", f)})
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	merged := newCatalog(list, c.controls, c.asOf)
	merged.base = c.withoutPolicy()
	return merged, nil
}

// apply returns a copy of base with the fields of the row applied.
func (r Row) apply(base *Crawler) *Crawler {
	c := *base
	c.FromPolicy = true
	if r.Operator != "" {
		c.Operator = r.Operator
	}
	if r.Category != "" {
		if c.Category = r.Category; c.Category != CategorySearch {
			c.Results = ""
		}
		c.Further = slices.DeleteFunc(slices.Clone(c.Further), func(k Category) bool { return k == r.Category })
	}
	if r.Results != "" {
		c.Results = r.Results
	}
	if r.UserAgent != "" {
		c.UserAgents = []string{r.UserAgent}
	}
	setList(&c.Follows, r.Follows)
	setList(&c.Purposes, r.Purposes)
	set(&c.IgnoresStar, r.IgnoresStar)
	set(&c.ReadsMeta, r.ReadsMeta)
	setList(&c.Verification.AddressLists, r.AddressLists)
	setList(&c.Verification.ReverseDNS, r.ReverseDNS)
	set(&c.Verification.WebBotAuth, r.WebBotAuth)
	if set(&c.RobotsOnly, r.RobotsOnly); r.RobotsOnly != nil && c.RobotsOnly && r.UserAgent == "" {
		c.UserAgents = nil
	}
	return &c
}

// set copies the row's value to a field. It does nothing if the row omits the value.
func set[T any](field, row *T) {
	if row != nil {
		*field = *row
	}
}

func setList(field *[]string, row []string) {
	if row != nil {
		*field = slices.Clone(row)
	}
}

// checkRow checks the row r, and the crawler c that results from this row. It returns all errors.
func checkRow(r Row, c *Crawler) (errs []error) {
	add := func(field string, err error) { errs = append(errs, &RowError{r.Token, field, err}) }
	checkFacts(c, add)
	if r.UserAgent != "" && c.RobotsOnly {
		add("robots-only", errors.New("and user-agent exclude each other: a token used only in robots.txt is not part of a User-Agent"))
	}
	for _, p := range c.Patterns() {
		if NamesBrowser(p) {
			field := "token"
			if r.UserAgent != "" {
				field = "user-agent"
			}
			add(field, fmt.Errorf("%q is in the User-Agent of browsers, so people would be mistaken for this crawler; write a name that only the crawler has", p))
		}
	}
	if r.Results != "" && c.Category != CategorySearch {
		add("results", errors.New("is only for crawlers of category search"))
	}
	if c.Category != "" && !c.Category.Valid() {
		add("category", fmt.Errorf("%q does not exist", c.Category))
	}
	return errs
}
