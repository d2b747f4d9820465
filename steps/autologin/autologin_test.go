package autologin_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/maintest"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps/stepstest"
)

func TestMain(m *testing.M) { maintest.Main(m) }

var loggedIn = fleet.Spec{AutoLogin: &fleet.AutoLogin{}}

const loginProbe = "auto_login.state/m1"

// macLogin is a Mac as the step's probe sees it. The zero value is a factory Mac without a user at its screen.
type macLogin struct {
	vault, managed, forbidden bool
	user                      string // whom loginwindow logs in
	file                      string // "" = absent
	access                    string // "" = root:wheel 600
	screen                    string // "" = no user's
	session, dead             bool
	work                      string
	proof                     string // the file, the password and the note, as the host says; "" = it says nothing
}

// fine is a Mac that automatic login has set up.
var fine = macLogin{user: "m1", file: "present", screen: "m1", session: true}

func (m macLogin) but(edit func(*macLogin)) macLogin {
	edit(&m)
	return m
}

func noKey(key string) string {
	return "2026-11-21 10:00:00.000 defaults[411:5012] \nThe domain/default pair of (x, " + key + ") does not exist\n"
}

func (m macLogin) answer() plan.Answer {
	var b strings.Builder
	choose := func(on bool, yes, no string) string { return map[bool]string{true: yes, false: no}[on] }
	line := func(name string, exit int, text string) { fmt.Fprintf(&b, "%s\n== %s %d\n", text, name, exit) }
	end := func() plan.Answer { return stepstest.Said(b.String() + "\n== end\n") }
	setting := func(name, value string) {
		if value == "" {
			line(name, 1, strings.TrimSuffix(noKey(name), "\n"))
		} else {
			line(name, 0, value)
		}
	}
	line("filevault", 0, choose(m.vault, "FileVault is On.", "FileVault is Off."))
	setting("managed", choose(m.managed, "1", ""))
	setting("forbidden", choose(m.forbidden, "1", ""))
	setting("user", m.user)
	line("kcpassword", 0, choose(m.file == "", "absent", m.file+" "+cmp.Or(m.access, "root:wheel 600")))
	if m.proof != "" {
		line("proof", 0, m.proof)
	}
	line("console", 0, cmp.Or(m.screen, "root"))
	if m.session {
		line("session", 0, "Aqua")
		return end()
	}
	line("session", 113, "Could not find domain for user gui: 501")
	line("loginwindow", 0, choose(m.dead, "dead", "alive"))
	line("work", map[bool]int{true: 1}[m.work == ""], m.work) // pgrep's code where it finds nothing
	return end()
}

func (m macLogin) facts() plan.Facts {
	return plan.Facts{loginProbe: inventory.Present(m.answer())}
}

func (m macLogin) look(t testing.TB) plan.Finding {
	t.Helper()
	return judged(t, m.facts())
}

func judged(t testing.TB, facts plan.Facts) plan.Finding {
	t.Helper()
	return stepstest.Step(t, "auto_login", loggedIn).Diff(plan.View{Host: stepstest.Host(loggedIn), Facts: facts})
}

// codeOf is the code of what refuses a finding's change, or of the change.
func codeOf(f plan.Finding) string {
	switch {
	case f.Refused != nil:
		return f.Refused.Code.String()
	case len(f.Changes) > 0:
		return f.Changes[0].Reason.Code.String()
	}
	return ""
}

// edited are the facts of an answer in which a text was replaced.
func edited(t testing.TB, answer, from, to string) plan.Facts {
	t.Helper()
	if !strings.Contains(answer, from) {
		t.Fatalf("the answer does not hold %q", from)
	}
	return plan.Facts{loginProbe: inventory.Present(stepstest.Said(strings.ReplaceAll(answer, from, to)))}
}

func TestAutoLogin(t *testing.T) {
	t.Parallel()
	down := fine.but(func(m *macLogin) { m.session, m.screen = false, "" })
	for _, tc := range []struct {
		name string
		mac  macLogin
		want string // the change's code and arguments, or what refuses it, and warnings
		text string // of the reason, or in that of what refuses it
	}{
		{"all right", fine, "", ""},
		{"sealed, and the session is up", fine.but(func(m *macLogin) { m.file = "sealed" }), "warns sealed-with-session", ""},
		{"another one at the screen, and our session is up", fine.but(func(m *macLogin) { m.screen = "anna" }), "", ""},
		{"factory", macLogin{}, "auto-login-off kick given", "automatic login is off, /etc/kcpassword is missing, no GUI session of m1"},
		{"sealed", down.but(func(m *macLogin) { m.file = "sealed" }), "sealed-kcpassword kick given",
			"/etc/kcpassword is sealed (it holds <sealed> in place of the password), no GUI session of m1"},
		{"sealed, and loginwindow is dead", down.but(func(m *macLogin) { m.file, m.dead = "sealed", true }), "sealed-kcpassword kick given",
			"/etc/kcpassword is sealed (it holds <sealed> in place of the password), loginwindow does not run"},
		{"loginwindow is dead", down.but(func(m *macLogin) { m.dead = true }), "dead-loginwindow kick checked", "loginwindow does not run"},
		{"no one is logged in", down, "no-gui-session kick checked", "no GUI session of m1"},
		{"no one is logged in, and anyone may read the file", down.but(func(m *macLogin) { m.access = "m1:staff 644" }), "no-gui-session kick checked",
			"no GUI session of m1, /etc/kcpassword is m1:staff 0644"},
		{"the file is gone, the session is up", fine.but(func(m *macLogin) { m.file = "" }), "kcpassword-missing stay given", "/etc/kcpassword is missing"},
		{"the password has no end", fine.but(func(m *macLogin) { m.file = "unterminated" }), "kcpassword-unterminated stay given",
			"the password in /etc/kcpassword is not terminated"},
		{"the password is empty", fine.but(func(m *macLogin) { m.file = "empty" }), "kcpassword-empty stay given",
			"the password in /etc/kcpassword is empty"},
		{"automatic login is off", fine.but(func(m *macLogin) { m.user = "" }), "auto-login-off stay given", "automatic login is off"},
		{"automatic login is off, the file sealed", fine.but(func(m *macLogin) { m.user, m.file = "", "sealed" }), "auto-login-off stay given, warns sealed-with-session",
			"automatic login is off"},
		{"another's automatic login", fine.but(func(m *macLogin) { m.user = "anna" }), "auto-login-other-user stay given",
			`automatic login is set to "anna"`},
		{"the file's owner", fine.but(func(m *macLogin) { m.access = "m1:wheel 600" }), "kcpassword-mode stay kept", "/etc/kcpassword is m1:wheel 0600"},
		{"the file's mode, and it is sealed", fine.but(func(m *macLogin) { m.file, m.access = "sealed", "root:wheel 644" }), "kcpassword-mode stay kept, warns sealed-with-session",
			"/etc/kcpassword is root:wheel 0644"},
		{"FileVault", down.but(func(m *macLogin) { m.vault = true }), "refused filevault-on", "FileVault is on"},
		{"FileVault, and the session is up", fine.but(func(m *macLogin) { m.vault = true }), "refused filevault-on", "FileVault is on"},
		{"a profile", down.but(func(m *macLogin) { m.managed = true }), "refused auto-login-disabled-by-profile", "DisableAutoLoginClient"},
		{"the profile's key, set by hand", fine.but(func(m *macLogin) { m.forbidden = true }), "refused auto-login-disabled-by-profile",
			"DisableAutoLoginClient"},
		{"another's session", down.but(func(m *macLogin) { m.screen = "anna" }), "refused foreign-session", `"anna" is logged in at the screen`},
		{"work without a session", down.but(func(m *macLogin) { m.work = "411\n412" }), "refused work-in-dead-session", "(pid 411, 412)"},
	} {
		f := tc.mac.look(t)
		text := ""
		got := stepstest.Lines(f, func(c plan.Change) string {
			stepstest.Expect(t, "script", []string{"auto_login-set", "root", "m1", "30"}, append([]string{c.Command.Name, string(c.Command.As)}, c.Command.Args[:2]...))
			text = c.Reason.Text
			return c.Reason.Code.String() + " " + strings.Join(c.Command.Args[2:], " ")
		})
		stepstest.Expect(t, tc.name, tc.want, strings.Join(got, ", "))
		if f.Refused != nil && strings.Contains(f.Refused.Text, tc.text) && f.Refused.Remedy != "" {
			text = tc.text
		}
		stepstest.Expect(t, tc.name, tc.text, text)
	}
}

// everyLogin calls a function with every Mac there is, as far as it matters.
func everyLogin(visit func(macLogin)) {
	users, files := []string{"", "m1", "anna"}, []string{"", "present", "sealed", "empty", "unterminated"}
	for n := range 1 << 7 * len(users) * len(files) {
		on := func(i int) bool { return n>>i&1 == 1 }
		text := func(i int, text string) string { return strings.Repeat(text, n>>i&1) }
		visit(macLogin{vault: on(0), managed: on(1), session: on(2), dead: on(3), work: text(4, "411"), access: text(5, "m1:staff 644"), screen: text(6, "anna"),
			user: users[n>>7%len(users)], file: files[n>>7/len(users)]})
	}
}

// TestAutoLoginNeverEndsASession holds for every Mac: loginwindow is kicked only where
// that ends no session, the password is looked up where it is needed, and the change
// leaves nothing to do.
func TestAutoLoginNeverEndsASession(t *testing.T) {
	t.Parallel()
	wanted := stepstest.WantedBy(t, "auto_login", loggedIn)
	everyLogin(func(m macLogin) {
		f := m.look(t)
		stuck := m.vault || m.managed || !m.session && (m.screen != "" || m.work != "")
		intact := m.user == "m1" && (m.file == "present" || m.file == "sealed" && m.session)
		switch {
		case len(f.Unread) > 0:
			t.Fatalf("%+v: %+v", m, f)
		case stuck:
			if f.Refused == nil || len(f.Changes) > 0 || f.Facts == wanted {
				t.Fatalf("%+v: %+v", m, f)
			}
			return
		case f.Refused != nil:
			t.Fatalf("%+v: %+v", m, f.Refused)
		case m.session && intact && m.access == "":
			if len(f.Changes) > 0 || f.Facts != wanted {
				t.Fatalf("%+v: %+v", m, f)
			}
			return
		}
		if len(f.Changes) != 1 || f.Facts == wanted {
			t.Fatalf("%+v: %+v", m, f)
		}
		c := f.Changes[0]
		if kick := c.Command.Args[2] == "kick"; kick == m.session || kick != (c.Disruption == plan.Restart) {
			t.Fatalf("%+v: kick %t, disruption %s", m, kick, c.Disruption)
		}
		want, input := "kept", plan.NoInput
		if !intact {
			want, input = "given", plan.AutoLogin
		} else if !m.session { // loginwindow gets only a verified file
			want, input = "checked", plan.AutoLoginCheck
		}
		if c.Command.Args[3] != want || c.Input != input {
			t.Fatalf("%+v: %v, input %q", m, c.Command.Args, c.Input)
		}
		after := m.perform(c)
		if g := after.look(t); len(g.Changes)+len(g.Unread) > 0 || g.Refused != nil || g.Facts != wanted {
			t.Fatalf("%+v became %+v: %+v", m, after, g)
		}
	})
}

// perform does to a Mac what the script of a change does.
func (m macLogin) perform(c plan.Change) macLogin {
	m.user, m.access = c.Command.Args[0], ""
	if c.Command.Args[3] == "given" {
		m.file = "present"
	}
	if c.Command.Args[2] == "kick" {
		m.session, m.screen, m.dead = true, m.user, false
	}
	return m
}

// TestAutoLoginUnread: an answer that was not understood is not a difference.
func TestAutoLoginUnread(t *testing.T) {
	t.Parallel()
	up, down := fine.answer().Stdout, macLogin{user: "m1", file: "present"}.answer().Stdout
	for _, tc := range []struct{ name, base, from, to string }{
		{"FileVault in other words", up, "FileVault is Off.", "FileVault is Off, but will be enabled after the next restart."},
		{"fdesetup fails", up, "FileVault is Off.\n== filevault 0", "Error.\n== filevault 1"},
		{"fdesetup is missing", up, "FileVault is Off.\n== filevault 0", "sh: fdesetup: not found\n== filevault 127"},
		{"a flag without truth", up, "== managed 1", "== managed 0"},
		{"a flag that fails", up, "== forbidden 1", "== forbidden 2"},
		{"a flag that fails in other words", up, "does not exist", "was not seen"},
		{"chatter behind the user", up, "m1\n== user 0", "m1\nnoise\n== user 0"},
		{"defaults fails", up, "m1\n== user 0", "Could not connect\n== user 1"},
		{"a kind of file that no one knows", up, "present root", "strange root"},
		{"a file without its mode", up, "present root:wheel 600", "present root:wheel"},
		{"a link in the file's place", up, "present root:wheel 600\n== kcpassword 0", "not a plain file\n== kcpassword 1"},
		{"stat fails", up, "present root:wheel 600\n== kcpassword 0", "present stat: Operation not permitted\n== kcpassword 1"},
		{"no one owns the screen", up, "m1\n== console 0", "\n== console 0"},
		{"stat of the screen fails", up, "== console 0", "== console 1"},
		{"a session that is not Aqua", up, "Aqua\n== session 0", "no word of an Aqua session\n== session 0"},
		{"launchctl fails", up, "Aqua\n== session 0", "Operation not permitted\n== session 1"},
		{"the login user has the screen, the session is gone", down, "root\n== console 0", "m1\n== console 0"},
		{"pgrep fails", down, "\n== work 1", "pgrep: Cannot get process list\n== work 3"},
		{"pgrep finds nothing and reports it", down, "\n== work 1", "no\n== work 1"},
		{"pgrep finds and says nothing", down, "== work 1", "== work 0"},
		{"a line twice", up, "m1\n== console 0\n", "m1\n== console 0\nm1\n== console 0\n"},
		{"chatter before", up, "FileVault", "hello\nFileVault"},
		{"cut off", up, "Aqua\n== session 0\n", ""},
		{"cut off at the end", up, "\n== end\n", ""},
		{"cut off later", down, "\n== work 1\n", ""},
		{"a line without a code", up, "== console 0", "== console"},
		{"nothing", up, up, ""},
	} {
		f := judged(t, edited(t, tc.base, tc.from, tc.to))
		if len(f.Unread) != 1 || f.Unread[0].Probe != loginProbe || f.Unread[0].Why == "" || f.Unread[0].Bytes != strings.ReplaceAll(tc.base, tc.from, tc.to) ||
			f.Changes != nil || f.Refused != nil || f.Facts != "" {
			t.Errorf("%s: %+v", tc.name, f)
		}
	}
	for name, facts := range map[string]plan.Facts{
		"never read":       nil,
		"needs root":       {loginProbe: inventory.Unread[plan.Answer]("needs root")},
		"the script fails": {loginProbe: inventory.Present(plan.Answer{Exit: 1, Stdout: up, Stderr: "id: m1: no such user\n"})},
	} {
		if f := judged(t, facts); len(f.Unread) != 1 || f.Unread[0].Why == "" || f.Changes != nil {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

// TestAutoLoginReads: what releases of macOS say in several ways.
func TestAutoLoginReads(t *testing.T) {
	t.Parallel()
	up, down := fine.answer().Stdout, macLogin{user: "m1", file: "present"}.answer().Stdout
	for _, tc := range []struct{ name, base, from, to, code string }{
		{"no session, 112", down, "session 113", "session 112", "no-gui-session"},
		{"no session, 125", down, "Could not find domain for user gui: 501\n== session 113", "Could not print domain: 125: Domain does not support specified action\n== session 125", "no-gui-session"},
		{"loginwindow is not read", down, "alive\n== loginwindow 0", "Operation not permitted while System Integrity Protection is engaged\n== loginwindow 150", "no-gui-session"},
		{"the disk is being decrypted", up, "FileVault is Off.", "FileVault is Off.\nDecryption in progress: Percent completed = 42", ""},
		{"the disk is being encrypted", up, "FileVault is Off.", "FileVault is On.\nEncryption in progress: Percent completed = 42", "filevault-on"},
		{"a flag that is false", up, strings.TrimSuffix(noKey("managed"), "\n") + "\n== managed 1", "0\n== managed 0", ""},
		{"the empty user", up, "m1\n== user 0", "\n== user 0", "auto-login-off"},
		{"a user with spaces", up, "m1\n== user 0", `anna 'b' "c" $d` + "\n== user 0", "auto-login-other-user"},
		{"sticky", up, "wheel 600", "wheel 1600", "kcpassword-mode"},
	} {
		f := judged(t, edited(t, tc.base, tc.from, tc.to))
		if got := codeOf(f); got != tc.code || len(f.Unread) > 0 {
			t.Errorf("%s: %q, unread %+v; want %q", tc.name, got, f.Unread, tc.code)
		}
	}
}

// TestAutoLoginRemoval: what macfleet made goes when the block goes; what a stranger made stays.
func TestAutoLoginRemoval(t *testing.T) {
	t.Parallel()
	remove := func(facts plan.Facts, proven bool) plan.Finding {
		return stepstest.Step(t, "auto_login", fleet.Spec{}).Diff(plan.View{Host: stepstest.Host(fleet.Spec{}), Facts: facts, Verified: proven})
	}
	const file, login = "kcpassword: present → absent", "automatic login: m1 → "
	for _, tc := range []struct {
		name, moves, run string
		mac              macLogin
	}{
		{"all of it", login + ", " + file, "auto_login-remove root m1", fine},
		{"only the file", file, "auto_login-remove root m1", fine.but(func(m *macLogin) { m.user = "" })},
		{"a sealed file", login + ", kcpassword: sealed → absent", "auto_login-remove root m1", fine.but(func(m *macLogin) { m.file = "sealed" })},
		{"only the user", login, "auto_login-remove root m1", fine.but(func(m *macLogin) { m.file = "" })},
		{"nothing is left", "", "", fine.but(func(m *macLogin) { m.user, m.file = "", "" })},
		{"another's", "", "", fine.but(func(m *macLogin) { m.user = "anna" })},
	} {
		f := remove(tc.mac.facts(), true)
		_, run, _ := strings.Cut(stepstest.Runs(f), " ")
		stepstest.Expect(t, tc.name, []string{tc.moves, tc.run}, []string{stepstest.Moves(f), run})
		if foreign := len(f.Warnings) == 1 && f.Warnings[0].Code.String() == "foreign-auto-login"; foreign != (tc.name == "another's") || f.Refused != nil ||
			tc.run != "" && f.Facts != tc.mac.look(t).Facts || tc.run == "" && f.Facts != "" {
			t.Errorf("%s: %+v", tc.name, f)
		}
		for _, c := range f.Changes {
			if !c.Removes || c.Input != plan.NoInput || c.Disruption != plan.NoDisruption {
				t.Errorf("%s: %+v", tc.name, c)
			}
		}
		stepstest.Expect(t, "a stranger's: "+tc.name, plan.Finding{}, remove(tc.mac.facts(), false))
	}
	stepstest.Expect(t, "unread and not macfleet's", plan.Finding{}, remove(nil, false))
	if f := remove(nil, true); len(f.Unread) != 1 || f.Changes != nil {
		t.Errorf("unread and macfleet's: %+v", f)
	}
}

// TestAutoLoginProbes: two fleets with two login users ask two questions.
func TestAutoLoginProbes(t *testing.T) {
	t.Parallel()
	other := stepstest.Host(loggedIn)
	other.User = "o'hara"
	p := stepstest.StepOf(t, "auto_login", other).Probes()
	if len(p) != 1 || p[0].ID != "auto_login.state/o'hara" || !slices.Equal(p[0].Args, []string{"o'hara"}) {
		t.Errorf("%+v", p)
	}
}

// FuzzAutoLogin: whatever the host says, the answer is understood or unread, and a session that exists is never ended.
func FuzzAutoLogin(f *testing.F) {
	f.Add(fine.answer().Stdout, 0)
	f.Add(macLogin{}.answer().Stdout, 0)
	f.Add(macLogin{user: "m1", file: "sealed", dead: true, work: "1"}.answer().Stdout, 1)
	f.Add("", 0)
	f.Add("Aqua\n== session 0\n\n== session 113\n", 0)
	f.Fuzz(func(t *testing.T, stdout string, exit int) {
		found := judged(t, plan.Facts{loginProbe: inventory.Present(plan.Answer{Exit: exit, Stdout: stdout})})
		if len(found.Unread) > 0 && (found.Changes != nil || found.Refused != nil || found.Facts != "") {
			t.Fatalf("unread and yet %+v", found)
		}
		if len(found.Unread) == 0 && exit != 0 {
			t.Fatalf("exit %d: %+v", exit, found)
		}
		for _, c := range found.Changes {
			if c.Command.Args[2] == "kick" && strings.Contains("\n"+stdout, "\nAqua\n== session 0\n") {
				t.Fatalf("%q makes it end a session", stdout)
			}
		}
	})
}
