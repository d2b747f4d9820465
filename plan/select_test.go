package plan_test

import (
	"path"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

func TestParseSelectorRefuses(t *testing.T) {
	t.Parallel()
	for want, texts := range map[string][]string{
		"use key=value":  {"", "fleet=", "fleet=macos,", ",fleet=macos"},
		"name=fba75":     {"fba75"}, // a host's name without a key
		`unknown key ""`: {"=macos"},
		`unknown key "flete"; the keys are fleet, group, name, ready, type, zone`: {"flete=macos"},
		`unknown key "Fleet"`:         {"Fleet=macos"},
		`unknown key " fleet"`:        {" fleet=macos"},
		`unknown key " group"`:        {"fleet=macos, group=m2"},
		"ready must be true or false": {"ready=yes", "ready=*", "ready=True"},
		`invalid pattern "["`:         {"name=["},
		"invalid pattern":             {"name=a[", "name=[a-", "name=a*b[", "name=[]a]", `name=a\`},
	} {
		for _, text := range texts {
			_, err := plan.ParseSelector(text)
			if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), strings.TrimRight(text, `\`)) {
				t.Errorf("ParseSelector(%q): %v, want it quoted, and %q", text, err, want)
			}
		}
	}
}

// TestSelectorsNeverFailLate: a pattern that parses can be matched with every
// name. A pattern that failed later would silently match nothing.
func TestSelectorsNeverFailLate(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		pattern := rapid.StringMatching(`[a-c*?\[\]\\^-]{1,8}`).Draw(t, "pattern")
		if _, err := plan.ParseSelector("name=" + pattern); err != nil {
			return
		}
		name := rapid.StringMatching(`[a-c-]{0,8}`).Draw(t, "name")
		if _, err := path.Match(pattern, name); err != nil {
			t.Fatalf("%q parses and cannot be matched with %q: %v", pattern, name, err)
		}
	})
}

// only are selectors, which must parse.
func only(texts ...string) []plan.Selector {
	var out []plan.Selector
	for _, text := range texts {
		out = append(out, must(plan.ParseSelector(text)))
	}
	return out
}

func selection(on, exclude []string) plan.Selection {
	return plan.Selection{On: only(on...), Exclude: only(exclude...)}
}

// mixed has four members, one of them not Ready, one of them without a Node,
// and a claim.
func mixed() *world {
	w := newWorld(3, 1, 1)
	w.member("macos", "m2", 1)
	w.member("macos", "m2", 2)
	s := w.member("macos", "m4", 3)
	s.Type, s.Zone = "M4-M", "fr-par-3"
	w.member("runners", "m2", 4)
	w.node(1, first, inventory.Ready)
	w.node(2, second, inventory.NotReady)
	w.free(5)
	w.cfg.Scaleway.Zones = []string{"fr-par-1", "fr-par-3"}
	return w
}

func lastDigit(h plan.Host) string { return h.Server.ID[4:5] }

func TestSelectionNarrowsHosts(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		on, exclude []string
		want        string // last digits of the ids of the hosts
	}{
		{nil, nil, "1 2 5 3 4"},
		{[]string{"name=" + first}, nil, "1"},
		{[]string{"name=*-m2-*"}, nil, "1 2 5 4"},
		{[]string{"name=acme-prod-macos-m2-0000[12]"}, nil, "1 2"},
		{[]string{"name=acme-prod-macos-m2-0000?"}, nil, "1 2 5"},
		{[]string{"name=acme-pool-05"}, nil, ""}, // a claim goes by its final name
		{[]string{"fleet=macos"}, nil, "1 2 5 3"},
		{[]string{"fleet=mac"}, nil, ""},
		{[]string{"group=m2"}, nil, "1 2 5 4"},
		{[]string{"fleet=macos,group=m2"}, nil, "1 2 5"},
		{[]string{"type=M4-M"}, nil, "3"},
		{[]string{"zone=fr-par-3"}, nil, "3"},
		{[]string{"ready=true"}, nil, "1"},
		{[]string{"ready=false"}, nil, "2 5 3 4"},
		{[]string{"fleet=runners", "type=M4-M"}, nil, "3 4"},
		{nil, []string{"fleet=macos"}, "4"},
		{nil, []string{"ready=false", "zone=fr-par-3"}, "1"},
		{[]string{"fleet=macos"}, []string{"group=m4"}, "1 2 5"},
		{[]string{"fleet=macos"}, []string{"fleet=*"}, ""},
		{[]string{"fleet=macos,ready=true", "fleet=macos,ready=false"}, []string{"name=" + second}, "1 5 3"},
	} {
		w := mixed()
		w.sel = selection(tc.on, tc.exclude)
		p := w.plan(t)
		for _, h := range p.Hosts {
			if h.Unknown != nil {
				t.Errorf("%v %v: %s was not contacted", tc.on, tc.exclude, h.Name)
			}
		}
		expect(t, strings.Join(tc.on, " ")+" without "+strings.Join(tc.exclude, " "), tc.want, strings.Join(each(p.Hosts, lastDigit), " "))
		// Nothing outside of the selection is connected to.
		for id := range w.snap.Hosts {
			if _, in := p.HostByServer(id); !in {
				t.Errorf("%v %v: %s is contacted without need", tc.on, tc.exclude, id)
			}
		}
		if w.sel.IsAll() != (tc.on == nil && tc.exclude == nil) {
			t.Errorf("%v %v: IsAll %t", tc.on, tc.exclude, w.sel.IsAll())
		}
	}
}

func TestSelectionNarrowsTheRest(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		on, exclude          []string
		short, rejected, los string
	}{
		{nil, nil, "macos.m2 runners.m2", "acme-pool-07", "acme-prod-macos-m4-00009"},
		{[]string{"fleet=macos"}, nil, "macos.m2", "acme-pool-07", "acme-prod-macos-m4-00009"},
		{[]string{"fleet=macos,group=m2"}, nil, "macos.m2", "acme-pool-07", ""},
		{[]string{"fleet=runners"}, nil, "runners.m2", "", ""},
		{[]string{"name=" + first}, nil, "", "", ""},
		{[]string{"name=*-m4-*"}, nil, "", "", "acme-prod-macos-m4-00009"},
		{nil, []string{"fleet=macos"}, "runners.m2", "", ""},
	} {
		w := newWorld(2, 1, 1)
		w.member("macos", "m2", 1)
		w.pin(9, "acme-prod-macos-m4-00009")
		w.free(7).Status = "starting"
		w.sel = selection(tc.on, tc.exclude)
		p := w.plan(t)
		short := each(p.Shortages, func(s plan.Shortage) string { return s.Fleet + "." + s.Group })
		names := each(p.Rejected, func(r plan.Rejected) string { return r.Server.Name })
		lost := strings.Join(each(p.Lost, func(l plan.Lost) string { return l.Name }), "")
		expect(t, "shortages, rejected and lost of "+strings.Join(tc.on, " ")+" without "+strings.Join(tc.exclude, " "),
			[]string{tc.short, tc.rejected, tc.los}, []string{strings.Join(short, " "), strings.Join(names, " "), lost})
	}
}

func TestCheckSelection(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		on   string
		want []string // parts of the error; none = it names something
	}{
		{"fleet=macos", nil},
		{"fleet=mac*", nil},
		{"name=" + first, nil},
		{"name=acme-prod-macos-m2-00005", nil}, // a claim's final name
		{"type=M2-L", nil},
		{"zone=fr-par-3", nil},
		{"ready=false", nil},
		{"fleet=maocs", []string{"fleet=maocs", `did you mean "macos"?`}},
		{"fleet=zzz", []string{"no host has fleet=zzz", "known: macos, runners"}},
		{"group=m3", []string{"group=m3", "did you mean"}},
		{"type=M2L", []string{`did you mean "M2-L"?`}},
		{"zone=fr-par-2", []string{"did you mean", "fr-par-"}},
		{"zone=nl-ams-1x", []string{"known: fr-par-1, fr-par-3"}},
		{"name=acme-prod-macos-m2-0001", []string{"did you mean", first}},
		{"name=somebody-else", []string{"hosts are acme-prod-"}},
		{"fleet=macos,name=x*", []string{"name=x*"}},
	} {
		w := mixed()
		w.server(8, "somebody-else") // a stray is not a host
		sel := plan.Selection{On: only(tc.on)}
		for _, s := range []plan.Selection{sel, {Exclude: sel.On}} {
			err := plan.CheckSelection(w.cfg, w.snap, s)
			if (err != nil) != (tc.want != nil) {
				t.Errorf("%s: %v", tc.on, err)
				continue
			}
			for _, part := range tc.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%s: %q lacks %q", tc.on, err, part)
				}
			}
		}
	}
	if err := plan.CheckSelection(mixed().cfg, plan.Snapshot{}, plan.Selection{}); err != nil {
		t.Errorf("no selection: %v", err)
	}
}

// TestContradictionIsNoCleanFleet refuses selections that leave nothing.
func TestContradictionIsNoCleanFleet(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		on, exclude []string
		wrong       string // part of the error; "": it is none
	}{
		{[]string{"group=m4,fleet=runners"}, nil, "none matches all of group=m4,fleet=runners; for hosts that match one of several selectors, repeat --on"},
		{[]string{"fleet=macos,fleet=runners", "group=m4,fleet=runners"}, []string{"name=" + first}, "fleet=macos,fleet=runners or all of group=m4"},
		{nil, []string{"fleet=*"}, "--exclude matches all hosts"},
		{[]string{"fleet=macos"}, []string{"fleet=macos"}, "--exclude matches all hosts that --on selects"},
		{[]string{"fleet=macos"}, []string{"fleet=runners"}, ""},
		{[]string{"fleet=macos,ready=true"}, []string{"ready=true"}, ""}, // what is Ready changes
	} {
		w := mixed()
		err := plan.CheckSelection(w.cfg, w.snap, selection(tc.on, tc.exclude))
		if (err != nil) != (tc.wrong != "") || err != nil && !strings.Contains(err.Error(), tc.wrong) {
			t.Errorf("on %v, exclude %v: %v", tc.on, tc.exclude, err)
		}
	}
}

// TestGivenBackByHand: a name of the pool ends nothing. A member with one stays a member, also if it does not answer, and no other
// server is claimed in its place; once its release was finished it is free.
func TestGivenBackByHand(t *testing.T) {
	t.Parallel()
	for _, answers := range []bool{true, false} {
		for name, witness := range map[string]func(*world){
			"pin":  func(w *world) { w.pin(1, first) },
			"Node": func(w *world) { w.node(1, first, inventory.Ready) },
			"copy": func(w *world) {
				w.snap.Remembered = []plan.Pin{{ServerID: serverID(1), Name: first, Key: "ssh-ed25519 1"}}
			},
		} {
			w := newWorld(1, 0, 0)
			w.free(1).Name = "acme-pool-99"
			w.free(2)
			if witness(w); !answers {
				w.away(1, plan.CodeUnreachable)
			}
			asked := plan.Next(w.cfg, plan.Snapshot{Servers: w.snap.Servers, Pins: w.snap.Pins, Remembered: w.snap.Remembered, Nodes: w.snap.Nodes, Hosts: map[string]plan.HostSeen{}}, plan.Selection{})
			if len(asked) != 1 || asked[0].ID != serverID(1) {
				t.Errorf("%s: asked %v", name, asked)
			}
			p := w.plan(t)
			if h := oneHost(t, p); !h.Member || h.Name != first || len(claimed(p)) > 0 || p.Summarise().Complete() && !answers {
				t.Errorf("%s: %+v, claims %v", name, h, claimed(p))
			}
			w.snap.Pins, w.snap.Nodes = nil, inventory.Present([]inventory.Node{}) // as a release leaves it
			w.released(1)
			if p := w.plan(t); len(claimed(p)) != 1 || oneHost(t, p).Member {
				t.Errorf("%s, released: claims %v", name, claimed(p))
			}
		}
	}
}

// TestWrongTypeAndFamily shows a member that is not what its group wants, and
// does not skip it because it cannot be replaced.
func TestWrongTypeAndFamily(t *testing.T) {
	t.Parallel()
	for code, change := range map[string]func(*world){
		"wrong-type": func(w *world) { w.snap.Servers[0].Type = "M4-S" },
		"wrong-os":   func(w *world) { w.change(1, func(h *plan.HostSeen) { h.OSVersion = inventory.Present("15.7") }) },
		"":           func(w *world) { w.change(1, func(h *plan.HostSeen) { h.OSVersion = inventory.Present("99.1") }) },
	} {
		w := members(1, 1)
		change(w)
		p := w.plan(t)
		got := ""
		if len(p.Actions) > 0 {
			got = p.Actions[0].Reason.Code.String()
		}
		if got != code || p.Summarise().Complete() != (code == "") || p.Runnable() != nil {
			t.Errorf("want %q: %+v", code, p.Actions)
		}
	}
}

// TestStepsNarrow: a run of some steps compares and changes only these. It
// claims, renames, releases and replaces nothing, and contacts only members.
func TestStepsNarrow(t *testing.T) {
	t.Parallel()
	w := newWorld(1, 0, 3)
	w.member("macos", "m2", 1).Name = "renamed-by-hand"
	w.pin(1, first)
	w.member("macos", "m2", 2).Type = "M4-S"
	w.member("macos", "m2", 3)
	for n := 1; n <= 3; n++ {
		w.found(n, "edited", "edited")
	}
	w.unmark(3)
	w.free(8)
	w.server(9, "somebody-else")
	w.sel.Steps = []plan.StepID{"beta"}
	p := w.plan(t)
	expect(t, "actions", []string{first + " beta beta-off D", second + " beta beta-off D",
		third + " marker marker-missing D", third + " beta beta-off ?"}, lines(p))
	expect(t, "asked", [][]string{{"renamed-by-hand", second, third}}, w.asked)
	if !p.Narrowed || len(p.Shortages)+len(p.Rejected) != 0 || w.sel.IsAll() {
		t.Errorf("narrowed %t, all %t, shortages %v, rejected %v", p.Narrowed, w.sel.IsAll(), p.Shortages, p.Rejected)
	}
	w.found(2, "edited", good)
	clear(w.snap.Hosts)
	for _, h := range w.plan(t).Hosts {
		if h.Name == second && (h.Converged != plan.Converged || len(h.Verified) != 1 || h.MarkerStale()) {
			t.Errorf("a host whose one step matches: %+v", h)
		}
	}
	if err := plan.CheckSelection(w.cfg, w.snap, plan.Selection{Steps: w.sel.Steps}); err != nil {
		t.Error(err)
	}
	// A claim is not a host of such a run.
	err := plan.CheckSelection(w.cfg, w.snap, plan.Selection{Steps: w.sel.Steps, On: only("name=acme-prod-runners-m2-00008")})
	if err == nil {
		t.Error("a server that would be claimed is selected")
	}
}

func TestParseSteps(t *testing.T) {
	t.Parallel()
	w := newWorld(0, 0, 0)
	got, err := plan.ParseSteps([]string{"beta", "alpha"}, w.steps)
	if err != nil {
		t.Fatal(err)
	}
	expect(t, "steps", []plan.StepID{"beta", "alpha"}, got)
	for name, want := range map[string]string{"alpa": `did you mean "alpha"?`, "zzzzz": "the steps are alpha, beta", "": "the steps are", "alpha,beta": "the steps are"} {
		if _, err := plan.ParseSteps([]string{"alpha", name}, w.steps); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", name, err)
		}
	}
}
