package plan_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/schematest"
	"github.com/macfleet/macfleet/internal/view"
	"github.com/macfleet/macfleet/internal/wire"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/plan/plantest"
)

// drawComputed is the plan of a drawn world in which every necessary host was contacted.
func drawComputed(t *rapid.T) (*world, *plan.Plan) {
	w := drawWorld(t)
	for next := plan.Next(w.cfg, w.snap, w.sel); len(next) > 0; next = plan.Next(w.cfg, w.snap, w.sel) {
		for _, s := range next {
			w.snap.Hosts[s.ID] = w.hosts[s.ID]
		}
	}
	return w, w.compute()
}

func fileOf(w *world, p *plan.Plan) wire.PlanFile {
	f := wire.NewPlanFile(p)
	f.ConfigurationHash, f.MadeBy, f.MadeAt, f.ExpiresAt = w.cfg.Hash(), "sam@desk", noon, noon.Add(24*time.Hour)
	return f
}

// TestPlanFileShowsThePlan: what a person and a program read of a file is what they
// read of the plan, byte for byte.
func TestPlanFileShowsThePlan(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w, p := drawComputed(t)
		content, err := fileOf(w, p).Encode()
		if err != nil {
			t.Fatal(err)
		}
		if err := schematest.Validate("planfile", content); err != nil {
			t.Fatalf("%v\n%s", err, content)
		}
		f := must(wire.DecodePlanFile(content))
		if len(w.sel.On) > 0 { // the text of a selector is the command's
			f.Plan.Narrowed = true
		}
		if diff := cmp.Diff(read(t, p), read(t, f.Plan)); diff != "" {
			t.Fatalf("shown (-plan +file):\n%s", diff)
		}
		if diff := cmp.Diff(fileOf(w, p).Approved(), f.Approved(), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("approved (-plan +file):\n%s", diff)
		}
		again, err := f.Encode()
		if err != nil || !bytes.Equal(content, again) && len(w.sel.On) == 0 {
			t.Fatalf("encoded twice (%v):\n%s\n%s", err, content, again)
		}
		if err := f.Check(w.cfg, noon); err != nil {
			t.Fatal(err)
		}
	})
}

// TestPlanFileShowsWhatAHostPrinted: bytes that no document can hold are the same in
// the plan and in its file.
func TestPlanFileShowsWhatAHostPrinted(t *testing.T) {
	t.Parallel()
	w := members(1, 1)
	w.change(1, func(h *plan.HostSeen) {
		h.Facts["alpha.get"] = inventory.Present(plan.Answer{Stdout: "bad \xff\xfe"})
		h.Facts["beta.get"] = inventory.Unread[plan.Answer]("it said \xff")
	})
	p := w.plan(t)
	content, err := fileOf(w, p).Encode()
	if err != nil {
		t.Fatal(err)
	}
	f := must(wire.DecodePlanFile(content))
	var before, after bytes.Buffer
	view.NewText(&before, 0, false).Plan(p, view.PlanForm{Full: true})
	view.NewText(&after, 0, false).Plan(f.Plan, view.PlanForm{Full: true})
	if diff := cmp.Diff(before.String(), after.String()); diff != "" || !strings.Contains(after.String(), `bad \xff\xfe`) {
		t.Errorf("shown (-plan +file):\n%s", diff)
	}
}

// TestOnlyTheApprovedRuns draws which digests a file holds: that subset runs, but for what
// may need a missing one on its host.
func TestOnlyTheApprovedRuns(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w, p := drawComputed(t)
		x := fileOf(w, p).Approved()
		for _, address := range slices.Sorted(maps.Keys(x.Digests)) {
			if rapid.Bool().Draw(t, "taken out") {
				delete(x.Digests, address)
			}
		}
		for _, id := range slices.Sorted(maps.Keys(x.Keys)) {
			if rapid.IntRange(0, 9).Draw(t, "unknown host") == 0 {
				delete(x.Keys, id)
			}
		}
		all := make(map[string]int)
		for _, host := range p.Runnable() {
			all[host[0].ServerID] += len(host)
		}
		now := w.compute()
		refused := x.Restrict(now, w.steps)
		ran, left := 0, 0
		for _, a := range now.Actions {
			if a.Refusal != nil && (a.Refusal.Code.String() == "not-approved" || a.Refusal.Code.String() == "after-unapproved") {
				left++
			}
		}
		for _, host := range now.Runnable() {
			for i, a := range host {
				ran++
				if x.Digests[a.Address()] != now.ApprovalOf(a) {
					t.Fatalf("%+v runs", a)
				}
				if _, known := x.Keys[a.ServerID]; !known && !a.OfCluster() {
					t.Fatalf("%+v runs on a host that is in no file", a)
				}
				// On a host nothing runs behind a claim or a marker that is left.
				for _, was := range runnableOf(p, a.ServerID) {
					if was.Address() == a.Address() {
						break
					}
					gone := !slices.ContainsFunc(host[:i], func(b plan.Action) bool { return b.Address() == was.Address() })
					if gone && !a.OfCluster() && !was.Kind.OfStep() {
						t.Fatalf("%s runs without %s", a.Address(), was.Address())
					}
				}
			}
		}
		total := 0
		for _, n := range all {
			total += n
		}
		if left != refused || ran+left != total {
			t.Fatalf("%d run and %d are left (%d said) of %d", ran, left, refused, total)
		}
		if left > 0 && now.Summarise().Complete() {
			t.Fatal("a plan of which something is left is complete")
		}
	})
}

func runnableOf(p *plan.Plan, serverID string) []plan.Action {
	for _, host := range p.Runnable() {
		if host[0].ServerID == serverID {
			return host
		}
	}
	return nil
}

// TestApprovalIsOverWhatIsDone changes each part of an action by itself.
func TestApprovalIsOverWhatIsDone(t *testing.T) {
	t.Parallel()
	action := func() plan.Action {
		free := inventory.Present(int64(5))
		return plan.Action{Kind: plan.RunStep, Host: first, Fleet: "macos", Group: "m2", ServerID: serverID(1), Step: "alpha",
			Reason: plan.Reason{Code: plantest.Code("c"), Text: "t"}, Fields: []plan.Field{{Name: "n", Before: "b", After: "a"}},
			Changes: []plan.Change{{Reason: plan.Reason{Code: plantest.Code("c")}, Fields: []plan.Field{{Name: "n", Before: "b", After: "a"}},
				Command: plan.Command{Name: "s", Script: "true\n", As: plan.Root, Args: []string{"one", "two"}}, Input: plan.LoginPassword,
				Guard:    &plan.Guard{Restore: &plan.Command{Name: "r", Script: "r", Args: []string{"x"}}, Persist: plan.Command{Name: "p", Script: "p"}, Why: "w"},
				Delivery: &plan.Delivery{Space: 1, Free: free, Artifact: fleet.Artifact{Name: "tart", Version: "1", Source: "https://a", SHA256: "0a", Size: 3, Fetch: fleet.FetchHost}}}},
			Pods: []inventory.Pod{{Namespace: "ci", Name: "p", UID: "u"}}, Object: &inventory.Object{Kind: "Secret", Name: "s", State: inventory.ObjectMissing}}
	}
	p := &plan.Plan{Owner: fleet.Owner{Name: "acme"}, Hosts: []plan.Host{{Name: first, Server: inventory.Server{ID: serverID(1)}, Seen: plan.HostSeen{Fingerprint: "SHA256:a"}}}}
	want := p.ApprovalOf(action())
	seen := map[string]string{want: "nothing"}
	counts := map[string]func(*plan.Action){
		"kind": func(a *plan.Action) { a.Kind = plan.RemoveStep }, "host": func(a *plan.Action) { a.Host += "x" }, "fleet": func(a *plan.Action) { a.Fleet = "f" },
		"step": func(a *plan.Action) { a.Step = "beta" }, "deferred": func(a *plan.Action) { a.AfterRoot = true },
		"field": func(a *plan.Action) { a.Fields[0].After = "z" }, "before": func(a *plan.Action) { a.Fields[0].Before = "z" },
		"a field less": func(a *plan.Action) { a.Fields = nil }, "script": func(a *plan.Action) { a.Changes[0].Command.Script = "false\n" },
		"argument": func(a *plan.Action) { a.Changes[0].Command.Args[1] = "three" }, "arguments that run together": func(a *plan.Action) { a.Changes[0].Command.Args = []string{"on", "etwo"} },
		"user": func(a *plan.Action) { a.Changes[0].Command.As = plan.Login }, "input": func(a *plan.Action) { a.Changes[0].Input = plan.Kubeconfig },
		"class": func(a *plan.Action) { a.Changes[0].Disruption = plan.Reboot }, "no guard": func(a *plan.Action) { a.Changes[0].Guard = nil },
		"way back": func(a *plan.Action) { a.Changes[0].Guard.Restore.Args[0] = "y" }, "no way back": func(a *plan.Action) { a.Changes[0].Guard.Restore = nil },
		"persist": func(a *plan.Action) { a.Changes[0].Guard.Persist.Script = "q" }, "artifact": func(a *plan.Action) { a.Changes[0].Delivery.Artifact.SHA256 = "0b" },
		"source": func(a *plan.Action) { a.Changes[0].Delivery.Artifact.Source = "https://b" }, "no artifact": func(a *plan.Action) { a.Changes[0].Delivery = nil },
		"twice": func(a *plan.Action) { a.Changes = append(a.Changes, a.Changes[0]) }, "removes": func(a *plan.Action) { a.Changes[0].Removes = true },
		"detached": func(a *plan.Action) { a.Changes[0].Detached = true }, "Pod": func(a *plan.Action) { a.Pods[0].UID = "v" },
		"object": func(a *plan.Action) { a.Object.Name = "t" }, "state of the object": func(a *plan.Action) { a.Object.State = inventory.ObjectDiffers },
		"server": func(a *plan.Action) { a.ServerID = serverID(2) },
	}
	for name, edit := range counts {
		a := action()
		edit(&a)
		got := p.ApprovalOf(a)
		if other, twice := seen[got]; twice {
			t.Errorf("%s: the digest is that of %s", name, other)
		}
		seen[got] = name
	}
	for name, edit := range map[string]func(*plan.Action){
		"reason": func(a *plan.Action) { a.Reason = plan.Reason{Code: plantest.Code("d"), Text: "u"} }, "origin": func(a *plan.Action) { a.Origin.Drift = true },
		"free space":        func(a *plan.Action) { a.Changes[0].Delivery.Free = inventory.Unread[int64]("") },
		"why of the change": func(a *plan.Action) { a.Changes[0].Reason.Text = "pid 4711" },
	} {
		a := action()
		if edit(&a); p.ApprovalOf(a) != want {
			t.Errorf("%s counts", name)
		}
	}
	p.Hosts[0].Seen.Fingerprint = "SHA256:b"
	if p.ApprovalOf(action()) == want {
		t.Error("the key of the host does not count")
	}
}

// TestPlanFileRefuses: whatever is not the very file that was made.
func TestPlanFileRefuses(t *testing.T) {
	t.Parallel()
	w := members(1, 1)
	w.found(1, "bad", good)
	f := fileOf(w, w.plan(t))
	content := must(f.Encode())
	good := string(content)
	if n := len(f.Actions()); n != 1 || !strings.Contains(good, `"digests": {`) {
		t.Fatalf("%d actions are approved:\n%s", n, good)
	}
	for _, tc := range []struct{ name, content, part string }{
		{"nothing", "", "truncated"}, {"half", good[:len(good)/2], "truncated"}, {"more behind it", good + "{}", "data after"},
		{"no JSON", "plan for acme", "invalid character"}, {"another document", `{"format_version":"2.0"}`, "another document"},
		{"another format", strings.Replace(good, `"2.0"`, `"1.0"`, 1), `format_version "1.0"`},
		{"a changed field", strings.Replace(good, `"bad"`, `"worse"`, 1), "modified after it was written"},
		{"a space more", strings.Replace(good, "{", "{ ", 1), "modified after it was written"},
		{"another expiry", strings.Replace(good, "2026-11-22", "2026-11-27", 1), "modified after it was written"},
		{"laid out again", strings.ReplaceAll(strings.Replace(good, "2026-11-22", "2026-11-27", 1), "\n  ", "\n    "), "does not end with its self_digest"},
		{"on one line", strings.ReplaceAll(good, "\n", ""), "does not end with its self_digest"},
		{"other line ends", strings.ReplaceAll(good, "\n", "\r\n"), "does not end with its self_digest"},
		{"its digest not the last", strings.Replace(good, "\n}\n", ",\n  \"plan\": {}\n}\n", 1), "does not end with its self_digest"},
		{"without its digest", strings.Replace(good, "self_digest", "self", 1), "another document"},
		{"a key that is none", resealed(strings.Replace(good, "{", "{\n  \"more\": 1,", 1)), `unknown field "more"`},
		{"a snapshot", `{"format_version":"2.0","configuration":"acme"}`, "another document"},
	} {
		_, err := wire.DecodePlanFile([]byte(tc.content))
		if !errors.Is(err, wire.ErrNoPlanFile) || !strings.Contains(err.Error(), tc.part) || !strings.Contains(err.Error(), "macfleet plan --out FILE") {
			t.Errorf("%s: error %v, wanted one with %q and what to do", tc.name, err, tc.part)
		}
	}
	other := *w.cfg
	other.Environment = "staging"
	wide := *w.cfg
	wide.SSH.User = "m2"
	for _, tc := range []struct {
		name string
		cfg  *fleet.Config
		now  time.Time
		edit func(*wire.PlanFile)
		part string
	}{
		{"in time", w.cfg, noon.Add(24*time.Hour - time.Second), nil, ""},
		{"expired", w.cfg, noon.Add(24 * time.Hour), nil, "it expired 2026-11-22 12:00 UTC"},
		{"from the future", w.cfg, noon.Add(-time.Hour), nil, "a clock is wrong"},
		{"for ever", w.cfg, noon, func(f *wire.PlanFile) { f.ExpiresAt = noon.Add(wire.LongestExpiry + 1) }, "invalid times"},
		{"another environment", &other, noon, nil, `made for "acme", environment "prod", but this configuration is "acme", environment "staging"`},
		{"another configuration", &wide, noon, nil, "or a variable changed"},
		{"another macfleet", w.cfg, noon, func(f *wire.PlanFile) { f.MacfleetVersion = "0.0.9" }, "made by macfleet 0.0.9, and this is " + fleet.Version},
	} {
		f := must(wire.DecodePlanFile(content))
		if tc.edit != nil {
			tc.edit(&f)
		}
		err := f.Check(tc.cfg, tc.now)
		if (err == nil) != (tc.part == "") || err != nil && !strings.Contains(err.Error(), tc.part) {
			t.Errorf("%s: error %v, wanted %q", tc.name, err, tc.part)
		}
	}
}

// resealed enters the digest of a plan file's content, as a person who writes one by hand would.
func resealed(content string) string {
	const key = `"self_digest": "`
	at := strings.Index(content, key) + len(key)
	end := at + strings.Index(content[at:], `"`)
	sum := sha256.Sum256([]byte(content[:at] + content[end:]))
	return content[:at] + "sha256:" + hex.EncodeToString(sum[:]) + content[end:]
}

// TestPlanFileHoldsNothingToRun: neither a script nor its arguments.
func TestPlanFileHoldsNothingToRun(t *testing.T) {
	t.Parallel()
	const planted = "planted-argument"
	h := plan.Host{Name: first, Fleet: "macos", Member: true, Server: inventory.Server{ID: serverID(1)},
		Seen: plan.HostSeen{Key: planted, Facts: plan.Facts{planted: inventory.Present(plan.Answer{Stdout: planted})}}}
	command := plan.Command{Name: planted, Script: planted, Args: []string{planted}}
	p := &plan.Plan{Owner: fleet.Owner{Name: "acme"}, Hosts: []plan.Host{h}, Actions: []plan.Action{{Kind: plan.RunStep, Host: first, ServerID: serverID(1), Step: "alpha",
		Changes: []plan.Change{{Command: command, Guard: &plan.Guard{Restore: &command, Persist: command}}}}}}
	content, err := wire.NewPlanFile(p).Encode()
	if err != nil || strings.Contains(string(content), planted) {
		t.Errorf("%v:\n%s", err, content)
	}
}

// TestGone: what was done meanwhile is named.
func TestGone(t *testing.T) {
	t.Parallel()
	w := members(1, 1)
	w.found(1, "bad", "bad")
	p := w.plan(t)
	p.Actions[1].Deferral = plan.CodeUnreachable.Trouble("later") // the file does not approve it
	f := fileOf(w, p)
	if all := f.Actions(); len(all) != 1 || all[0].Address() != "host."+first+".alpha" {
		t.Errorf("approved: %+v", all)
	}
	w.found(1, good, good)
	clear(w.snap.Hosts)
	gone := f.Gone(w.plan(t))
	if len(gone) != 1 || gone[0].Address() != "host."+first+".alpha" {
		t.Errorf("gone: %+v", gone)
	}
}

// read is what a plan shows to a person and to a program.
func read(t *rapid.T, p *plan.Plan) string {
	var b bytes.Buffer
	view.NewText(&b, 0, false).Plan(p, view.PlanForm{Full: true})
	if err := wire.Write(&b, wire.PlanOf(p)); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestUnapprovedKey: a host whose key is not pinned is changed only with the key that the plan file approves.
func TestUnapprovedKey(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		keys       map[string]string
		pinned     bool
		unapproved bool
	}{
		"as approved":         {map[string]string{"s": "SHA256:now"}, false, false},
		"not in the file":     {nil, true, true},
		"another key":         {map[string]string{"s": "SHA256:then"}, false, true},
		"not contacted then":  {map[string]string{"s": ""}, false, true},
		"its pin vouches now": {map[string]string{"s": "SHA256:then"}, true, false},
	} {
		p := &plan.Plan{Hosts: []plan.Host{{Server: inventory.Server{ID: "s"}, Seen: plan.HostSeen{Fingerprint: "SHA256:now", Pinned: tc.pinned}}}}
		if (plan.Approved{Keys: tc.keys}).Restrict(p, noSteps); p.Hosts[0].Unapproved != tc.unapproved {
			t.Errorf("%s: unapproved %t", name, p.Hosts[0].Unapproved)
		}
	}
}
