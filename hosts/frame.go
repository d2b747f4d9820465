package hosts

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

// needsRoot is the status of a question that was not asked, because it must be
// asked as root and root is not to be had.
const needsRoot = "needs-root"

// timedOut is the watchdog's exit code for a question it stopped.
const timedOut = 124

// reply is what an exchange brought back.
type reply struct {
	root  bool // the scripts ran as root
	whole bool // the last mark arrived: nothing was cut off
	facts plan.Facts
}

// parse takes the two streams of an exchange apart. Noise of a login shell
// before, between and after the frames is passed over: only the random mark
// counts. What a missing mark leaves open is unread, never absent.
func parse(mark, stdout, stderr string, questions []question) (reply, error) {
	r := reply{facts: make(plan.Facts, len(questions))}
	_, rest, found := strings.Cut(stdout, "\n"+mark+" host ")
	uid, rest, line := strings.Cut(rest, "\n")
	if !found || !line {
		return r, fmt.Errorf("the host's first mark did not arrive")
	}
	r.root = uid == "0"
	out, errs := frames(mark, rest), frames(mark, stderr)
	for _, q := range questions {
		seen := answer(out, errs, q.id)
		if a, ok := seen.Get(); ok && q.As == plan.Gui && a.Exit == noSession && strings.Contains(a.Stderr, sessionMissing) {
			seen = inventory.Unread[plan.Answer](lastLine(a.Stderr))
		}
		r.facts[q.id] = seen
	}
	r.whole = strings.Contains(rest, "\n"+mark+" done\n")
	return r, nil
}

// framed is one question's part of a stream.
type framed struct{ text, status string }

// frames returns the complete frames of a stream by question id: what stands between a
// begin mark and an end mark that comes next.
func frames(mark, stream string) map[string]framed {
	out := make(map[string]framed)
	marks := regexp.MustCompile(`\n`+mark+` (begin|end) (.*)\n`).FindAllStringSubmatchIndex(stream, -1)
	for i := 1; i < len(marks); i++ {
		begin, end := marks[i-1], marks[i]
		if stream[begin[2]:begin[3]] == "begin" && stream[end[2]:end[3]] == "end" {
			out[stream[begin[4]:begin[5]]] = framed{text: stream[begin[1]:end[0]], status: stream[end[4]:end[5]]}
		}
	}
	return out
}

// answer joins a question's frames of both streams.
func answer(out, errs map[string]framed, id string) inventory.Seen[plan.Answer] {
	o, ok1 := out[id]
	e, ok2 := errs[id]
	if !ok1 || !ok2 || o.status != e.status {
		return inventory.Unread[plan.Answer]("the answer was cut off")
	}
	if o.status == needsRoot {
		return inventory.Unread[plan.Answer](plan.NeedsRoot)
	}
	exit, err := strconv.Atoi(o.status)
	if err != nil {
		return inventory.Unread[plan.Answer](fmt.Sprintf("the answer ended with %q instead of an exit code", o.status))
	}
	if exit == timedOut && strings.Contains(e.text, "watchdog: stopped after") {
		return inventory.Unread[plan.Answer]("it did not answer in time and was stopped")
	}
	return inventory.Present(plan.Answer{Exit: exit, Stdout: o.text, Stderr: e.text})
}
