// SPDX-License-Identifier: Apache-2.0

package robotstxt

import (
	"fmt"
	"strings"
	"testing"
)

// Files with different meanings have different sums. The sum is the key for caching merged files.
func TestSums(t *testing.T) {
	seen := map[string]string{}
	for _, file := range []string{
		"User-agent: *\nDisallow: /a\n", "User-agent: *\nDisallow: /b\n", "User-agent: *\nAllow: /a\n", "User-agent: *\nDisallow: /%61\n", "User-agent: Bot\nDisallow: /a\n",
		"User-agent: *\nCrawl-delay: 1\nDisallow: /a\n", "User-agent: *\nCrawl-delay: 2\nDisallow: /a\n", "User-agent: *\nDisallow: /a\nContent-Signal: search=no\n",
	} {
		sum := string(Parse([]byte(file)).Sum[:])
		if seen[sum] != "" {
			t.Errorf("%q has the sum of %q", file, seen[sum])
		}
		seen[sum] = file
	}
}

// If a file has too many lines, only a part of it is read. Its sum must differ from the sum of a file that consists
// only of this part.
func TestSumOfAFileThatIsNotRead(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long with the race detector")
	}
	var file strings.Builder
	for i := range 1 << 10 {
		fmt.Fprintf(&file, "User-agent: Some%dBot\n", i)
	}
	file.WriteString(strings.Repeat("Disallow: /a\n", maxLines>>10))
	read, over := Parse([]byte(file.String())), Parse([]byte(file.String()+"Disallow: /b\n"))
	if read.TooLong || !over.TooLong || read.Sum == over.Sum {
		t.Errorf("%v %v, equal sums: %v", read.TooLong, over.TooLong, read.Sum == over.Sum)
	}
}
