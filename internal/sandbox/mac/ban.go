package mac

import (
	"fmt"
	"strconv"
	"time"
)

const banSwitch = "ssh-ban-after"

// banSwitches are the uncertain behaviours of the provider's fail2ban.
func banSwitches() []Switch {
	return []Switch{{banSwitch, "after how many refused logins fail2ban bans the address, until a restart", []string{"never", "5", "3"}}}
}

// bans is what fail2ban has counted since the last start. All callers have one address.
type bans struct {
	Refused int       `json:"refused"`
	Banned  time.Time `json:"banned,omitzero"`
}

var bansRecord = inMemory("bans")

// Banned reports whether fail2ban drops every packet of the caller's address.
func (m *Machine) Banned() (bool, error) {
	data, err := m.remembers(bansRecord)
	if data == nil || err != nil {
		return false, err
	}
	var known bans
	err = m.asRoot(func(v *visit, _ *proc) error { return v.recall(bansRecord, &known) })
	return !known.Banned.IsZero(), err
}

// SetBanned bans the caller's address, or ends the ban.
func (m *Machine) SetBanned(banned bool) error {
	err := m.asRoot(func(v *visit, _ *proc) error {
		next := bans{}
		if banned {
			next.Banned = v.session.now().UTC()
		}
		return v.keep(bansRecord, next)
	})
	if err != nil {
		return fmt.Errorf("change the bans of the machine in %s: %w", m.dir, err)
	}
	if banned {
		m.lines.sever()
	}
	return nil
}

// refused counts a refused key.
func (s *session) refused() error {
	return s.visit(func(v *visit) error {
		limit, err := strconv.Atoi(v.switched(banSwitch))
		if err != nil {
			return nil // never
		}
		var known bans
		if err := v.recall(bansRecord, &known); err != nil {
			return err
		}
		if known.Refused++; known.Refused >= limit {
			known.Banned = v.session.now().UTC()
		}
		return v.keep(bansRecord, known)
	})
}
