// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"encoding/json"
	"slices"
	"testing"
	"time"
)

type orders struct {
	Counted Known[int] `gap:"count" what:"nothing was counted" close:"count them"`
	Extra   Known[int] `gap:"-"`
}

var enough = Register("test-enough", func(s orders) Finding {
	n, _ := s.Counted.Get()
	return Finding{
		Fails: n > 3, Text: "At most three", Unjudged: "It cannot be judged whether there are at most three",
		Matters: func(g Gap) bool { return g.Crawler != "Harmless" },
	}
})

func TestJudge(t *testing.T) {
	cut, harmless := Gap{Name: "cut-lines", What: "2 lines were cut"}, Gap{Name: "cut-lines", What: "a line", Crawler: "Harmless"}
	for _, test := range []struct {
		name     string
		subject  orders
		accepted []string
		want     Outcome
		gaps     int
	}{
		{"all was seen", orders{Counted: Read(2, Coverage{})}, nil, Holds, 0},
		{"a finding", orders{Counted: Read(4, Coverage{})}, nil, Fails, 0},
		{"a finding beside a gap", orders{Counted: Read(4, Coverage{Gaps: []Gap{cut}})}, nil, Fails, 0},
		{"a field that was not read", orders{}, nil, CannotBeJudged, 1},
		{"a gap that matters", orders{Counted: Read(2, Coverage{Gaps: []Gap{cut}})}, nil, CannotBeJudged, 1},
		{"a gap of an optional field", orders{Counted: Read(2, Coverage{}), Extra: Read(0, Coverage{Gaps: []Gap{cut}})}, nil, CannotBeJudged, 1},
		{"a gap that cannot matter", orders{Counted: Read(2, Coverage{Gaps: []Gap{harmless}})}, nil, Holds, 0},
		{"an accepted gap", orders{Counted: Read(2, Coverage{Gaps: []Gap{cut}})}, []string{"cut-lines"}, Holds, 0},
		{"another gap was accepted", orders{}, []string{"cut-lines"}, CannotBeJudged, 1},
	} {
		c := Judge(enough, test.subject, test.accepted...)
		if c.Outcome() != test.want || len(c.Gaps()) != test.gaps {
			t.Errorf("%s: %v with %d gaps, want %v with %d", test.name, c.Outcome(), len(c.Gaps()), test.want, test.gaps)
		}
		if c.Holds() != (c.Class() == "fine") {
			t.Errorf("%s: %v is shown as %q", test.name, c.Outcome(), c.Class())
		}
	}
	if zero := (Claim{}); zero.Holds() || zero.Outcome() != CannotBeJudged || zero.Class() == "fine" {
		t.Error("a claim that nobody judged holds")
	}
}

func TestClaimInWords(t *testing.T) {
	c := Judge(enough, orders{Counted: Read(2, Coverage{Gaps: []Gap{{Name: "cut-lines", What: "2 lines were cut", Close: "replay the whole file"}}})})
	if want := []string{"2 lines were cut; replay the whole file; or accept the gap cut-lines"}; !slices.Equal(c.Lines(), want) {
		t.Errorf("%q, want %q", c.Lines(), want)
	}
	got, err := json.Marshal(c)
	want := `{"claim":"test-enough","outcome":"cannot be judged","text":"It cannot be judged whether there are at most three","gaps":[{"name":"cut-lines","what":"2 lines were cut","close":"replay the whole file"}]}`
	if err != nil || string(got) != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
}

func TestUnite(t *testing.T) {
	day := func(n int) time.Time { return time.Date(2026, 11, n, 0, 0, 0, 0, time.UTC) }
	c := Unite(Coverage{2, day(3), day(5), []string{"b"}, []string{"one"}, []Gap{{Name: "x"}}}, Coverage{3, day(2), day(4), []string{"a", "b"}, nil, nil}, Coverage{})
	if c.Items != 5 || !c.From.Equal(day(2)) || !c.To.Equal(day(5)) || !slices.Equal(c.Hosts, []string{"a", "b"}) || len(c.Servers) != 1 || len(c.Gaps) != 1 {
		t.Errorf("%+v", c)
	}
}

func TestRegisterTwice(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("two judges of one claim")
		}
	}()
	Register("test-enough", func(orders) Finding { return Finding{} })
}

func TestAll(t *testing.T) {
	for _, r := range All() {
		if r.Name == "test-enough" && slices.Equal(r.Fields, []string{"Counted", "Extra"}) {
			return
		}
	}
	t.Errorf("%+v", All())
}
