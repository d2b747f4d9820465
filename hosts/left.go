package hosts

import (
	"strconv"
	"strings"
	"time"

	"github.com/macfleet/macfleet/plan"
)

// left is the question after what earlier runs left behind.
const left = "host.left"

// enterLeft reads the answer: lines of "pending STEP", "undone KEY VALUE" and
// "refused SEAL OUTCOME TRIES TIME" and
// "run EPOCH …". The answer itself is dropped: what a refused
// password is known by stands in it, and facts are kept and shown.
func enterLeft(seen *plan.HostSeen) {
	answer, ok := seen.Facts.Get(left).Get()
	delete(seen.Facts, left)
	if !ok {
		return
	}
	var undone strings.Builder
	for line := range strings.Lines(answer.Stdout) {
		kind, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch kind {
		case "pending":
			seen.Pending = append(seen.Pending, plan.StepID(rest))
		case "undone":
			undone.WriteString(rest + "\n")
		case "run":
			if e, ok := parseEntered(rest); ok && (seen.Entered == nil || e.Epoch > seen.Entered.Epoch) {
				seen.Entered = &e
			}
		case "refused":
			seen.Refusals = append(seen.Refusals, parseRefusal(rest))
		}
	}
	if u, ok := parseUndone(undone.String()); ok {
		seen.Undone = &u
	}
}

// parseRefusal reads a line of the record. One that cannot be read is there too: it
// is like no password.
func parseRefusal(text string) plan.Refusal {
	words := strings.Fields(text)
	if len(words) != 4 {
		return plan.Refusal{}
	}
	tries, terr := strconv.Atoi(words[2])
	at, aerr := strconv.ParseInt(words[3], 10, 64)
	if terr != nil || aerr != nil {
		return plan.Refusal{}
	}
	return plan.Refusal{Seal: words[0], Refused: words[1] == "refused", Tries: tries, At: time.Unix(at, 0).UTC()}
}

// parseUndone reads what the host noted when it took a change back: a key and its
// value a line. ok is false when there is nothing, or nothing that names a step.
func parseUndone(text string) (u plan.Undone, ok bool) {
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch key {
		case "step":
			u.Step = plan.StepID(value)
		case "when":
			if at, err := strconv.ParseInt(value, 10, 64); err == nil {
				u.At = time.Unix(at, 0).UTC()
			}
		case "why":
			u.Why = value
		case "exit":
			u.Exit, _ = strconv.Atoi(value) // a number that cannot be read is as good as none
		}
	}
	return u, u.Step != ""
}
