package main

import (
	"crypto/rand"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/macfleet/macfleet/plan"
)

// newRun names what this process does: its record and its log bear the name, and so
// does all that it leaves behind.
func newRun(now time.Time) plan.Run {
	return plan.Run{ID: strings.ToLower(rand.Text()[:idLength]), Who: who(os.Getenv), Started: now}
}

// idLength is how many letters and digits, of 32 each, keep two runs apart.
const idLength = 8

// who says who runs this: a person at a machine, or a job of GitHub Actions and who
// started it.
func who(env func(string) string) string {
	if env("GITHUB_ACTIONS") == "true" {
		return fmt.Sprintf("%s (GitHub Actions, %s run %s)", env("GITHUB_ACTOR"), env("GITHUB_REPOSITORY"), env("GITHUB_RUN_ID"))
	}
	return caller()
}
