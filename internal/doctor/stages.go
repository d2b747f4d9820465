package doctor

import (
	"slices"

	"github.com/macfleet/macfleet/plan"
)

// stage is one check of a conversation.
type stage struct {
	name   string
	well   string   // what is said where it is well
	failed string   // why nothing else was asked, where it failed
	at     []string // codes of the troubles that end a conversation here: all before is well
	early  []string // those of this stage that may come before anything is dialled
}

// stages are the checks of a conversation in their order. docs/connections.md
// lists the codes.
func (e *examination) stages() []stage {
	seen := e.of.Seen
	// No address: the ssh configuration or the tailnet may have had another one than the
	// inventory. Of a conversation that ended later nobody says which path it was.
	answers, key := "the host answers", seen.Fingerprint+", not pinned yet: an apply that works on the host pins it"
	if seen.Path != "" {
		answers += " (path: " + seen.Path + ")"
	}
	switch {
	case seen.Fingerprint == "" && e.pinned:
		key = "it is the pinned one"
	case seen.Fingerprint == "":
		key = "none is pinned yet, so any is taken"
	case seen.Pinned:
		key = seen.Fingerprint + ", the pinned one"
	}
	return []stage{
		{"connection", answers, "there is no connection", []string{"unreachable", "jump-lost"}, []string{"ssh-config", "jump-failed"}},
		{"ssh", "an ssh server answers", "no ssh server answers", []string{"no-ssh-answer"}, nil},
		{"host key", key, "the host key is in doubt", []string{"wrong-host-key"}, []string{"damaged-pin"}},
		{"authentication", "user " + e.cfg.SSH.User + " was let in", "no login is possible", []string{"key-refused"}, []string{"no-key"}},
		{"answers", "all questions were answered in one command", "the conversation broke off", []string{"connection-lost"}, nil},
	}
}

// connection tells how far the conversation came. Only what was looked at is
// well: the rest nobody knows, and nothing at all where the trouble's code is a
// strange one.
func (e *examination) connection() {
	all := e.stages()
	failed, passed := len(all), len(all)
	var t *plan.Trouble
	if e.of.Seen.Trouble != nil {
		t = plan.Diagnosed(*e.of.Seen.Trouble, e.cfg.Vendor(), e.of.Server)
		failed, passed = -1, 0
		for i, s := range all {
			switch {
			case slices.Contains(s.at, t.Code.String()):
				failed, passed = i, i
			case slices.Contains(s.early, t.Code.String()):
				failed = i
			}
		}
	}
	for i, s := range all {
		switch {
		case i < passed:
			e.ok(s.name, "%s", s.well)
		case i == failed:
			e.bad(s.name, Problem, t.Remedy, "%s", t.Text)
		case failed >= 0:
			e.bad(s.name, Unknown, "", "not asked: %s", all[failed].failed)
		case i == 0:
			e.bad(s.name, Unknown, t.Remedy, "%s", t.Text)
		default:
			e.bad(s.name, Unknown, "", "not known either")
		}
	}
}
