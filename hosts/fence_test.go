package hosts

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/plan"
)

// enters lets a run go through the fence of a lab. A run with epoch 0 has its lock
// on the host, and "gil ignores eve" is one that may ignore eve's lock. It returns what the fence says, without the mark.
func (l lab) enters(run string, epoch int) string {
	a, _ := l.entersAt(0, run, epoch)
	return a
}

func (l lab) entersAt(at int, run string, epoch int) (said string, killed bool) {
	l.T.Helper()
	keeper := "cluster"
	if epoch <= 0 {
		keeper, epoch = "host", -epoch // minus what the host gave it before
	}
	run, ignored, _ := strings.Cut(run, " ignores ")
	l.stdin = fmt.Sprintf("MARK\n%s\n%d\n%s\n600\n%s\nof %s's laptop\n", run, epoch, keeper, cmp.Or(ignored, "-"), run)
	a, killed := l.run(at, plan.Command{Name: "fence", Script: file("scripts/fence.sh") + "echo behind it\n"})
	text := strings.TrimSpace(a.Stdout)
	switch rest, ok := strings.CutPrefix(text, "MARK entered "); {
	case ok && strings.HasSuffix(rest, "\nbehind it"):
		return "entered " + strings.TrimSuffix(rest, "\nbehind it"), killed
	case strings.HasPrefix(text, "MARK host 0\n\nMARK refused ") && !strings.Contains(text, "behind it"):
		return strings.TrimPrefix(text, "MARK host 0\n\nMARK "), killed
	}
	return fmt.Sprintf("exit %d: %q %q", a.Exit, a.Stdout, a.Stderr), killed
}

func (l lab) enter(run string, epoch int, want string) {
	l.T.Helper()
	if got := l.enters(run, epoch); got != want {
		l.T.Errorf("%s with epoch %d: %q, want %q", run, epoch, got, want)
	}
}

// runs lists what is in the folder of runs.
func (l lab) runs() string {
	entries, _ := os.ReadDir(filepath.Join(l.etc, "runs"))
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

// TestFenceWithLease: the higher epoch counts, whichever run was first.
func TestFenceWithLease(t *testing.T) {
	labs(t, func(t *testing.T, l lab) {
		l.enter("ann", 3, "entered 3")
		l.enter("ann", 3, "entered 3")
		l.enter("bob", 3, "refused newer 3 1000 1000 ann of ann's laptop") // two with one epoch: the first
		l.clock(1005)
		l.enter("bob", 7, "entered 7")
		l.enter("ann", 3, "refused newer 7 1005 1005 bob of bob's laptop")
		l.enter("ann", 6, "refused newer 7 1005 1005 bob of bob's laptop")
		l.enter("bob", 9, "entered 9") // it was raised
		l.enter("bob", 7, "entered 9") // and an exec of before is still its own
		is(t, "left", l.runs(), "9 9.seen")
		is(t, "note", l.read(l.etc, "runs", "9"), "bob cluster 1005 of bob's laptop\n")
	})
}

// TestFenceWithoutCluster: where no cluster keeps the lock, the host does, by its own clock.
func TestFenceWithoutCluster(t *testing.T) {
	labs(t, func(t *testing.T, l lab) {
		l.enter("ann", 0, "entered 1")
		l.clock(1400)
		l.enter("ann", -1, "entered 1")
		l.enter("bob", 0, "refused locked 1 1000 1400 ann of ann's laptop")
		l.clock(1999) // 599 s after its last command
		l.enter("bob", 0, "refused locked 1 1000 1999 ann of ann's laptop")
		l.enter("cid", 5, "refused locked 1 1000 1999 ann of ann's laptop") // nor one with a Lease
		l.clock(2000)
		l.enter("bob", 0, "entered 2")
		l.enter("ann", -1, "refused newer 2 2000 2000 bob of bob's laptop")
		// It leaves, so no run waits for it; but it is still the newer one.
		l.want(0, own("leave", plan.Root, "bob"))
		l.enter("ann", -1, "refused newer 2 2000 2000 bob of bob's laptop")
		l.enter("cid", 0, "entered 3")
		l.want(0, own("leave", plan.Root, "bob"))
		l.enter("dan", 0, "refused locked 3 2000 2000 cid of cid's laptop")
		// A clock that is set back does not keep a lock for ever.
		l.clock(1300)
		l.enter("dan", 0, "entered 4")
		// A run with a Lease that is over leaves nothing to wait for.
		l.want(0, own("leave", plan.Root, "dan"))
		l.enter("eve", 8, "entered 8")
		l.enter("fay", 0, "entered 9")
		// The lock of one run may be ignored, and no other.
		l.enter("gil ignores eve", 0, "refused locked 9 1300 1300 fay of fay's laptop")
		l.enter("gil ignores fay", 0, "entered 10")
	})
}

// TestFenceStrange: an entry that macfleet did not write neither refuses nor admits a run.
func TestFenceStrange(t *testing.T) {
	labs(t, func(t *testing.T, l lab) {
		for name, text := range map[string]string{"4": "", "x": "ann host 1", "007": "x", "99999999999": "x", "5.seen": "then", "-3": "x", "a b": "x"} {
			write(t, filepath.Join(l.etc, "runs", name), text, 0o644)
		}
		l.enter("ann", 4, "refused newer 4 0 1000 -")
		l.enter("ann", 5, "entered 5")
		write(t, filepath.Join(l.etc, "runs", "5.seen"), "", 0o644) // the disk was full
		l.enter("bob", 0, "entered 6")
		write(t, filepath.Join(l.etc, "runs", "6.seen"), "", 0o644)
		l.enter("cid", 0, "refused locked 6 1000 1000 bob of bob's laptop")
		must(t, os.RemoveAll(filepath.Join(l.etc, "runs")), os.WriteFile(filepath.Join(l.etc, "runs"), nil, 0o600))
		l.enter("ann", 5, "refused unnoted 0 0 1000 -")
	})
}

// TestFenceAtOnce: of many runs that enter at the same moment one continues where the
// host keeps the lock, and the highest epoch where a cluster does.
func TestFenceAtOnce(t *testing.T) {
	labs(t, func(t *testing.T, l lab) {
		const many = 6
		said := make([]string, many)
		race := func(epoch func(int) int) {
			var all sync.WaitGroup
			for i := range many {
				all.Go(func() { said[i] = l.enters(fmt.Sprint("run", i), epoch(i)) })
			}
			all.Wait()
		}
		race(func(int) int { return 0 })
		if n := len(slices.DeleteFunc(slices.Clone(said), func(s string) bool { return !strings.HasPrefix(s, "entered ") })); n != 1 {
			t.Errorf("%d runs entered: %q", n, said)
		}
		for i, s := range said {
			if s == "entered 1" {
				l.want(0, own("leave", plan.Root, fmt.Sprint("run", i)))
			}
		}
		race(func(i int) int { return 10 + i })
		for i := range many {
			if got := l.enters(fmt.Sprint("run", i), 10+i); strings.HasPrefix(got, "entered ") != (i == many-1) {
				t.Errorf("run %d: %q", i, got)
			}
		}
	})
}

// TestFenceKilled ends the fence at each call of a tool: the same run, and then a newer
// one, continue from there.
func TestFenceKilled(t *testing.T) {
	killedEverywhere(t, func(t *testing.T, l lab, at int) bool {
		l.enter("eve", 9, "entered 9") // an earlier run's notes are removed
		_, killed := l.entersAt(at, "ann", 10)
		l.enter("ann", 10, "entered 10")
		l.enter("bob", 11, "entered 11")
		l.enter("ann", 10, "refused newer 11 1000 1000 bob of bob's laptop")
		if !killed && at < 8 {
			t.Errorf("only %d calls can be interrupted", at-1)
		}
		return killed
	})
}

// TestFenceShowsWhoEntered reads the notes as an observation does.
func TestFenceShowsWhoEntered(t *testing.T) {
	labs(t, func(t *testing.T, l lab) {
		l.enter("ann", 0, "entered 1")
		l.clock(1042)
		show := func() (seen plan.HostSeen) {
			a := l.want(0, plan.Command{Name: "left", Script: file("scripts/left.sh")})
			for line := range strings.Lines(a.Stdout) {
				if e, ok := parseEntered(strings.TrimPrefix(strings.TrimSuffix(line, "\n"), "run ")); ok {
					seen.Entered = &e
				}
			}
			return seen
		}
		want := plan.Entered{ID: "ann", Who: "of ann's laptop", Epoch: 1, At: time.Unix(1000, 0).UTC(), Alone: true, Held: true, Idle: 42 * time.Second}
		is(t, "held", show().Entered, &want)
		l.want(0, own("leave", plan.Root, "ann"))
		want.Held = false
		is(t, "left", show().Entered, &want)
	})
}

func TestParseEntered(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "1", "1 host 1 1 1 no", "x host 1 1 1 no ann who", "-1 host 1 1 1 no ann who", "1 host 99999999999999 1 1 no ann who", "0 host 1 1 1 no ann"} {
		if e, ok := parseEntered(text); ok {
			t.Errorf("%q is read as %+v", text, e)
		}
	}
	if e, ok := parseEntered("1 host 1000 1000 1600 no ann of a laptop"); !ok || e.Held || e.Who != "of a laptop" {
		t.Errorf("one that was silent for too long: %+v", e)
	}
}

// TestLockSpan: a run that lives is silent on a host at most while it waits for the
// confirmation of a change, or for one change's end.
func TestLockSpan(t *testing.T) {
	t.Parallel()
	d := DefaultDeadlines()
	if silent := max(d.Undo+d.Return+d.Dial+d.Handshake, d.Change+d.Exchange); LockSpan <= silent {
		t.Errorf("a run may be silent for %s, and its lock ends after %s", silent, LockSpan)
	}
}

func TestOneLine(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"": "somebody", "ann@mac": "ann@mac", "a\nMARK refused\r\tx": "a MARK refused x", "größe": "gr e", `a\b`: "a b",
		strings.Repeat("x", 200): strings.Repeat("x", 100)} {
		is(t, in, oneLine(in), want)
	}
}

// TestFenced: once a newer run entered, nothing that the older one sends runs: no
// plain change, none with an input, none under launchd, no guarded one, no delivery,
// no claim, no marker. Looking continues.
func TestFenced(t *testing.T) {
	t.Parallel()
	s := newSimulation(t)
	older, newer := acme1(), acme1()
	older.Run, newer.Run = &plan.Run{ID: "aaaa", Who: "ann@laptop", Epoch: 4}, &plan.Run{ID: "bbbb", Who: "bob@ci", Epoch: 5}
	one := connect(t, s.client(), older)
	if a, err := one.Run(within(t), on("/var/one", "first"), secret.Value{}); err != nil || a.Exit != 0 {
		t.Fatal(a, err)
	}
	if seen := connect(t, s.client(), newer).Observe(within(t), nil); seen.Trouble != nil || seen.Entered == nil || seen.Entered.ID != "bbbb" || seen.Entered.Epoch != 5 {
		t.Fatalf("the newer run sees %+v", seen)
	}
	restore := on("/var/one", "restored")
	secretly := on("/var/one", "second")
	for name, change := range map[string]func() error{
		"Run":           func() error { return second(one.Run(within(t), on("/var/one", "second"), secret.Value{})) },
		"with an input": func() error { return second(one.Run(within(t), secretly, hidden(t, "sesame"))) },
		"RunDetached": func() error {
			return second(one.RunDetached(within(t), "power", plan.Change{Command: on("/var/one", "second"), Detached: true}))
		},
		"RunGuarded": func() error {
			return one.RunGuarded(within(t), "power", plan.Change{Command: on("/var/one", "second"),
				Guard: &plan.Guard{Restore: &restore, Persist: on("/var/one", "second")}})
		},
		"unarmed": func() error {
			return one.RunGuarded(within(t), "power", plan.Change{Command: on("/var/one", "second"),
				Guard: &plan.Guard{Why: "nothing takes it back", Persist: on("/var/one", "second")}})
		},
		"Deliver": func() error {
			d := plan.Delivery{Artifact: fleet.Artifact{Name: "tart", SHA256: strings.Repeat("0", 64), Fetch: fleet.FetchPush}}
			return second(one.Deliver(within(t), d, func() (io.ReadCloser, int64, error) {
				return io.NopCloser(strings.NewReader("x")), 1, nil
			}))
		},
		"push": func() error {
			a := fleet.Artifact{Name: "tart", SHA256: strings.Repeat("0", 64)}
			return second(one.push(within(t), a, look{free: 1 << 30}, func() (io.ReadCloser, int64, error) {
				return io.NopCloser(strings.NewReader("x")), 1, nil
			}))
		},
		"Claim":       func() error { return second(one.Claim(within(t), acmeClaim())) },
		"DropClaim":   func() error { return one.DropClaim(within(t), acmeClaim(), "") },
		"WriteMarker": func() error { return one.WriteMarker(within(t), acmeMarker(), "") },
		"proof":       func() error { return one.WriteMarker(within(t), acmeMarker(), "power") },
		"Leave":       func() error { return one.Leave(within(t)) },
	} {
		err := change()
		if e := asError(t, err); e.Code.String() != "newer-run" || !strings.Contains(e.Error(), "bob@ci has been working here since ") || !strings.Contains(e.Error(), "(run bbbb, epoch 5)") {
			t.Errorf("%s: %s: %v", name, e.Code, e)
		}
	}
	is(t, "on the Mac", s.text("/var/one")+s.text("/etc/macfleet/host.json")+s.text("/etc/macfleet/claim.json"), "first")
	if a, err := connect(t, s.client(), acme1()).Run(within(t), plan.Command{Name: "id", Script: "ls /etc/macfleet", As: plan.Root}, secret.Value{}); err != nil || strings.Contains(a.Stdout, "jobs") || strings.Contains(a.Stdout, "undo") {
		t.Errorf("left by the older run: %q, %v", a.Stdout, err)
	}
}

// TestFencedWithoutCluster: a run that the host itself gave an epoch keeps it over all of its
// connections, and never takes a new one once another has entered.
func TestFencedWithoutCluster(t *testing.T) {
	t.Parallel()
	s := newSimulation(t)
	ann, bob := acme1(), acme1()
	ann.Run, bob.Run = &plan.Run{ID: "aaaa", Who: "ann@laptop"}, &plan.Run{ID: "bbbb", Who: "bob@ci"}
	hers, his := s.client(), s.client()
	for range 2 {
		conn := connect(t, hers, ann)
		if seen := conn.Observe(within(t), nil); seen.Trouble != nil || seen.Entered.Epoch != 1 || !seen.Entered.Alone || !seen.Entered.Held {
			t.Fatalf("she sees %+v", seen.Entered)
		}
		must(t, conn.Leave(within(t)))
	}
	conn := connect(t, hers, ann)
	must(t, second(conn.Run(within(t), on("/var/one", "hers"), secret.Value{})))
	if seen := connect(t, his, bob).Observe(within(t), nil); seen.Trouble == nil || seen.Trouble.Code.String() != "host-locked" ||
		!strings.Contains(seen.Trouble.Text, "ann@laptop") || !strings.Contains(seen.Trouble.Remedy, "aaaa") {
		t.Errorf("he is given %+v", seen.Trouble)
	}
	must(t, s.Advance(LockSpan+time.Second))
	other := connect(t, his, bob)
	must(t, second(other.Run(within(t), on("/var/one", "his"), secret.Value{})))
	must(t, other.Leave(within(t)))
	for _, c := range []*Conn{conn, connect(t, hers, ann)} {
		_, err := c.Run(within(t), on("/var/one", "hers again"), secret.Value{})
		if e := asError(t, err); e.Code.String() != "newer-run" {
			t.Errorf("she continues: %v", err)
		}
	}
	is(t, "on the Mac", s.text("/var/one"), "his")
}

func scriptFailed(err error) bool {
	failed := (*ScriptError)(nil)
	return errors.As(err, &failed)
}

func second[T any](_ T, err error) error { return err }

func hidden(t *testing.T, text string) secret.Value {
	t.Helper()
	v, err := secret.New(text)
	must(t, err)
	return v
}
