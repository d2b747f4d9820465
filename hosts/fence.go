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

// Codes of hosts that refuse a run.
var (
	codeNewerRun = plan.NewCode("newer-run", plan.Warning, "a newer apply is working on the host; nothing was run",
		"wait for the other apply to end, then apply again")
	codeHostLocked = plan.NewCode("host-locked", plan.Warning, "another apply is working on the host (there is no cluster to hold its lock)",
		"wait for that apply to end; if it crashed: macfleet lock release --force RUN")
	codeRunNotNoted = plan.NewCode("run-not-noted", plan.Warning, "the run could not be recorded on the host, so nothing was run",
		"check whether the disk is full or read-only: macfleet doctor NAME")
)

// LockSpan is the expiry of a lock that a host keeps because there is no cluster, counted from
// the run's last command. It exceeds the wait for a change's confirmation, the longest silence
// of a live run.
const LockSpan = 10 * time.Minute

// fence returns the script that precedes every script of a run, or "" on a read-only connection.
func (c *Conn) fence() string {
	if c.target.Run == nil {
		return ""
	}
	return file("scripts/fence.sh")
}

func (c *Conn) epochKey() string { return c.target.id() + " " + c.target.Run.ID }

// pass returns the fence's input.
func (c *Conn) pass(mark string) string {
	r := c.target.Run
	if r == nil {
		return ""
	}
	keeper, epoch := "cluster", r.Epoch
	if epoch == 0 {
		given, _ := c.client.epochs.Load(c.epochKey())
		keeper = "host"
		epoch, _ = given.(int64) // 0: the host assigns one
	}
	return fmt.Sprintf("%s\n%s\n%d\n%s\n%d\n%s\n%s\n", mark, oneWord(r.ID), epoch, keeper, int(LockSpan/time.Second), oneWord(c.target.From), oneLine(r.Who))
}

// passed parses the fence's answer. The error is an *Error.
func (c *Conn) passed(mark, stdout string) error {
	said := regexp.MustCompile(`\n` + mark + ` (entered|refused) (.*)\n`).FindStringSubmatch(stdout)
	if c.target.Run == nil || said == nil { // no fence, or a truncated answer, which is reported elsewhere
		return nil
	}
	if said[1] == "refused" {
		return c.refusedRun(said[2])
	}
	// A malformed number gives 0: the fence assigns an epoch again.
	if epoch, err := strconv.ParseInt(said[2], 10, 64); err == nil && epoch > 0 {
		c.client.epochs.Store(c.epochKey(), epoch)
	}
	return nil
}

// refusedRun turns the fence's refusal, "WHY EPOCH AT NOW RUN WHO", into an error.
func (c *Conn) refusedRun(line string) *Error {
	var why, id string
	var epoch, at, now int64
	_, _ = fmt.Sscan(line, &why, &epoch, &at, &now, &id) // malformed values stay zero
	entered := fmt.Sprintf("%s has been working here since %s (run %s, epoch %d)", wordsFrom(5, line), time.Unix(at, 0).UTC().Format("15:04:05 MST"), id, epoch)
	switch why {
	case "locked":
		idle := time.Duration(max(0, now-at)) * time.Second
		return c.target.fails(codeHostLocked, Talking, fmt.Errorf("%s; last command %s ago", entered, idle),
			fmt.Sprintf("wait for that apply to end; if it crashed, its lock expires %s after its last command, or run: macfleet lock release --force %s", LockSpan, id))
	case "unnoted":
		return c.target.fails(codeRunNotNoted, Talking, errors.New("the run could not be recorded in /etc/macfleet/runs, so nothing was changed"),
			"check whether the disk is full or read-only: macfleet doctor "+c.target.name())
	}
	return c.target.fails(codeNewerRun, Talking, errors.New(entered))
}

// refusesRun reports whether the host refused to run any script.
func (e *Error) refusesRun() bool {
	return slices.Contains([]plan.Code{codeNewerRun, codeHostLocked, codeRunNotNoted}, e.Code)
}

// Leave notes on the host that the run is done with it, so that others do not wait for the
// expiry. An error is harmless: LockSpan passes.
func (c *Conn) Leave(ctx context.Context) error {
	if c.target.Run == nil {
		return nil
	}
	_, err := c.own(ctx, "leave", oneWord(c.target.Run.ID))
	return err
}

// oneWord returns a text without blanks.
func oneWord(text string) string {
	return cmp.Or(plain(text), "-")
}

// oneLine returns a text as one line of at most 100 safe bytes.
func oneLine(text string) string {
	text = strings.TrimSpace(noWord.ReplaceAllString(text, " "))
	return cmp.Or(text[:min(len(text), 100)], "somebody")
}

var noWord = regexp.MustCompile(`[^!-\[\]-~]+`)

// parseEntered parses "EPOCH KEEPER AT HEARD NOW LEFT RUN WHO" of left.sh. ok is false for
// anything else: no run has entered the host.
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

// wordsFrom returns the rest of a line after its first n words.
func wordsFrom(n int, line string) string {
	words := strings.SplitN(line, " ", n+1)
	return strings.Join(words[min(n, len(words)):], "")
}
