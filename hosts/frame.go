package hosts

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

// needsRoot is the status of a probe that was skipped because it needs root.
const needsRoot = "needs-root"

// timedOut is the watchdog's exit code for a probe that it stopped.
const timedOut = 124

// reply is the result of an exchange.
type reply struct {
	root  bool // the scripts ran as root
	whole bool // the last mark arrived: nothing was truncated
	facts plan.Facts
}

// parse splits the two streams of an exchange into frames by the random mark. Other output of
// a login shell is ignored. If a mark is missing, the answer is unread, never absent.
func parse(mark, stdout, stderr string, questions []question) (reply, error) {
	r := reply{facts: make(plan.Facts, len(questions))}
	_, rest, found := strings.Cut(stdout, "\n"+mark+" host ")
	uid, rest, line := strings.Cut(rest, "\n")
	if !found || !line {
		return r, fmt.Errorf("the host did not start macfleet's script")
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

// framed is one probe's part of a stream.
type framed struct{ text, status string }

// frames returns the complete frames of a stream by probe id: the text between a begin mark and
// the next end mark.
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

// answer joins a probe's frames of both streams.
func answer(out, errs map[string]framed, id string) inventory.Seen[plan.Answer] {
	o, ok1 := out[id]
	e, ok2 := errs[id]
	if !ok1 || !ok2 || o.status != e.status {
		return inventory.Unread[plan.Answer](plan.AnswerTruncated)
	}
	if o.status == needsRoot {
		return inventory.Unread[plan.Answer](plan.NeedsRoot)
	}
	exit, err := strconv.Atoi(o.status)
	if err != nil {
		return inventory.Unread[plan.Answer](fmt.Sprintf("the answer has %q in place of an exit code", o.status))
	}
	if exit == timedOut && strings.Contains(e.text, "watchdog: stopped after") {
		return inventory.Unread[plan.Answer](plan.ProbeTimedOut)
	}
	return inventory.Present(plan.Answer{Exit: exit, Stdout: o.text, Stderr: e.text})
}
