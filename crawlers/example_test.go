// SPDX-License-Identifier: Apache-2.0

package crawlers_test

import (
	"fmt"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
)

// A crawler is recognized by its product token, which must be a separate word.
func ExampleRecognizer_Recognize() {
	catalog, err := crawlers.Default()
	if err != nil {
		fmt.Println(err)
		return
	}
	r := crawlers.NewRecognizer(catalog.Patterns())
	for _, userAgent := range []string{
		"Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot)",
		"Mozilla/5.0 (compatible; NotGPTBot/1.0)",
	} {
		i, ok := r.Recognize(userAgent)
		if !ok {
			fmt.Println("not a known crawler")
			continue
		}
		c := catalog.At(i)
		fmt.Println(c.Token, "of", c.Operator, "is for", c.Category)
	}
	// Output:
	// GPTBot of OpenAI is for ai-training
	// not a known crawler
}
