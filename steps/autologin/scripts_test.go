package autologin_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/scripttest"
	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps"
	"github.com/macfleet/macfleet/steps/kcpassword"
	"github.com/macfleet/macfleet/steps/stepstest"
)

// The login user's password on a stub Mac. A shell or od could change it.
const rightPassword = `it's $(a) "test" \n`

// loginMac is a Mac with a login window.
type loginMac struct{ *scripttest.Mac }

func inShells(t *testing.T, test func(*testing.T, loginMac)) {
	t.Helper()
	scripttest.InShells(t, func(t *testing.T, shell []string) { test(t, newLoginMac(t, shell[0])) }, "dash", "bash")
}

// inTurn is inShells in one of the shells by turns.
func inTurn(t *testing.T, test func(*testing.T, loginMac)) {
	t.Helper()
	scripttest.InTurn(t, func(t *testing.T, shell []string) { test(t, newLoginMac(t, shell[0])) }, "dash", "bash")
}

// newLoginMac is a factory Mac.
func newLoginMac(t testing.TB, shell string) loginMac {
	t.Helper()
	m := loginMac{scripttest.New(t, []string{shell}, "/etc/")}
	m.Stub(scripttest.Text(t, "testdata/login.sh"), strings.Fields("base64 chmod chown defaults dscl fdesetup id killall launchctl mkdir mv pgrep rm sleep stat sudo")...)
	m.Put("/etc/hosts", "")
	m.set("clear", rightPassword)
	m.set("right", hex.EncodeToString(m.content(rightPassword)[:len(rightPassword)+1]))
	return m
}

// file writes /etc/kcpassword.
func (m loginMac) file(content []byte, mode os.FileMode) {
	m.T.Helper()
	scripttest.Write(m.T, m.etc("kcpassword"), string(content), mode)
}

func (m loginMac) set(name, text string) { m.Set(name, text+"\n") }

func (m loginMac) etc(name string) string { return m.Path("/etc/" + name) }

func (m loginMac) content(password string) []byte {
	m.T.Helper()
	content, err := kcpassword.Encode([]byte(password))
	if err != nil {
		m.T.Fatal(err)
	}
	return content
}

func (m loginMac) kicks() int { return strings.Count(m.Get("kicks"), "kick") }

// look runs the step's question and asks the step.
func (m loginMac) look() plan.Finding {
	m.T.Helper()
	s := stepstest.Step(m.T, "auto_login", loggedIn)
	a := m.Run(s.Probes()[0].Command, "")
	if a.Exit != 0 || a.Stderr != "" {
		m.T.Fatalf("exit %d: %s", a.Exit, a.Stderr)
	}
	m.harmless(a)
	f := s.Diff(plan.View{Host: stepstest.Host(loggedIn), Facts: plan.Facts{s.Probes()[0].ID: inventory.Present(a)}})
	if len(f.Unread) > 0 {
		m.T.Fatalf("unread: %+v", f.Unread)
	}
	return f
}

// harmless checks that an answer holds no byte of a password, in any form.
func (m loginMac) harmless(a plan.Answer) {
	m.T.Helper()
	var scrub secret.Scrubber
	for _, text := range []string{rightPassword, string(m.content(rightPassword)), m.Get("right"), "41 fa 37", "41fa37"} {
		scrub.Learn(text)
		if strings.Contains(a.Stdout+a.Stderr, text) {
			m.T.Errorf("the answer holds %q: %+v", text, a)
		}
	}
	if all := a.Stdout + a.Stderr; scrub.Scrub(all) != all {
		m.T.Errorf("the answer holds a secret: %+v", a)
	}
}

// perform does what a plan says, with a password that the Mac took, where one is known and asked for, else with those that it has refused.
func (m loginMac) perform(f plan.Finding, password string, refused ...string) plan.Answer {
	m.T.Helper()
	if len(f.Changes) != 1 {
		m.T.Fatalf("changes: %+v, refused: %+v", f.Changes, f.Refused)
	}
	stdin := ""
	render := func(in steps.InputFor, password string) {
		value, odd := secret.New(password)
		line, err := steps.Input(in, value)
		if err = errors.Join(odd, err); err != nil {
			m.T.Fatal(err)
		}
		stdin += line.Reveal()
	}
	c := f.Changes[0]
	for _, one := range refused {
		render(steps.InputFor{Kind: c.Input, Refused: true}, one)
	}
	if c.Input == plan.AutoLogin || c.Input == plan.AutoLoginCheck && password != "" {
		render(steps.InputFor{Kind: c.Input}, password)
	}
	a := m.Run(f.Changes[0].Command, stdin)
	m.harmless(a)
	return a
}

// finish is what the engine does after it verified a step.
func (m loginMac) finish() {
	if err := os.RemoveAll(m.etc("macfleet/pending")); err != nil {
		m.T.Fatal(err)
	}
}

// settled checks that nothing is left to do, and nothing lies around.
func (m loginMac) settled() {
	m.T.Helper()
	m.finish()
	if f := m.look(); f.Changes != nil || f.Refused != nil || f.Facts != stepstest.WantedBy(m.T, "auto_login", loggedIn) {
		m.T.Errorf("left: %+v", f)
	}
	if _, err := os.Stat(m.etc("kcpassword.macfleet")); err == nil {
		m.T.Error("the password's new file lies around")
	}
	if m.Get("ended") != "" {
		m.T.Error("a session was ended")
	}
}

// TestAutoLoginScripts goes from a state over the step's own plan to a Mac with a session. Where macOS protects loginwindow from
// kickstart -k, it is ended and must come back; one that does not run is started. While its session comes up, no code of launchctl print
// ends the wait.
func TestAutoLoginScripts(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		mac   func(loginMac)
		code  string
		kicks int
		keeps bool // the bytes of the file
	}{
		{"factory", func(loginMac) {}, "auto-login-off", 1, false},
		{"sealed", func(m loginMac) { m.ready("<sealed"); m.seal() }, "sealed-kcpassword", 1, false},
		{"dead", func(m loginMac) { m.ready(rightPassword); m.set("dead", "") }, "dead-loginwindow", 1, true},
		{"nobody", func(m loginMac) { m.ready(rightPassword) }, "no-gui-session", 1, true},
		{"another writer's padding", func(m loginMac) {
			m.ready(rightPassword)
			m.file(append(m.content(rightPassword)[:len(rightPassword)+1], 1, 2, 3), 0o600)
			m.set("user", "anna")
		}, "auto-login-other-user", 1, true},
		{"hexadecimal text", func(m loginMac) {
			m.ready(rightPassword)
			m.file([]byte(strings.ToUpper(hex.EncodeToString(m.content(rightPassword)))+"\n"), 0o600)
			m.set("user", "anna")
			m.set("session", "m1")
		}, "auto-login-other-user", 0, true},
		{"another password, the session is up", func(m loginMac) { m.ready("other"); m.set("user", "anna"); m.set("session", "m1") }, "auto-login-other-user", 0, false},
		{"the file is gone, the session is up", func(m loginMac) { m.set("user", "m1"); m.set("session", "m1") }, "kcpassword-missing", 0, false},
		{"no end, the session is up", func(m loginMac) {
			m.ready("")
			m.file(m.content("a1234567890")[:11], 0o600)
			m.set("session", "m1")
		}, "kcpassword-unterminated", 0, false},
		{"an empty file", func(m loginMac) { m.ready(""); m.file(nil, 0o600) }, "kcpassword-unterminated", 1, false},
		{"the empty password", func(m loginMac) { m.ready(""); m.file([]byte{0x7d, 1}, 0o600) }, "kcpassword-empty", 1, false},
		{"anyone may read the file", func(m loginMac) {
			m.ready(rightPassword)
			m.set("session", "m1")
			m.file(m.content(rightPassword), 0o644)
		}, "kcpassword-mode", 0, true},
		{"another's file", func(m loginMac) { m.ready(rightPassword); m.set("session", "m1"); m.set("owner", "m1:staff") }, "kcpassword-mode", 0, true},
		{"protected, error 1", func(m loginMac) { m.ready(rightPassword); m.set("protected", "1") }, "no-gui-session", 1, true},
		{"protected, no process", func(m loginMac) { m.ready(rightPassword); m.set("protected", "150"); m.set("dead", "") }, "dead-loginwindow", 1, true},
		{"protected, and odd codes", func(m loginMac) { m.ready(rightPassword); m.set("protected", "150"); m.set("odd-codes", "") }, "no-gui-session", 1, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			inShells(t, func(t *testing.T, m loginMac) {
				tc.mac(m)
				before, _ := os.ReadFile(m.etc("kcpassword"))
				f := m.look()
				if codeOf(f) != tc.code {
					t.Fatalf("%+v", f)
				}
				if a := m.perform(f, rightPassword); a.Exit != 0 || a.Stderr != "" {
					t.Fatalf("%+v", a)
				}
				after, err := os.ReadFile(m.etc("kcpassword"))
				if err != nil || bytes.Equal(before, after) != tc.keeps || m.kicks() != tc.kicks || m.Get("session") != "m1" {
					t.Errorf("%v, %d kicks, file % x became % x", err, m.kicks(), before, after)
				}
				raw := after
				if binary, err := hex.DecodeString(strings.TrimSpace(string(after))); err == nil {
					raw = binary
				}
				if !bytes.HasPrefix(raw, m.content(rightPassword)[:len(rightPassword)+1]) { // with the byte that ends it
					t.Errorf("the file holds % x", after)
				}
				m.settled()
			})
		})
	}
}

// ready is a Mac set up with a password, with no one logged in.
func (m loginMac) ready(password string) {
	m.set("user", "m1")
	if password != "" {
		m.file(m.content(password), 0o600)
	}
}

func (m loginMac) seal() {
	m.file([]byte("\x41\xfa\x37\x42\xbe\xd9\xb9\xd4\xa3\xb9\x1f"), 0o600)
}

// TestAutoLoginScriptFails: each failure has its code and a last line that says what was found; no session is ended and no token left.
func TestAutoLoginScriptFails(t *testing.T) {
	t.Parallel()
	right := func(m loginMac) { m.ready(rightPassword) }
	for _, tc := range []struct {
		name     string
		mac      func(loginMac) // before the plan
		then     func(loginMac) // between plan and apply
		password string
		exit     int
		says     string // a pattern of the last line
		kicks    int
		next     string // code of the next plan
	}{
		{"a wrong password in the file", func(m loginMac) { m.ready("wrong") }, nil, "", 79, "/etc/kcpassword for m1", 0, "stale-kcpassword"},
		{"a wrong password that cannot be tried", func(m loginMac) { m.ready("wrong"); m.set("free", "") }, nil, "", 77, "sealed the file.* m1", 1, "sealed-kcpassword"},
		{"a locked account", func(m loginMac) { m.ready(rightPassword); m.set("locked", "") }, nil, "", 80, "account of m1 is locked", 0, "no-gui-session"},
		{"odd words", func(m loginMac) { m.ready(rightPassword); m.set("odd", "") }, nil, "", 80, "/etc/kcpassword.*sudo: account validation failure", 0, "no-gui-session"},
		{"a wrong password given", func(loginMac) {}, nil, "wrong", 77, "sealed the file.* m1", 1, "sealed-kcpassword"},
		{"sealed in the meantime", right, loginMac.seal, "", 73, "/etc/kcpassword.* m1", 0, "sealed-kcpassword"},
		{"someone logged in in the meantime", right, func(m loginMac) { m.set("screen", "anna") }, "", 74, "anna.*screen", 0, "foreign-session"},
		{"a machine started in the meantime", right, func(m loginMac) { m.set("work", "411") }, "", 75, "loginwindow is not restarted.*virtual machine.*pgrep.* 0", 0, "work-in-dead-session"},
		{"launchctl refuses", right, func(m loginMac) { m.set("protected", "37") }, "", 76, "kickstart .* 37; restart the Mac while it is idle", 0, "no-gui-session"},
		{"loginwindow is protected and stays away", right, func(m loginMac) { m.set("protected", "150"); m.set("away", "") }, "", 76,
			"kickstart -k .* 150.*launchd.*killall; restart the Mac while it is idle", 0, "dead-loginwindow"},
		{"loginwindow is protected, and another account is switched out", right, func(m loginMac) {
			m.set("protected", "150")
			m.set("switched-out", "412")
			m.set("window", "99")
		}, "", 76, "kickstart -k .* 150.*killall would end other.* sessions.*restart the Mac while it is idle", 0, "no-gui-session"},
		{"its session came in the meantime", right, func(m loginMac) { m.set("session", "m1") }, "", 0, "", 0, ""},
		{"verified before, sealed in the meantime", func(m loginMac) { m.ready(rightPassword); m.tried("verified 0") }, loginMac.seal, "", 73,
			"/etc/kcpassword.* m1", 0, "sealed-kcpassword"},
		{"no session comes", right, func(m loginMac) { m.set("slow", "") }, "", 78, "session of m1 .*30 s.*/etc/kcpassword is intact", 1, "no-gui-session"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			inTurn(t, func(t *testing.T, m loginMac) {
				tc.mac(m)
				f := m.look()
				if tc.then != nil {
					tc.then(m)
				}
				a := m.perform(f, tc.password)
				stderr := strings.TrimSpace(a.Stderr)
				if a.Exit != tc.exit || !regexp.MustCompile(tc.says).MatchString(stderr[strings.LastIndex(stderr, "\n")+1:]) || m.kicks() != tc.kicks {
					t.Errorf("exit %d, %d kicks: %s", a.Exit, m.kicks(), stderr)
				}
				next := m.look()
				if _, err := os.Stat(m.etc("macfleet/pending/auto_login")); err == nil {
					t.Error("a token is left, though it is known how the kick ended")
				}
				if codeOf(next) != tc.next || m.Get("ended") != "" {
					t.Errorf("the next plan says %s; %+v", codeOf(next), next)
				}
			})
		})
	}
}

// TestAutoLoginLockedScreen: a session that would come up locked is seen while it is up, and nothing is restarted.
func TestAutoLoginLockedScreen(t *testing.T) {
	t.Parallel()
	inTurn(t, func(t *testing.T, m loginMac) {
		m.ready(rightPassword)
		if a := m.perform(m.look(), ""); a.Exit != 0 {
			t.Fatal(a.Stderr)
		}
		proven := m.look()
		m.set("locked-screen", "0")
		if f := m.look(); f.Facts != proven.Facts || len(f.Changes) > 0 {
			t.Errorf("unlocked is another fact: %+v", f)
		}
		m.set("locked-screen", "1")
		f := m.look()
		if len(f.Changes) != 1 || f.Changes[0].Reason.Code.String() != "session-comes-up-locked" || f.Changes[0].Disruption != 0 || f.Facts == proven.Facts {
			t.Fatalf("%+v", f)
		}
		if a := m.perform(f, ""); a.Exit != 0 || m.kicks() != 1 {
			t.Errorf("exit %d, %d kicks: %s", a.Exit, m.kicks(), a.Stderr)
		}
		if f := m.look(); f.Facts != proven.Facts || len(f.Changes) > 0 {
			t.Errorf("left %+v", f)
		}
	})
}

// TestAutoLoginStale: a password in the file that is not the account's is never shown to loginwindow, is
// tried once at most, and makes way for the right one as soon as that is known.
func TestAutoLoginStale(t *testing.T) {
	t.Parallel()
	for _, up := range []bool{true, false} {
		for _, tc := range []struct {
			name, known string
			refused     []string
			tries       int // of the password in the file
			succeeds    bool
		}{
			{"the right one is known", rightPassword, nil, 0, true},
			{"none is known", "", nil, 1, false},
			{"the stale one is known, and was refused", "", []string{"other", "stale"}, 0, false},
			{"another one is known, and was refused", "", []string{"other"}, 1, false},
		} {
			t.Run(fmt.Sprint(tc.name, ", session ", up), func(t *testing.T) {
				t.Parallel()
				inTurn(t, func(t *testing.T, m loginMac) {
					m.ready("stale")
					m.set("set", "99999999999.5")
					if up {
						m.set("session", "m1")
					}
					f := m.look()
					if code := f.Changes[0].Reason.Code.String(); (code == "kcpassword-unverified") != up {
						t.Errorf("it says %s", code)
					}
					a := m.perform(f, tc.known, tc.refused...)
					if tries := strings.Count(m.Get("tries"), "try"); tries != tc.tries || (a.Exit == 0) != tc.succeeds {
						t.Errorf("%d tries, %+v", tries, a)
					}
					if !tc.succeeds {
						if f = m.look(); f.Changes[0].Reason.Code.String() != "stale-kcpassword" || m.kicks() > 0 {
							t.Errorf("%d kicks, then %+v", m.kicks(), f)
						}
						if a = m.perform(f, rightPassword); a.Exit != 0 {
							t.Errorf("%+v", a)
						}
					}
					if want := map[bool]int{false: 1}[up]; m.kicks() != want || strings.Count(m.Get("tries"), "try") != tc.tries {
						t.Errorf("%d kicks, tries %q", m.kicks(), m.Get("tries"))
					}
					m.settled()
					m.file(m.content("by hand"), 0o600)
					if f = m.look(); len(f.Changes) != 1 || f.Changes[0].Reason.Code.String() != "kcpassword-unverified" {
						t.Errorf("after an edit by hand: %+v", f)
					}
				})
			})
		}
	}
}

// TestAutoLoginScriptKilled kills the script behind each of its calls, runs what the next plan says, and finds a Mac that was kicked once.
func TestAutoLoginScriptKilled(t *testing.T) {
	t.Parallel()
	scripttest.Need(t, "dash", "bash")
	whole := newLoginMac(t, "dash")
	first := whole.look()
	whole.ForgetCalls()
	whole.perform(first, rightPassword)
	calls := whole.Tools()
	if len(calls) < 10 || len(calls) > 60 {
		t.Fatalf("%d calls", len(calls))
	}
	for n, shell := range scripttest.Places(t, calls, "dash", "bash") {
		t.Run(shell[0]+" after "+strconv.Itoa(n), func(t *testing.T) {
			t.Parallel()
			m := newLoginMac(t, shell[0])
			m.KillAfter(n)
			if a := m.perform(first, rightPassword); a.Exit != -1 {
				t.Fatalf("it was not killed: %+v", a)
			}
			if file, err := os.Stat(m.etc("kcpassword.macfleet")); err == nil && file.Size() > 0 && file.Mode().Perm() != 0o600 {
				t.Errorf("others may read the password: the mode is %v", file.Mode())
			}
			m.KillAt(0)
			if f := m.look(); f.Facts != stepstest.WantedBy(t, "auto_login", loggedIn) {
				if a := m.perform(f, rightPassword); a.Exit != 0 {
					t.Fatalf("%+v", a)
				}
			}
			if m.kicks() != 1 {
				t.Errorf("%d kicks", m.kicks())
			}
			m.settled()
		})
	}
}

// TestAutoLoginHostileUser: a name is one word to every tool, whatever it holds.
func TestAutoLoginHostileUser(t *testing.T) {
	t.Parallel()
	inTurn(t, func(t *testing.T, m loginMac) {
		m.set("session", "m1")
		for _, name := range []string{"o'hara", `"q"`, "a  b", "$(touch gone)", "`touch gone`", "*", `back\slash\n`, "-n", "größe", "a;b|c&d>e"} {
			h := stepstest.Host(loggedIn)
			h.User = name
			s := stepstest.StepOf(t, "auto_login", h)
			look := func() plan.Finding {
				p := s.Probes()[0]
				return s.Diff(plan.View{Host: h, Facts: plan.Facts{p.ID: inventory.Present(m.Run(p.Command, ""))}})
			}
			if a := m.perform(look(), rightPassword); a.Exit != 0 || a.Stderr != "" || m.Get("user") != name {
				t.Errorf("%q became %q: %+v", name, m.Get("user"), a)
			}
			m.finish()
			if f := look(); f.Facts != s.Wanted() || len(f.Unread) > 0 {
				t.Errorf("%q: %+v", name, f)
			}
		}
		if files, err := os.ReadDir(m.etc("")); err != nil || len(files) != 3 {
			t.Errorf("%v, %v", files, err)
		}
	})
}

func TestAutoLoginRemovalScript(t *testing.T) {
	t.Parallel()
	inShells(t, func(t *testing.T, m loginMac) {
		m.ready(rightPassword)
		m.set("session", "m1")
		scripttest.Write(t, m.etc("kcpassword.macfleet"), string(m.content(rightPassword)), 0o600)
		remove := plan.Command{Name: "auto_login-remove", Script: scripttest.Text(t, "scripts/auto_login-remove.sh"), Args: []string{"m1"}}
		for range 2 { // the second time nothing is left
			if a := m.Done(remove, ""); a.Stderr != "" {
				t.Fatalf("%+v", a)
			}
		}
		left, err := os.ReadDir(m.etc(""))
		if err != nil || len(left) != 1 || m.Get("user") != "" || m.Get("session") != "m1" || m.kicks() > 0 {
			t.Errorf("%v %v, user %q, session %q", left, err, m.Get("user"), m.Get("session"))
		}
		m.set("user", "anna")
		if m.Done(remove, ""); m.Get("user") != "anna" {
			t.Error("another's automatic login was ended")
		}
	})
}
