// Command macfleet plans, applies and watches fleets of rented Mac minis.
package main

import (
	"context"
	"os"
	"runtime/debug"
	_ "time/tzdata" // small images of CI have no zones, and windows name one

	"github.com/macfleet/macfleet/internal/app"
)

// gcPercent is how much garbage may be on top of what is in use, in percent. What
// hosts answered is kept until the end, so the usual 100 would double the memory of a
// big fleet for a fifth of the processor's time.
const gcPercent = 50

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	os.Exit(run(context.Background(), os.Args[1:], app.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
}
