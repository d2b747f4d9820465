package hosts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/macfleet/macfleet/plan"
)

// The codes that are raised here.
var (
	CodeNewerRun = plan.NewCode("newer-run", plan.Warning, "another apply entered the host since; nothing was run",
		"another apply works on this host now: let it end, then run macfleet apply again")
	codeHostLocked = plan.NewCode("host-locked", plan.Warning, "another apply is at work on the host, and no cluster keeps its lock",
		"let that apply end; macfleet lock release --force RUN for one that broke off")
	codeRunNotNoted = plan.NewCode("run-not-noted", plan.Warning, "the run could not be noted on the host, so nothing was run",
		"see whether the disk is full or can be written to: macfleet doctor NAME")
)

// LockSpan is how long a run may be silent on a host that keeps a lock for it,
// because no cluster does, before the lock counts as left behind. It is longer than
// a change takes that waits for its confirmation: only there does a run that lives
// say nothing for minutes.
const LockSpan = 10 * time.Minute

// EnteredError says that a host refused a run because of another one, before it ran
// anything. It comes inside an *Error with the code "newer-run" (the other one has
// entered since; this run is over here) or "host-locked" (the other one is at work
// and no cluster keeps its lock).
type EnteredError struct {
	Code  plan.Code
	Other plan.Entered
}

// Error says who entered, and when.
func (e *EnteredError) Error() string {
	text := fmt.Sprintf("%s entered at %s (run %s, epoch %d)", e.Other.Who, e.Other.At.UTC().Format("15:04:05 MST"), e.Other.ID, e.Other.Epoch)
	if e.Code == codeHostLocked {
		text += ", and its last command began " + e.Other.Idle.String() + " ago"
	}
	return text
}

// fence is what stands before a script on this connection, and nothing where no
// run's changes go over it.
func (c *Conn) fence() string {
	if c.target.Run == nil {
		return ""
	}
	return file("scripts/fence.sh")
}

func (c *Conn) epochKey() string { return c.target.id() + " " + c.target.Run.ID }

// pass is what the fence reads before anything else does.
func (c *Conn) pass(mark string) string {
	r := c.target.Run
	if r == nil {
		return ""
	}
	keeper, epoch := "cluster", r.Epoch
	if epoch == 0 {
		given, _ := c.client.epochs.Load(c.epochKey())
		keeper = "host"
		epoch, _ = given.(int64) // 0: the host is to give one
	}
	return fmt.Sprintf("%s\n%s\n%d\n%s\n%d\n%s\n%s\n", mark, oneWord(r.ID), epoch, keeper, int(LockSpan/time.Second), oneWord(c.target.From), oneLine(r.Who))
}

// passed reads the fence's answer. The error is an *Error.
func (c *Conn) passed(mark, stdout string) error {
	if c.target.Run == nil {
		return nil
	}
	if _, rest, ok := strings.Cut(stdout, "\n"+mark+" entered "); ok {
		line, _, _ := strings.Cut(rest, "\n")
		// A number that cannot be read is as good as none: the fence looks again.
		if epoch, err := strconv.ParseInt(line, 10, 64); err == nil && epoch > 0 {
			c.client.epochs.Store(c.epochKey(), epoch)
		}
		return nil
	}
	_, rest, ok := strings.Cut(stdout, "\n"+mark+" refused ")
	if !ok {
		return nil // the answer was cut off, which is said elsewhere
	}
	line, _, _ := strings.Cut(rest, "\n")
	return c.refusedRun(line)
}

// refusedRun turns the fence's "WHY EPOCH AT NOW RUN WHO" into an error.
func (c *Conn) refusedRun(line string) *Error {
	words := strings.SplitN(line, " ", 6)
	for len(words) < 6 {
		words = append(words, "")
	}
	number := func(text string) int64 {
		n, _ := strconv.ParseInt(text, 10, 64) // what cannot be read is as good as none
		return n
	}
	at := number(words[2])
	why := &EnteredError{Code: CodeNewerRun, Other: plan.Entered{Epoch: number(words[1]), At: time.Unix(at, 0).UTC(), ID: words[4], Who: words[5],
		Idle: time.Duration(max(0, number(words[3])-at)) * time.Second}}
	switch words[0] {
	case "locked":
		why.Code = codeHostLocked
		return c.target.fails(codeHostLocked, Talking, why,
			fmt.Sprintf("let that apply end; one that broke off is taken over %s after its last command, or at once after: macfleet lock release --force %s", LockSpan, why.Other.ID))
	case "unnoted":
		return c.target.fails(codeRunNotNoted, Talking, errors.New("the run could not be noted in /etc/macfleet/runs, so nothing was changed"),
			"see whether the disk is full or can be written to: macfleet doctor "+c.target.name())
	}
	return c.target.fails(CodeNewerRun, Talking, why)
}

// refusesRun reports whether the host has let no script run.
func (e *Error) refusesRun() bool {
	return slices.Contains([]plan.Code{CodeNewerRun, codeHostLocked, codeRunNotNoted}, e.Code)
}

// Leave says that the run is done with the host. Whoever waits for it need not wait
// until it counts as dead. An error harms nobody for longer than LockSpan.
func (c *Conn) Leave(ctx context.Context) error {
	if c.target.Run == nil {
		return nil
	}
	_, err := c.own(ctx, "leave", oneWord(c.target.Run.ID))
	return err
}

// oneWord returns a text as a word without blanks.
func oneWord(text string) string {
	return cmp.Or(plain(text), "-")
}

// oneLine returns a text as a line of at most 100 bytes that any shell takes for one.
func oneLine(text string) string {
	text = strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r > '~' || r == '\\' {
			return ' '
		}
		return r
	}, text)), " ")
	if text == "" {
		return "somebody"
	}
	return text[:min(len(text), 100)]
}

// parseEntered reads "EPOCH KEEPER AT HEARD NOW LEFT RUN WHO" of the question after
// what is left. A host that says something else was entered by nobody.
func parseEntered(text string) (plan.Entered, bool) {
	words := strings.SplitN(text, " ", 8)
	if len(words) < 7 {
		return plan.Entered{}, false
	}
	var numbers [4]int64
	for i, at := range []int{0, 2, 3, 4} {
		n, err := strconv.ParseInt(words[at], 10, 64)
		if err != nil || n < 0 || n >= 1<<40 {
			return plan.Entered{}, false
		}
		numbers[i] = n
	}
	idle := time.Duration(numbers[3]-numbers[2]) * time.Second
	e := plan.Entered{Epoch: numbers[0], At: time.Unix(numbers[1], 0).UTC(), Alone: words[1] == "host", ID: words[6],
		Held: words[5] == "no" && idle < LockSpan && idle > -LockSpan, Idle: max(0, idle)}
	if len(words) == 8 {
		e.Who = words[7]
	}
	return e, e.Epoch > 0
}
