// SPDX-License-Identifier: Apache-2.0

package console

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/caddyserver/caddy/v2"

	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
)

// A role defines what a person may do on the pages of the console. Each role includes all permissions of the roles
// listed before it.
type role int

const (
	stranger  role = iota // may do nothing
	viewer                // may see the pages, and check a draft
	editor                // may also save, approve and discard drafts
	publisher             // may also publish
)

// roles maps the names in the option "roles" to roles.
var roles = map[string]role{"viewer": viewer, "editor": editor, "publisher": publisher}

// A person is the sender of a request. The name is empty if the sender is not known.
type person struct {
	Name string
	role role
}

// localName is the recorded name of all people who use the console's address on this machine.
const localName = "localhost"

// defaultUser is the placeholder with the user name from Caddy's authentication.
const defaultUser = "{http.auth.user.id}"

// who returns the sender of a request. On a site, the sender's name is the value of the placeholder in the option
// "user". The name comes from a request header only if the option names this header.
func (s *server) who(r *http.Request, o *Console) person {
	if s.local {
		return person{localName, publisher}
	}
	p := person{}
	if replacer, ok := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer); ok {
		p.Name = strings.TrimSpace(replacer.ReplaceAll(o.user(), ""))
	}
	if len(p.Name) > 200 || strings.ContainsFunc(p.Name, unicode.IsControl) {
		p.Name = ""
	}
	if len(o.Roles) == 0 {
		p.role = viewer
	}
	for name, people := range o.Roles {
		everybody := slices.Contains(people, "*") && (p.Name != "" || roles[name] == viewer)
		if everybody || p.Name != "" && slices.Contains(people, p.Name) {
			p.role = max(p.role, roles[name])
		}
	}
	return p
}

// lacks returns "" if the sender of the request has at least the role r, and the console may change the policy.
// Otherwise it returns a message with the reason why the sender cannot make changes.
func (v *view) lacks(r role) string {
	switch {
	case !v.options.Write:
		return "You cannot change the policy here. To allow changes, add the line “write” to the block of the option console in the Caddyfile."
	case v.person.Name == "":
		return "These pages are read-only, because you are not signed in. To add a sign-in, put basic_auth or forward_auth before robots_policy_console."
	case v.person.role >= r:
		return ""
	}
	need := map[role]string{editor: "an editor or a publisher", publisher: "a publisher"}[r]
	what := map[role]string{editor: "save, approve and discard drafts", publisher: "publish drafts"}[r]
	if people := v.options.Roles[map[role]string{editor: "editor", publisher: "publisher"}[r]]; len(people) > 0 {
		need += " (" + english.Some(people, 2) + ")"
	}
	return fmt.Sprintf("You are signed in as %s. Only %s may %s. The roles are set in the Caddyfile, in the block of the option console.", shorten(v.person.Name), need, what)
}

// SignedIn returns a text for every page of a console that a site serves. The text names the signed-in person, and says
// whether the pages are read-only for this person. At a local address, SignedIn returns "".
func (v *view) SignedIn() string {
	switch {
	case v.local:
		return ""
	case v.person.Name == "":
		return "You are not signed in: these pages are read-only."
	case v.lacks(editor) != "":
		return "Signed in as " + shorten(v.person.Name) + ", with read access."
	}
	return "Signed in as " + shorten(v.person.Name) + map[role]string{editor: ", an editor.", publisher: ", a publisher."}[v.person.role]
}

// tokenKey is the key for the tokens in forms that change policies or drafts. Each process creates a new key.
var tokenKey = func() (key [32]byte) {
	_, _ = rand.Read(key[:]) // rand.Read never fails
	return key
}()

const tokenPeriod = 6 * time.Hour

// token returns the value that a form must send back to change policies or drafts. Pages of other sites cannot read
// this value, so they cannot forge the form. The value depends on the version of the policy and on the name of the
// person. It changes after each tokenPeriod.
func token(at time.Time, version, name string) string {
	mac := hmac.New(sha256.New, tokenKey[:])
	fmt.Fprintf(mac, "%d %s %s", at.Unix()/int64(tokenPeriod.Seconds()), version, name)
	return hex.EncodeToString(mac.Sum(nil))
}

// mayWrite returns an error if the sender of the request does not have at least the role r. It also returns an error if
// the form comes from another origin, or if the token in the form is out of date.
func (v *view) mayWrite(r role, version string) error {
	if why := v.lacks(r); why != "" {
		return failed(http.StatusForbidden, "%s", why)
	}
	origin, err := url.Parse(v.r.Header.Get("Origin"))
	site := v.r.Header.Get("Sec-Fetch-Site")
	if err != nil || origin.Host == "" || origin.Host != v.r.Host || site != "" && site != "same-origin" {
		return failed(http.StatusForbidden, "This form was not sent from a page of the console.")
	}
	sent := []byte(v.r.PostFormValue("token"))
	if !hmac.Equal(sent, []byte(token(v.Now, version, v.person.Name))) && !hmac.Equal(sent, []byte(token(v.Now.Add(-tokenPeriod), version, v.person.Name))) {
		return failed(http.StatusForbidden, "This page was open for too long, so nothing was saved or published. Choose “Check”, and then the same button again.")
	}
	return nil
}
