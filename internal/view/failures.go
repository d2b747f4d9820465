package view

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/rollout"
	"github.com/macfleet/macfleet/internal/runlog"
	"github.com/macfleet/macfleet/plan"
)

// failures shows what failed, each cause once, with the hosts for which it is the same.
func (t *Text) failures(all []engine.Failure, names plan.Names) {
	groups := grouped(all, func(f engine.Failure) string {
		text, fix := failure(f)
		return label(f.Action) + "\n" + general(f.Action, text) + "\n" + general(f.Action, fix)
	})
	for _, same := range groups {
		f := same[0]
		text, fix := failure(f)
		if len(same) > 1 {
			text = general(f.Action, text)
			fix = fixForAll(strings.ReplaceAll(fix, f.Action.Host, anyName), names, mapped(same, func(f engine.Failure) string { return f.Action.Host }), "")
		}
		hosts := mapped(same, func(f engine.Failure) string { return subject(names.Short(f.Action.Host)) })
		t.line(2, markFailed, strings.Join(hosts, ", ")+"  "+label(f.Action)+": "+text)
		t.below("log", logOnHost.FindString(text))
		t.below("output", "macfleet show last")
		t.below("fix", fix)
		next := given(f.Action.Host != "", "macfleet explain %s", lastPart(names.Short(f.Action.Host)))
		if len(groups) == 1 {
			next = listed("  ·  ", next, retry)
		}
		t.below("next", next)
	}
	if len(groups) > 1 {
		t.line(2, "", "next  "+retry)
	}
}

// below prints one of several facts of the line above, all in one column.
func (t *Text) below(word, text string) { t.pair(6, 7, word, text) }

// retry works on the hosts again on which the last run left something.
const retry = "macfleet apply --failed-from last"

// logOnHost finds the log that an error names.
var logOnHost = regexp.MustCompile(`/var/log/[\w./-]+\.log\b`)

// scriptEnded is how the error of a script begins, which says nothing that its action does not say.
var scriptEnded = regexp.MustCompile(`^\S+(?: on \S+)? failed with exit code (\d+): `)

// general is a text without the host's name and its server's id, so that equal causes look equal.
func general(of plan.Action, text string) string {
	for _, own := range [][2]string{{of.Host, ownName}, {of.ServerID, ownID}} {
		if own[0] != "" {
			text = strings.ReplaceAll(text, own[0], own[1])
		}
	}
	return anyID.ReplaceAllString(text, "ID")
}

// anyID finds ids that providers give, such as those of requests.
var anyID = regexp.MustCompile(`\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`)

// lastPart is what suffices of a short name in a command: fba75 of macos/fba75.
func lastPart(short string) string { return short[strings.LastIndex(short, "/")+1:] }

// failure says what went wrong, and what helps with this very error.
func failure(f engine.Failure) (text, fix string) {
	text, fix = f.Err.Error(), f.Remedy
	if x := runlog.TroubleOf(f.Err); x != nil && fix == "" {
		text, fix = fmt.Sprintf("%s  [%s]", x.Text, x.Code), x.Remedy
	}
	if at := scriptEnded.FindStringSubmatchIndex(text); at != nil && at[1] < len(text) {
		text = fmt.Sprintf("%s (exit code %s)", text[at[1]:], text[at[2]:at[3]])
	}
	return strings.Join(strings.Fields(text), " "), fix
}

// leftHosts shows the hosts that a limit of their fleet kept from starting.
func (t *Text) leftHosts(all []engine.Left, names plan.Names) {
	for _, same := range grouped(all, func(l engine.Left) string { return fmt.Sprintln(l.Fleet, l.Why, l.Of) }) {
		of := same[0]
		hosts := mapped(same, func(l engine.Left) string { return lastPart(names.Short(l.Host)) })
		t.line(2, markWaiting, fmt.Sprintf("%s of %s not started (%s): %s: %s", count(len(same), "host"), of.Fleet, of.Why, joinedUpTo(hosts, 12), whyLeft(of, names)))
		if of.Why == rollout.TrialFailed && len(of.Of) > 0 {
			name := lastPart(names.Short(of.Of[0]))
			t.below("or", fmt.Sprintf("continue without it: macfleet hold %s --until 3d --reason REASON  ·  macfleet apply --exclude name=%s", name, name))
		}
	}
}

// joinedUpTo joins names, and counts those that are too many. A single one more is shown: counting it takes as much room.
func joinedUpTo(names []string, most int) string {
	if len(names) <= most+1 {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// whyLeft says why a host was not started, with the hosts because of which it was not.
func whyLeft(l engine.Left, names plan.Names) string {
	text := cmp.Or(leftTexts[l.Why], "other hosts were worked on until the end")
	if strings.Contains(text, "%s") {
		return fmt.Sprintf(text, cmp.Or(joinedUpTo(mapped(l.Of, names.Short), 3), "a host"))
	}
	return text
}

// leftTexts say why a host was not started, where it is not that others were worked on. A %s
// stands for the hosts because of which it was not.
var leftTexts = map[rollout.Reason]string{
	rollout.Unavailable:    "max_unavailable hosts were disrupted or not Ready until the end",
	rollout.Cordoned:       "Nodes that someone cordoned use up max_unavailable (macfleet hosts shows them)",
	rollout.CanaryRunning:  "the run ended before the canary was verified",
	rollout.Soaking:        "the run ended before the canary was verified",
	rollout.CanaryFailed:   "the canary %s failed or did not stay Ready",
	rollout.TrialRunning:   "the run ended before %s was repaired, which is not Ready",
	rollout.TrialFailed:    "%s is not Ready and could not be repaired",
	rollout.StayFailed:     "%s stays and failed, so no host leaves",
	rollout.BudgetSpent:    "more hosts failed than failure_budget allows: %s",
	rollout.TooFewReady:    "fewer hosts would be Ready than min_ready requires",
	rollout.RepairsFailing: "the repairs of %s failed, so no other repair is tried",
}

// closed names the hosts that a run leaves cordoned.
func (t *Text) closed(all []engine.LeftCordoned, names plan.Names) {
	if len(all) == 0 {
		return
	}
	hosts := slices.Sorted(slices.Values(mapped(all, func(c engine.LeftCordoned) string { return names.Short(c.Host) })))
	t.line(2, markWaiting, "left cordoned, because the change was not verified: "+joinedUpTo(hosts, 12))
	t.below("fix", "macfleet apply resumes there and uncordons them when Ready")
}

// fenced names the hosts whose CI agents a run leaves without new jobs, and why.
func (t *Text) fenced(all []engine.LeftFenced, names plan.Names) {
	for _, f := range all {
		t.line(2, markWaiting, fmt.Sprintf("%s  its CI agent may still be fenced and gets no jobs then: %v", names.Short(f.Host), f.Err))
	}
	if len(all) > 0 {
		t.below("fix", "macfleet apply restores them")
	}
}

// quarantined names the hosts that a run has quarantined.
func (t *Text) quarantined(all []engine.Quarantined, names plan.Names) {
	for _, q := range all {
		t.line(2, signRefused, fmt.Sprintf("%s  quarantined after %s: its Node is cordoned, and it does not count for %s [%s]",
			names.Short(q.Host), count(q.Repairs.Failed, "failed repair"), q.Fleet, plan.CodeQuarantined))
		t.below("fix", "find the cause; when it is removed: macfleet unquarantine "+names.Short(q.Host))
	}
}

// Quarantining says for each host where its quarantine was stored or, if r is nil, removed, and why not elsewhere.
func (t *Text) Quarantining(all []engine.Quarantining, r *inventory.Repairs) {
	done, failed := "no longer quarantined", "still quarantined"
	if r != nil {
		done, failed = "quarantined ("+r.Reason+")", "not quarantined"
	}
	for _, q := range all {
		t.stored(q.Host.Name, q.Done(r != nil), done, failed, q.Marker, q.Node)
	}
}
