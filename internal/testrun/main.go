// Command testrun chooses tests by their source, so that no list of them is kept by hand, and counts
// what they cost. The Makefile and .ci/run use it.
package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/macfleet/macfleet/internal/gosource"
)

const usage = `usage: testrun shared       prints the -run flag and the packages of the tests that take a share
       testrun race         prints the packages that start goroutines and have tests
       testrun cached       prints the packages whose results Go may reuse
       testrun uncached     prints the other packages with tests
       testrun exec PROGRAM ARGS...  runs a test (go test -exec) and notes its CPU time in $TESTRUN_CPU
       testrun bill FILE    compares the noted times with .ci/budget`

func main() {
	code, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

func run(args []string) (code int, err error) {
	switch {
	case len(args) > 1 && args[0] == "exec":
		return measured(args[1:], os.Getenv("TESTRUN_CPU"))
	case len(args) == 2 && args[0] == "bill":
		return billed(os.Stdout, args[1])
	case len(args) != 1:
		return 2, fmt.Errorf("%s", usage)
	}
	files, err := gosource.Read(".")
	if err != nil {
		return 1, err
	}
	var out []string
	switch args[0] {
	case "shared":
		out = shared(files)
	case "race":
		out = racing(files)
	case "cached":
		out, _ = cached(files)
	case "uncached":
		_, out = cached(files)
	default:
		return 2, fmt.Errorf("%s", usage)
	}
	fmt.Println(strings.Join(out, " "))
	return 0, nil
}
