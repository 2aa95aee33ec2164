// SPDX-License-Identifier: Apache-2.0

package firstpolicy

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Terminal is the terminal where Ask asks its questions.
type Terminal struct {
	In  io.Reader
	Out io.Writer

	// Open reads a robots.txt; see [Answers.SetFrom].
	Open func(name string) ([]byte, error)

	// Show shows the policy for the answers before the policy is written.
	Show func(a Answers) error
	File string // name of the file to write
}

// question is a question in the terminal. The question is repeated until the function take accepts the answer.
type question struct {
	text string
	def  func() string // the answer if the user only presses Enter
	skip func() bool   // whether to skip the question; nil means never
	take func(answer string) error
}

const (
	asInRobots = "as in robots.txt"
	goBack     = "back"
)

// Ask asks the questions in a terminal, until the policy can be written. It checks each answer immediately. With
// "back" the user returns to the previous question.
func Ask(ctx context.Context, term Terminal) (a Answers, err error) {
	in := bufio.NewScanner(term.In)
	fmt.Fprintf(term.Out, "Press Enter for the answer in brackets. %q goes back to the previous question, and \"quit\" stops. No file is written before the last answer.\n\n", goBack)
	questions := a.questions(&term)
	for i, step := 0, 1; i < len(questions); i += step {
		q := &questions[i]
		if q.skip != nil && q.skip() {
			continue
		}
		step = 1
		for {
			fmt.Fprintf(term.Out, "%s [%s]: ", q.text, q.def())
			if !in.Scan() {
				return a, cmp.Or(in.Err(), errors.New("the input ended before the last question; nothing was written"))
			}
			if err := ctx.Err(); err != nil {
				return a, err
			}
			answer := strings.TrimSpace(in.Text())
			if i > 0 && (strings.EqualFold(answer, goBack) || answer == "<") {
				step = -1
				break
			}
			if strings.EqualFold(answer, "quit") || strings.EqualFold(answer, "exit") {
				return a, errStop
			}
			if answer == "" && i < len(questions)-1 {
				break
			}
			err := q.take(answer)
			if err == nil {
				break
			}
			if errors.Is(err, errStop) {
				return a, err
			}
			fmt.Fprintf(term.Out, "   %v\n", err)
		}
	}
	return a, nil
}

var errStop = errors.New("nothing was written")

func (a *Answers) questions(term *Terminal) (all []question) {
	all = append(all, question{
		text: "If the site already has a robots.txt: its file or URL, or the host name of the site",
		def:  func() string { return cmp.Or(a.From, "none") },
		take: func(s string) error {
			switch words := splitAnswers(s); {
			case len(words) == 0:
				a.From, a.Robots = "", nil
				return nil
			case len(words) == 1 && !strings.EqualFold(s, "yes") && !strings.EqualFold(s, "y"):
				return a.SetFrom(words[0], term.Open)
			}
			return fmt.Errorf("%q is not the location of a robots.txt: write a file, a URL or a host name, such as www.example.com, or the word none", s)
		},
	})
	for t := range Topics {
		topic, to := &Topics[t], &a.To[t]
		q := question{text: topic.Question + " yes or no", def: func() string {
			if a.From != "" {
				return cmp.Or(to.String(), asInRobots)
			}
			return cmp.Or(to.String(), topic.Default.String())
		}, take: func(s string) (err error) {
			if strings.EqualFold(s, asInRobots) {
				s = ""
			}
			*to, err = ParseAnswer(s)
			return err
		}}
		if topic.After != Topic(t) {
			q.skip = func() bool {
				if skip := cmp.Or(a.To[topic.After], Topics[topic.After].Default) != No || a.From != "" && a.To[topic.After] == Unanswered; skip {
					*to = Unanswered
					return true
				}
				return false
			}
		}
		all = append(all, q)
	}
	var shown error
	return append(all, question{
		text: "Paid or private sections that crawlers may not read, such as /members/",
		def:  func() string { return cmp.Or(strings.Trim(fmt.Sprint(a.Closed), "[]"), "none") },
		take: func(s string) error {
			a.Closed = nil
			return a.AddClosed(s)
		},
	}, question{
		text: "Staging or test hosts that search engines must not list, such as staging.example.com",
		def:  func() string { return cmp.Or(strings.Trim(fmt.Sprint(a.Staging), "[]"), "none") },
		take: func(s string) error {
			a.Staging = nil
			if err := a.AddStaging(s); err != nil {
				return err
			}
			_, err := a.complete()
			return err
		},
	}, question{
		skip: func() bool {
			shown = term.Show(*a)
			return false
		},
		text: fmt.Sprintf("Write %s? yes, no or %s", term.File, goBack),
		def:  func() string { return map[bool]string{true: "yes", false: goBack}[shown == nil] },
		take: func(s string) error {
			answer, err := ParseAnswer(cmp.Or(s, "yes"))
			switch {
			case answer == No:
				return errStop
			case err == nil && shown != nil:
				return fmt.Errorf("%w; answer %s to change something", shown, goBack)
			}
			return err
		},
	})
}
