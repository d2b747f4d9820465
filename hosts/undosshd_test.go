package hosts

import (
	"strings"
	"testing"
	"time"

	"github.com/macfleet/macfleet/plan"
)

// TestOpenSSHGuarded breaks the line from within the change, by an end of sshd's
// own session: the change continues, and the host reports over a new connection how it
// ended.
func TestOpenSSHGuarded(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, exit, log, code string }{
		{"stands", "0", "changed persisted", ""},
		{"failed", "7", "changed restored", "rolled-back"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			needRoot(t)
			l, key := newLab(t, []string{"dash"}), newKey(t)
			d := startDaemon(t, daemonOptions{hostKeys: []any{edwards(t)}, login: key.PublicKey(), config: `ForceCommand dash -c "$(printf '%s' "$SSH_ORIGINAL_COMMAND" | ` +
				"sed 's#/etc/macfleet#" + l.etc + "#g; s#/Library/LaunchDaemons#" + l.lib + `#g')"` + "\n"})
			c := New(Options{User: me(t), Key: key, Dial: book(map[string]string{peerAddress + ":22": d.address}), Prologue: l.prologue(),
				Poll: 5 * time.Millisecond, Deadlines: patient()})
			conn := connect(t, c, acme1())
			note := func(word, more string) plan.Command {
				return plan.Command{Name: word, As: plan.Root, Script: "echo " + word + " >>" + l.State + "/log\n" + more}
			}
			restore := note("restored", "")
			err := conn.RunGuarded(within(t), "vm_firewall", plan.Change{Guard: &plan.Guard{Restore: &restore, Persist: note("persisted", "")},
				Command: note("changed", `pid=$$
until read -r name </proc/$pid/comm && case $name in sshd*) true ;; *) false ;; esac; do
  read -r stat </proc/$pid/stat
  set -- ${stat##*) }
  pid=$2
done
kill -9 "$pid"
echo unheard; echo nor this >&2
exit `+tt.exit)})
			if tt.code != "" {
				wantError(t, err, tt.code, Undoing, "the change failed: changed on acme-1 failed with exit code 7: nor this")
			} else if err != nil {
				t.Error(err)
			}
			is(t, "log", strings.Join(strings.Fields(l.read(l.State, "log")), " "), tt.log)
			conn.Close()
		})
	}
}
