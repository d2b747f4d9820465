package plan

import (
	"slices"
)

// stage is one check of a conversation.
type stage struct {
	name   string
	failed string   // why nothing else was asked, where it failed
	at     []string // codes of the troubles that end a conversation here: all before is well
	early  []string // those of this stage that may come before anything is dialled
}

// stages are the checks of a conversation in their order. docs/connections.md
// lists the codes.
func stages() []stage {
	return []stage{
		{"connection", "there is no connection", []string{"unreachable", "jump-lost"}, []string{"ssh-config", "jump-failed"}},
		{"ssh", "no ssh server answers", []string{"no-ssh-answer"}, nil},
		{"host key", "the host key is in doubt", []string{"wrong-host-key"}, []string{"damaged-pin"}},
		{"authentication", "no login is possible", []string{"key-refused"}, []string{"no-key"}},
		{"answers", "the conversation broke off", []string{"connection-lost"}, nil},
	}
}

// connection tells how far the conversation came. Only what was looked at is
// well: the rest nobody knows, and nothing at all where the trouble's code is a
// strange one.
func (e *examination) connection() {
	all := stages()
	failed, passed := len(all), len(all)
	var t *Trouble
	if e.seen.Trouble != nil {
		t = diagnosed(*e.seen.Trouble, e.placed.server)
		failed, passed = -1, 0
		for i, s := range all {
			switch {
			case slices.Contains(s.at, t.Code):
				failed, passed = i, i
			case slices.Contains(s.early, t.Code):
				failed = i
			}
		}
	}
	for i, s := range all {
		switch {
		case i < passed:
			e.ok(s.name, "%s", e.well(s.name))
		case i == failed:
			e.bad(s.name, CheckProblem, t.Remedy, "%s", t.Text)
		case failed >= 0:
			e.bad(s.name, CheckUnknown, "", "not asked: %s", all[failed].failed)
		case i == 0:
			e.bad(s.name, CheckUnknown, t.Remedy, "%s", t.Text)
		default:
			e.bad(s.name, CheckUnknown, "", "not known either")
		}
	}
}

// well says what is well at a stage.
func (e *examination) well(stage string) string {
	switch stage {
	case "connection":
		if e.seen.Path == "" { // nobody says which path it was that ended later
			return "the host answers"
		}
		// No address: the ssh configuration or the tailnet may have had another
		// one than the inventory.
		return "the host answers (path: " + e.seen.Path + ")"
	case "ssh":
		return "an ssh server answers"
	case "host key":
		switch {
		case e.seen.Fingerprint == "" && e.pinned:
			return "it is the pinned one"
		case e.seen.Fingerprint == "":
			return "none is pinned yet, so any is taken"
		case e.seen.Pinned:
			return e.seen.Fingerprint + ", the pinned one"
		}
		return e.seen.Fingerprint + ", not pinned yet: an apply that works on the host pins it"
	case "authentication":
		return "user " + e.cfg.SSH.User + " was let in"
	}
	return "all questions were answered in one command"
}
