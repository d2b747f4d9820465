package hosts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/macfleet/macfleet/plan"
)

// The codes that are raised here.
var (
	codeNewerRun = plan.NewCode("newer-run", plan.Warning, "another apply entered the host since; nothing was run",
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
	said := regexp.MustCompile(`\n` + mark + ` (entered|refused) (.*)\n`).FindStringSubmatch(stdout)
	if c.target.Run == nil || said == nil { // there was no fence, or the answer was cut off, which is said elsewhere
		return nil
	}
	if said[1] == "refused" {
		return c.refusedRun(said[2])
	}
	// A number that cannot be read is as good as none: the fence looks again.
	if epoch, err := strconv.ParseInt(said[2], 10, 64); err == nil && epoch > 0 {
		c.client.epochs.Store(c.epochKey(), epoch)
	}
	return nil
}

// refusedRun turns the fence's "WHY EPOCH AT NOW RUN WHO" into an error.
func (c *Conn) refusedRun(line string) *Error {
	var why, id string
	var epoch, at, now int64
	_, _ = fmt.Sscan(line, &why, &epoch, &at, &now, &id) // what cannot be read is as good as none
	entered := fmt.Sprintf("%s entered at %s (run %s, epoch %d)", wordsFrom(5, line), time.Unix(at, 0).UTC().Format("15:04:05 MST"), id, epoch)
	switch why {
	case "locked":
		idle := time.Duration(max(0, now-at)) * time.Second
		return c.target.fails(codeHostLocked, Talking, fmt.Errorf("%s, and its last command began %s ago", entered, idle),
			fmt.Sprintf("let that apply end; one that broke off is taken over %s after its last command, or at once after: macfleet lock release --force %s", LockSpan, id))
	case "unnoted":
		return c.target.fails(codeRunNotNoted, Talking, errors.New("the run could not be noted in /etc/macfleet/runs, so nothing was changed"),
			"see whether the disk is full or can be written to: macfleet doctor "+c.target.name())
	}
	return c.target.fails(codeNewerRun, Talking, errors.New(entered))
}

// refusesRun reports whether the host has let no script run.
func (e *Error) refusesRun() bool {
	return slices.Contains([]plan.Code{codeNewerRun, codeHostLocked, codeRunNotNoted}, e.Code)
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
	text = strings.TrimSpace(noWord.ReplaceAllString(text, " "))
	return cmp.Or(text[:min(len(text), 100)], "somebody")
}

var noWord = regexp.MustCompile(`[^!-\[\]-~]+`)

// parseEntered reads "EPOCH KEEPER AT HEARD NOW LEFT RUN WHO" of the question after
// what is left. A host that says something else was entered by nobody.
func parseEntered(text string) (plan.Entered, bool) {
	var keeper, left, id string
	var epoch, at, heard, now int64
	n, _ := fmt.Sscan(text, &epoch, &keeper, &at, &heard, &now, &left, &id)
	if n < 7 || epoch == 0 || slices.ContainsFunc([]int64{epoch, at, heard, now}, func(n int64) bool { return n < 0 || n >= 1<<40 }) {
		return plan.Entered{}, false
	}
	idle := time.Duration(now-heard) * time.Second
	return plan.Entered{Epoch: epoch, At: time.Unix(at, 0).UTC(), Alone: keeper == "host", ID: id, Who: wordsFrom(7, text),
		Held: left == "no" && idle < LockSpan && idle > -LockSpan, Idle: max(0, idle)}, true
}

// wordsFrom returns what follows the first n words of a line.
func wordsFrom(n int, line string) string {
	words := strings.SplitN(line, " ", n+1)
	return strings.Join(words[min(n, len(words)):], "")
}
