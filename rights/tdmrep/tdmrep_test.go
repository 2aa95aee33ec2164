// SPDX-License-Identifier: Apache-2.0

package tdmrep

import (
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/crawlertest"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
)

func parse(t testing.TB, text string) *File {
	t.Helper()
	f, _, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestParse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, path, want, note string }{
		{"example of the report", `[{"location": "/", "tdm-reservation": 1}]`, "/x", "1", ""},
		{"first in sequence", `[{"location": "/a/", "tdm-reservation": 0}, {"location": "/", "tdm-reservation": 1}]`, "/a/b", "0", ""},
		{"first in sequence, the wide one", `[{"location": "/", "tdm-reservation": 1}, {"location": "/a/", "tdm-reservation": 0}]`, "/a/b", "1", ""},
		{"end", `[{"location": "/a$", "tdm-reservation": 1}]`, "/ab", "", ""},
		{"star", `[{"location": "/*.jpg", "tdm-reservation": 0}]`, "/x/y.jpg", "0", ""},
		{"policy", `[{"location": "/", "tdm-reservation": 1, "tdm-policy": "https://example.com/p"}]`, "/", "1 https://example.com/p", ""},
		{"policy without reservation is not processed", `[{"location": "/", "tdm-reservation": 0, "tdm-policy": "https://example.com/p"}]`, "/", "0", ""},
		{"text for a number", `[{"location": "/", "tdm-reservation": "0"}]`, "/", "0", ""},
		{"boolean", `[{"location": "/", "tdm-reservation": true}]`, "/", "1", ""},
		{"neither 0 nor 1", `[{"location": "/", "tdm-reservation": "no"}]`, "/", "1", "neither 0 nor 1"},
		{"no slash", `[{"location": "a/*", "tdm-reservation": 1}]`, "/a/b", "1", ""},
		{"a URL", `[{"location": "https://example.com/a/", "tdm-reservation": 1}]`, "/a/b", "1", ""},
		{"a URL as it is written", `[{"location": "https://example.com/a%2Fb|c", "tdm-reservation": 1}]`, "/a%2Fb%7Cc", "1", ""},
		{"no location", `[{"tdm-reservation": 1}]`, "/", "", "no location"},
		{"no reservation", `[{"location": "/"}]`, "/", "", "no tdm-reservation"},
		{"not an object", `[1, {"location": "/", "tdm-reservation": 1}]`, "/", "1", "not an object"},
		{"script in a policy", `[{"location": "/", "tdm-reservation": 1, "tdm-policy": "javascript:x"}]`, "/", "1", ""},
		{"byte order mark", "\ufeff[]", "/", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f, notes, err := Parse([]byte(c.text))
			if err != nil {
				t.Fatal(err)
			}
			d := f.At(c.path)
			if got := strings.TrimSpace(d.Reservation.String() + " " + d.Policy); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
			if said := strings.Join(notes, "; "); (said == "") != (c.note == "") || !strings.Contains(said, c.note) {
				t.Errorf("notes %q, want %q", said, c.note)
			}
		})
	}
	for _, text := range []string{"", "{}", "null", `[{]`, "<html>", strings.Repeat(" ", MaxFile+1)} {
		if _, _, err := Parse([]byte(text)); err == nil {
			t.Errorf("%.20q was accepted", text)
		}
	}
}

func TestTooManyRules(t *testing.T) {
	t.Parallel()
	text := "[" + strings.Repeat(`{"location": "/a", "tdm-reservation": 0},`, maxRules) + `{"location": "/b", "tdm-reservation": 1}]`
	f, notes, err := Parse([]byte(text))
	if err != nil || f.At("/b").Reservation != Reserved || f.At("/a").Reservation != NotReserved || len(notes) != 1 {
		t.Errorf("%v %v", notes, err)
	}
}

func TestMergeNeverRelaxes(t *testing.T) {
	t.Parallel()
	const seed = 5
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	locations := []string{"/", "/a", "/a/", "/a/b", "/*.jpg$", "/a/*.jpg", "/*/b", "/b*a", "/a$", "*b", "/ab"}
	file := func() *File {
		f := &File{}
		for range r.IntN(5) {
			d := Declaration{Reservation: Reservation(1 + r.IntN(2))}
			if d.Reservation == Reserved && r.IntN(2) == 0 {
				d.Policy = "https://example.com/p"
			}
			f.Rules = append(f.Rules, Rule{pathpattern.MustParse(locations[r.IntN(len(locations))]), d})
		}
		return f
	}
	loose, exactly := 0, 0
	for range 3000 {
		a, b := file(), file()
		merged, exact := a.Merge(b)
		again, err := crawlertest.ReadTDMRep(string(merged.JSON()))
		if err != nil {
			t.Fatalf("%v\n%s", err, merged.JSON())
		}
		for _, path := range []string{"/", "/a", "/a/", "/a/b", "/a/b.jpg", "/x.jpg", "/a/x.jpg", "/b", "/ba", "/bxa", "/ab", "/abb", "/x/b", "/a/b/b.jpg"} {
			want := max(a.At(path).Reservation, b.At(path).Reservation)
			got, _ := again.At(path)
			if got != want.String() && (exact || want == Reserved && got != "1") {
				t.Fatalf("%s: %q, want %q\n%s+\n%s=\n%s", path, got, want, a.JSON(), b.JSON(), merged.JSON())
			}
			if got == want.String() {
				exactly++
			} else {
				loose++
			}
		}
	}
	t.Logf("%d paths are exactly as both files say, %d are stricter", exactly, loose)
	if exactly < 10*loose {
		t.Error("too many paths are stricter than both files")
	}
}

// The locations in the two files overlap, but no location covers another, such as /*aab and /a. Nevertheless, the
// result only reserves paths that at least one of the files reserves.
func TestMergeOfCrossingLocations(t *testing.T) {
	t.Parallel()
	ours := &File{Rules: []Rule{{pathpattern.MustParse("/*aab"), Declaration{Reservation: Reserved}}}}
	theirs := &File{Rules: []Rule{
		{pathpattern.MustParse("/a"), Declaration{Reserved, "https://upstream.example/tdm"}},
		{pathpattern.MustParse("/news/*.html"), Declaration{Reservation: Reserved}},
		{pathpattern.MustParse("/"), Declaration{Reservation: NotReserved}},
	}}
	merged, exact := ours.Merge(theirs)
	if !exact {
		t.Error("the result is called stricter than necessary, although it is exact")
	}
	for path, want := range map[string]Reservation{"/": NotReserved, "/x": NotReserved, "/a": Reserved, "/x/aab": Reserved, "/news/1.html": Reserved, "/news/1": NotReserved} {
		if got := merged.At(path).Reservation; got != want {
			t.Errorf("%s: %q, want %q\n%s", path, got, want, merged.JSON())
		}
	}
}

func TestApply(t *testing.T) {
	t.Parallel()
	const url, other = "https://example.com/p", "https://other.example/p"
	for _, c := range []struct {
		name     string
		d        Declaration
		have     http.Header
		res, pol string
	}{
		{"nothing to say", Declaration{}, http.Header{ReservationField: {"0"}}, "0", ""},
		{"alone", Declaration{Reserved, url}, http.Header{}, "1", url},
		{"not reserved", Declaration{Reservation: NotReserved}, http.Header{}, "0", ""},
		{"theirs is laxer", Declaration{Reserved, ""}, http.Header{ReservationField: {"0"}, PolicyField: {other}}, "1", ""},
		{"theirs is stricter", Declaration{Reservation: NotReserved}, http.Header{ReservationField: {"1"}, PolicyField: {other}}, "1", other},
		{"two policies", Declaration{Reserved, url}, http.Header{ReservationField: {"1"}, PolicyField: {other}}, "1", url},
		{"their policy", Declaration{Reserved, ""}, http.Header{ReservationField: {"1"}, PolicyField: {other}}, "1", other},
		{"several lines", Declaration{Reservation: NotReserved}, http.Header{ReservationField: {"0", "1"}}, "1", ""},
		{"one line of several", Declaration{Reservation: NotReserved}, http.Header{ReservationField: {"0, 1"}}, "1", ""},
		{"a word", Declaration{Reservation: NotReserved}, http.Header{ReservationField: {"yes"}}, "1", ""},
		{"a broken policy", Declaration{Reserved, ""}, http.Header{ReservationField: {"1"}, PolicyField: {"not a url"}}, "1", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := c.have.Clone()
			for range 2 { // applying twice has the same result as once
				c.d.Apply(h)
				if h.Get(ReservationField) != c.res || h.Get(PolicyField) != c.pol || len(h[ReservationField]) > 1 {
					t.Errorf("%v, want %q %q", h, c.res, c.pol)
				}
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`[{"location": "/a/*", "tdm-reservation": 1, "tdm-policy": "https://example.com/p"}, {"location": "/", "tdm-reservation": 0}]`), "/a/b")
	f.Add([]byte(`[{"location": "/*?", "tdm-reservation": "x"}]`), "/a?b")
	ours := &File{Rules: []Rule{{pathpattern.MustParse("/closed/*.html"), Declaration{Reserved, ""}}, {pathpattern.All, Declaration{Reservation: NotReserved}}}}
	f.Fuzz(func(t *testing.T, data []byte, path string) {
		file, notes, err := Parse(data)
		if err != nil {
			return
		}
		if len(notes) > maxNotes || len(file.Rules) > maxRules+1 {
			t.Fatalf("%d rules, %d notes", len(file.Rules), len(notes))
		}
		path = pathpattern.NormalizePath("/" + path)
		merged, _ := ours.Merge(file)
		again := parse(t, string(merged.JSON()))
		for _, p := range []string{path, "/closed/a.html", "/"} {
			if slices.Max([]Reservation{ours.At(p).Reservation, file.At(p).Reservation}) == Reserved && again.At(p).Reservation != Reserved {
				t.Fatalf("%q is no longer reserved: %s", p, merged.JSON())
			}
		}
	})
}

// At returns the declaration of a file about a path in normal form.
func (f *File) At(path string) Declaration {
	for _, r := range f.Rules {
		if r.Location.Match(path) {
			return r.Declaration
		}
	}
	return Declaration{}
}
