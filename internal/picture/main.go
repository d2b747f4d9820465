// Command picture runs a command on a terminal and draws what it prints, with its colours, as
// SVG: docs/images/plan.sh makes the picture of README.md with it.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
)

func main() {
	columns := flag.Int("columns", 100, "width of the terminal")
	title := flag.String("title", "", "text of the first line, after the prompt")
	flag.Parse()
	printed, err := onTerminal(*columns, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "picture:", err)
		os.Exit(1)
	}
	lines := append([]string{"\x1b[2m$\x1b[0m " + *title}, strings.Split(strings.TrimRight(printed, "\r\n"), "\n")...)
	fmt.Print(draw(lines, *columns))
}
