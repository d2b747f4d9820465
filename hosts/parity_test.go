package hosts

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps"
)

// settingsTools are a Mac's tools that the steps call, as scripts that keep
// their state in files of a folder. The same texts run under every shell, real
// and simulated, so that a difference in the answers is the shells' own.
func settingsTools(state string) map[string]string {
	return map[string]string{
		"sw_vers": "echo 26.3",
		"ioreg":   `printf '    "IOPlatformSerialNumber" = "C07ACME001"\n'`,
		"scutil": fmt.Sprintf(`state=%s
case $1 in
--get) [ -e "$state/$2" ] || { echo "$2: not set" >&2; exit 1; }; cat "$state/$2" ;;
--set) printf '%%s\n' "$3" >"$state/$2" ;;
*) exit 64 ;;
esac`, state),
		"pmset": fmt.Sprintf(`state=%s
case $1 in
-g) echo 'AC Power:'
  for key in sleep displaysleep disksleep autorestart; do
    value=1
    [ ! -e "$state/pmset.$key" ] || value=$(cat "$state/pmset.$key")
    printf ' %%s                %%s\n' "$key" "$value"
  done ;;
-a) shift
  while [ $# -gt 0 ]; do printf '%%s\n' "$2" >"$state/pmset.$1"; shift 2; done ;;
*) exit 64 ;;
esac`, state),
		"defaults": fmt.Sprintf(`state=%s
where=all
[ "$1" != -currentHost ] || { where=host; shift; }
file=$state/$where.$(printf '%%s.%%s' "$2" "$3" | tr / _)
case $1 in
read) [ -e "$file" ] || { echo "The domain/default pair of ($2, $3) does not exist" >&2; exit 1; }; cat "$file" ;;
write) printf '%%s\n' "$5" >"$file" ;;
*) exit 64 ;;
esac`, state),
	}
}

// leg is one way to ask questions.
type leg func(t *testing.T, questions []question) reply

// shellLeg asks in a local shell.
func shellLeg(t *testing.T, s shell) leg {
	dir := openDir(t)
	state := filepath.Join(dir, "state")
	write(t, filepath.Join(state, "there"), "", 0o644)
	for name, text := range settingsTools(state) {
		write(t, filepath.Join(dir, "bin", name), "#!/bin/sh\n"+text+"\n", 0o755)
	}
	return func(t *testing.T, questions []question) reply {
		return s.ask(t, withStubs(filepath.Join(dir, "bin")), me(t), 10, questions)
	}
}

// connLeg asks over a connection.
func connLeg(conn *Conn) leg {
	return func(t *testing.T, questions []question) reply {
		r, err := conn.exchange(within(t), questions, 10*time.Second, patience)
		if err != nil { // an *Error
			t.Fatal(err)
		}
		return r
	}
}

// opensshLeg asks through a real sshd.
func opensshLeg(t *testing.T) leg {
	key := newKey(t)
	m := newMac(t, 1, key.PublicKey())
	for name, text := range settingsTools(m.state) {
		write(t, filepath.Join(m.bin, name), "#!/bin/sh\n"+text+"\n", 0o755)
	}
	return connLeg(connect(t, m.client(t, key), m.target))
}

// simulatedLeg asks a simulated Mac, whose own tools stand behind macfleet's.
func simulatedLeg(t *testing.T) leg {
	s := newSimulation(t)
	if r, err := s.Run(within(t), "root", "mkdir -p /stubs/state /stubs/bin && chmod 0777 /stubs/state"); err != nil || r.Exit != 0 {
		t.Fatal(r, err)
	}
	for name, text := range settingsTools("/stubs/state") {
		must(t, s.WriteFile(path.Join("/stubs/bin", name), []byte("#!/bin/sh\n"+text+"\n"), 0, 0, 0o755))
	}
	o := s.client().opts
	o.Prologue = withStubs("/stubs/bin")
	return connLeg(connect(t, New(o), acme1()))
}

// story asks a host what every step of its specification wants to know, removes the difference by the
// steps' own changes, and asks again. It returns all answers in sequence.
func story(t *testing.T, ask leg) []plan.Facts {
	t.Helper()
	h := fleet.Host{Name: "acme-production-macos-m2-0a1b2", User: "m1",
		Spec: fleet.Spec{Hostname: &fleet.Hostname{}, Power: &fleet.Power{}}.WithDefaults()}
	var probes []question
	wanted := wantedOf(h)
	for _, s := range wanted {
		for _, p := range s.Probes() {
			probes = append(probes, question{id: p.ID, Command: p.Command})
		}
	}
	var told []plan.Facts
	before := ask(t, append(identityOfHost(), probes...)).facts
	told = append(told, before)
	for _, s := range wanted {
		f := s.Diff(plan.View{Host: h, Facts: before})
		if len(f.Changes) == 0 || len(f.Unread) > 0 {
			t.Errorf("%s has %d changes and cannot read %+v", s.ID(), len(f.Changes), f.Unread)
		}
		for _, ch := range f.Changes {
			// A stand-in has no second user: root's changes are made as the login
			// user there, with the same text.
			ch.Command.As = plan.Login
			told = append(told, ask(t, []question{{id: "change." + ch.Command.Name, Command: ch.Command}}).facts)
		}
	}
	after := ask(t, probes).facts
	for _, s := range wanted {
		if f := s.Diff(plan.View{Host: h, Facts: after}); len(f.Changes) > 0 || len(f.Unread) > 0 {
			t.Errorf("%s still differs: %+v, unread %+v", s.ID(), f.Changes, f.Unread)
		}
	}
	return append(told, after)
}

// wantedOf returns the steps whose block the specification has.
func wantedOf(h fleet.Host) []plan.Step {
	return slices.DeleteFunc(steps.For(h), func(s plan.Step) bool { return s.Wanted() == "" })
}

// identityOfHost leaves out the two files that a test machine may not have.
func identityOfHost() []question {
	var out []question
	for _, q := range identity() {
		if q.id == "host.serial" || q.id == "host.os-version" {
			out = append(out, q)
		}
	}
	return out
}

// TestEveryLegAnswersAlike runs the steps' own observation and changes through
// a real sshd, dash, bash and the simulator's shell: the same questions and
// changes must give the same answers, byte for byte.
func TestEveryLegAnswersAlike(t *testing.T) {
	t.Parallel()
	legs := map[string]func(*testing.T) leg{"simulator": simulatedLeg, "OpenSSH": opensshLeg}
	for _, s := range shells() {
		if s.inner {
			legs[s.name] = func(t *testing.T) leg { return shellLeg(t, s) }
		}
	}
	want := story(t, shellLeg(t, shells()[0]))
	for name, open := range legs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(want, story(t, open(t)), whole); diff != "" {
				t.Errorf("other answers than under dash (-dash +%s):\n%s", name, diff)
			}
		})
	}
}
