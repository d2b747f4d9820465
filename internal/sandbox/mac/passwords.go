package mac

import (
	"crypto/subtle"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// PasswordTry is one check of the login user's password. The tried password is not recorded.
type PasswordTry struct {
	At     time.Time `json:"at"`
	Tool   string    `json:"tool"` // sudo, dscl or loginwindow
	Right  bool      `json:"right"`
	Locked bool      `json:"locked,omitempty"` // refused because the account was locked
}

// account is the directory's changeable record of the login user.
type account struct {
	Password string        `json:"password,omitempty"` // "" = the one of the new machine
	Set      time.Time     `json:"set,omitzero"`       // when the password was set; zero: when the machine was created
	Tally    int           `json:"tally,omitempty"`    // wrong tries since the last correct one
	Tries    []PasswordTry `json:"tries,omitempty"`
}

// maxTriesKept limits the record: a loop of tries must not fill the disk.
const maxTriesKept = 1000

const (
	lockoutSwitch = "lockout-after"
	setTimeSwitch = "password-set-time"
)

// sudoSwitches are the uncertain behaviours of sudo and the account policy.
func sudoSwitches() []Switch {
	return []Switch{
		{lockoutSwitch, "how many wrong passwords lock the account", []string{"10", "5"}},
		{sudoersSwitch, "the effect of a file with a syntax error in sudoers.d", []string{sudoersSkipped, sudoersFatal}},
		{lectureSwitch, "whether sudo lectures a user before the first correct password", []string{"once", "never"}},
		{setTimeSwitch, "whether the directory reports when a password was set", []string{"told", "not-told"}},
		{wrongPasswordSwitch, "exit code of 'dscl . -authonly' for a wrong password", []string{"78", "10", "1"}},
	}
}

func (v *visit) account() (account, error) {
	var a account
	err := v.recall(inFirmware("account"), &a)
	if a.Password == "" {
		a.Password = v.session.id.Password
	}
	return a, err
}

func (v *visit) keepAccount(a account) error {
	if a.Password == v.session.id.Password {
		a.Password = ""
	}
	return v.keep(inFirmware("account"), a)
}

// authenticate checks a user's password for a tool. Only the login user has one. Every wrong password
// counts, and beyond the limit the correct one is refused too, until someone resets the tally. Fleets
// have found their Macs in this state after a night of retries.
func (v *visit) authenticate(tool string, who user, password string) (bool, error) {
	if who.uid != loginUID {
		return false, nil
	}
	a, err := v.account()
	if err != nil {
		return false, err
	}
	try := PasswordTry{At: v.session.now().UTC(), Tool: tool, Locked: v.locked(a),
		Right: subtle.ConstantTimeCompare([]byte(password), []byte(a.Password)) == 1}
	ok := try.Right && !try.Locked
	if ok {
		a.Tally = 0
	} else if !try.Right {
		a.Tally++
	}
	a.Tries = append(a.Tries, try)
	a.Tries = a.Tries[max(0, len(a.Tries)-maxTriesKept):]
	return ok, v.keepAccount(a)
}

// setPassword changes a password and records the time, as the directory does.
func (v *visit) setPassword(a *account, password string) {
	a.Password, a.Set = password, v.session.now().UTC()
}

// locked reports whether too many wrong passwords were tried.
func (v *visit) locked(a account) bool { return a.Tally >= v.lockoutAfter() }

func (v *visit) lockoutAfter() int {
	n, err := strconv.Atoi(v.switched(lockoutSwitch))
	if err != nil {
		panic(err) // the values are constants of this file
	}
	return n
}

// changeAccount changes the login user's account without any tool.
func (m *Machine) changeAccount(what string, change func(*visit, *account)) error {
	err := m.asRoot(func(v *visit, _ *proc) error {
		a, err := v.account()
		if err != nil {
			return err
		}
		change(v, &a)
		return v.keepAccount(a)
	})
	if err != nil {
		return fmt.Errorf("%s on the machine in %s: %w", what, m.dir, err)
	}
	return nil
}

func (m *Machine) lookAtAccount(look func(*visit, account)) error {
	err := m.asRoot(func(v *visit, _ *proc) error {
		a, err := v.account()
		look(v, a)
		return err
	})
	if err != nil {
		return fmt.Errorf("read the account of the machine in %s: %w", m.dir, err)
	}
	return nil
}

// PasswordTries returns every check of the login user's password so far, the latest last.
func (m *Machine) PasswordTries() ([]PasswordTry, error) {
	var tries []PasswordTry
	err := m.lookAtAccount(func(_ *visit, a account) { tries = slices.Clone(a.Tries) })
	return tries, err
}

// Password returns the login user's present password.
func (m *Machine) Password() (string, error) {
	var password string
	err := m.lookAtAccount(func(_ *visit, a account) { password = a.Password })
	return password, err
}

// SetPassword changes the login user's password, as a person at the machine does.
func (m *Machine) SetPassword(password string) error {
	return m.changeAccount("change the password", func(v *visit, a *account) { v.setPassword(a, password) })
}

// Locked reports whether too many wrong passwords have locked the account.
func (m *Machine) Locked() (bool, error) {
	var locked bool
	err := m.lookAtAccount(func(v *visit, a account) { locked = v.locked(a) })
	return locked, err
}

// SetLocked locks the account as too many wrong passwords do, without any in the record, or unlocks
// it.
func (m *Machine) SetLocked(locked bool) error {
	return m.changeAccount("lock or unlock the account", func(v *visit, a *account) {
		if a.Tally = 0; locked {
			a.Tally = v.lockoutAfter()
		}
	})
}
