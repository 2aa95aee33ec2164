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

	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
)

// Ask asks the questions in a terminal.
func Ask(ctx context.Context, in io.Reader, out io.Writer) (a Answers, err error) {
	q := &questioner{in: bufio.NewScanner(in), out: out}
	fmt.Fprint(out, "Six questions; Enter takes the answer in brackets.\n\n")
	q.ask("1. Is there a robots.txt already? Its file, URL or host name", "none", func(s string) error {
		if words := splitAnswers(s); len(words) == 1 {
			a.SetFrom(words[0])
		} else if len(words) > 1 {
			return fmt.Errorf("invalid answer %q: must be one file, URL or host name, or none", s)
		}
		return nil
	})
	defaults := []string{"yes", "no", "yes"}
	if a.From != "" {
		defaults = []string{"as in robots.txt", "as in robots.txt", "as in robots.txt"}
	}
	q.askYesNo("2. May search engines find the site?", defaults[0], &a.Search)
	q.askYesNo("3. May AI be trained with it?", defaults[1], &a.Training)
	q.askYesNo("4. May AI products answer questions from it?", defaults[2], &a.AIAnswers)
	if a.AIAnswers == No {
		q.askYesNo("   "+english.Some(answerEngines(), 4)+" are search engines that feed such answers. May they read it?", "yes", &a.AISearch)
	}
	q.ask("5. Paid or private sections that crawlers may not read, such as /members/", "none", func(s string) error {
		a.Closed = nil
		return a.AddClosed(s)
	})
	q.ask("6. Staging or test hosts that search engines must not list, such as staging.example.com", "none", func(s string) error {
		a.Staging = nil
		return cmp.Or(a.AddStaging(s), a.checkStaging())
	})
	fmt.Fprintln(out)
	if q.err == nil {
		q.err = ctx.Err()
	}
	return a, q.err
}

// questioner asks questions until it runs out of answers.
type questioner struct {
	in  *bufio.Scanner
	out io.Writer
	err error
}

// ask asks until take accepts the answer.
func (q *questioner) ask(question, def string, take func(string) error) {
	for q.err == nil {
		fmt.Fprintf(q.out, "%s [%s]: ", question, def)
		if !q.in.Scan() {
			if q.err = q.in.Err(); q.err == nil {
				q.err = errors.New("the input ended before the last question; nothing was written")
			}
			return
		}
		err := take(strings.TrimSpace(q.in.Text()))
		if err == nil {
			return
		}
		fmt.Fprintf(q.out, "   %v\n", err)
	}
}

func (q *questioner) askYesNo(question, def string, to *Answer) {
	q.ask(question+" yes or no", def, func(s string) (err error) {
		*to, err = ParseAnswer(s)
		return err
	})
}
