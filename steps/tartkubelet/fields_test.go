package tartkubelet_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps"
	"github.com/macfleet/macfleet/steps/launchd"
	"github.com/macfleet/macfleet/steps/stepstest"
)

// fullKubelet is a builder whose every value is set, before anything was done.
func fullKubelet() *kubeletCase {
	c := newKubeletCase()
	c.mac = stepstest.FactoryKubelet()
	c.view.Node = inventory.Absent[inventory.Node]()
	c.spec = fleet.Spec{Tart: &fleet.Tart{Artifact: stepstest.TartArtifact()}, GithubRunner: &fleet.GithubRunner{},
		TartKubelet: &fleet.TartKubelet{Artifact: stepstest.KubeletArtifact(), MaxPods: new(5), Labels: map[string]string{"acme.io/zone": "b", "acme.io/rack": "7"},
			Legacy: []string{"com.example.node"}, Reserve: &fleet.Reserve{CPU: new(4), Memory: new("4Gi")}}}
	c.host = stepstest.Host(c.spec)
	c.host.LabelPrefix = "acme.dev"
	c.view.Server.Type = "M2-L"
	return c
}

// scenes are the ways on which a host's kubelet gets its job: all render it.
func scenes() map[string]func(*kubeletCase) {
	return map[string]func(*kubeletCase){
		"first set-up": func(*kubeletCase) {},
		"roll": func(c *kubeletCase) { // of a new program, with the wanted job in launchd
			c.settle()
			c.older()
		},
		"changed plist": func(c *kubeletCase) {
			c.settle()
			c.mac.Plist = strings.Replace(c.mac.Plist, "--max-pods=", "--max-pods=1", 1)
		},
		"repair": func(c *kubeletCase) {
			c.settle()
			page(stepstest.KubeletWaits, "")(c)
		},
		"after another version of it": func(c *kubeletCase) { c.mac = stepstest.SettledKubelet(name) },
	}
}

// settle makes the Mac one on which all was done.
func (c *kubeletCase) settle() {
	v := c.view
	for _, s := range steps.For(c.host) {
		if s.ID() != kubeletID {
			continue
		}
		v.Host, v.Facts = c.host, stepstest.With(nil, map[string]plan.Answer{s.Probes()[0].ID: stepstest.FactoryKubelet().Answer()})
		changes := s.Diff(v).Changes
		j, err := launchd.ParsePlist(changes[len(changes)-1].Command.Args[1])
		if err != nil {
			panic(err) // the renderer's own
		}
		c.mac = stepstest.SettledKubelet(name)
		c.mac.Args, c.mac.Plist = j.Arguments, changes[len(changes)-1].Command.Args[1]
	}
}

// rendered are the arguments of the job that a way brings to a host, and what else it installs.
func (c *kubeletCase) rendered(t *testing.T) (args []string, rest string) {
	t.Helper()
	f := c.finding(t)
	if len(f.Changes) == 0 {
		t.Fatalf("nothing is done: %s", stepstest.Brief(f))
	}
	run := f.Changes[len(f.Changes)-1].Command
	j, err := launchd.ParsePlist(run.Args[1])
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range f.Changes[:len(f.Changes)-1] {
		rest += change.Command.Name + " " + strings.Join(change.Command.Args, " ") + "\n"
	}
	return append(j.Arguments, "user "+j.User, "home "+j.Environment["HOME"]), rest + strings.Join(run.Args[3:], " ")
}

// TestKubeletArguments: on every way a host gets every argument. That one was lost
// on an update, the garbage collection's or the provider id's, is how fleets broke.
func TestKubeletArguments(t *testing.T) {
	t.Parallel()
	want := []string{"/usr/local/bin/tart-kubelet", "--node-name=" + name, "--kubeconfig=/etc/tart-kubelet/kubeconfig", "--host-cpu=6", "--host-memory-mb=12288",
		"--max-pods=5", "--node-labels=acme.dev/fleet=macos,acme.dev/group=m2,acme.io/rack=7,acme.io/zone=b,node.kubernetes.io/instance-type=M2-L,topology.kubernetes.io/region=fr-par,topology.kubernetes.io/zone=fr-par-1",
		"--provider-id=scw-applesilicon://fr-par-1/0a1b2c3d-0000-4000-8000-000000000000", "--disable-vm-gc", "user m1", "home /Users/m1"}
	for scene, edit := range scenes() {
		c := fullKubelet()
		edit(c)
		got, _ := c.rendered(t)
		stepstest.Expect(t, scene, want, got)
	}
	bare := newKubeletCase()
	bare.mac = stepstest.FactoryKubelet()
	bare.view.Server = inventory.Server{}
	args, _ := bare.rendered(t)
	for _, arg := range args {
		if slices.ContainsFunc([]string{"--node-labels", "--provider-id", "--disable-vm-gc", "--node-ip-source"}, func(flag string) bool { return strings.HasPrefix(arg, flag) }) || strings.HasSuffix(arg, "=") {
			t.Errorf("an empty flag is rendered: %s", arg)
		}
	}
}

// TestEveryFieldReachesTheKubelet walks the specification of a host, and changes
// one value at a time: on every way something that is brought to the host must
// change with it. A field that this test does not know fails it.
func TestEveryFieldReachesTheKubelet(t *testing.T) {
	t.Parallel()
	walked := 0
	var walk func(path string, at func(*fleet.Host) reflect.Value)
	walk = func(path string, at func(*fleet.Host) reflect.Value) {
		c := fullKubelet()
		v := at(&c.host)
		switch {
		case strings.HasPrefix(path, ".Spec.") && !strings.HasPrefix(path, ".Spec.TartKubelet") && path != ".Spec.GithubRunner":
			return // other steps'
		case strings.HasPrefix(path, ".Tailnet"):
			return // the step tailscale reads it
		case path == ".Spec.TartKubelet.Legacy":
			return // TestKubeletTakesOver: they go where they are
		case path == ".Spec.GithubRunner": // that there is one counts, not what is in it
		case v.Kind() == reflect.Struct && v.Type() != reflect.TypeFor[fleet.Artifact]():
			for i := range v.NumField() {
				walk(path+"."+v.Type().Field(i).Name, func(h *fleet.Host) reflect.Value { return reflect.Indirect(at(h)).Field(i) })
			}
			return
		case v.Kind() == reflect.Pointer && v.Type().Elem().Kind() == reflect.Struct && path != ".Spec.GithubRunner" && v.Type() != reflect.TypeFor[*fleet.Artifact]():
			for i := range v.Elem().NumField() {
				walk(path+"."+v.Elem().Type().Field(i).Name, func(h *fleet.Host) reflect.Value { return at(h).Elem().Field(i) })
			}
			return
		}
		walked++
		for scene, edit := range scenes() {
			one, other := fullKubelet(), fullKubelet()
			move(t, path, at(&other.host))
			other.spec = other.host.Spec
			edit(one)
			edit(other)
			if path == ".Spec.TartKubelet.Artifact" && scene != "first set-up" && scene != "roll" {
				continue // its program is right, and stays
			}
			oneArgs, oneRest := one.rendered(t)
			otherArgs, otherRest := other.rendered(t)
			if slices.Equal(oneArgs, otherArgs) && oneRest == otherRest {
				t.Errorf("%s: %s does not reach the host", scene, path)
			}
		}
	}
	walk("", func(h *fleet.Host) reflect.Value { return reflect.ValueOf(h).Elem() })
	if walked < 11 {
		t.Errorf("only %d values were walked", walked)
	}
}

// move gives a value that differs. Blocks without values go away.
func move(t *testing.T, path string, v reflect.Value) {
	t.Helper()
	switch x := v.Interface().(type) {
	case string:
		v.SetString("moved-" + x)
	case *string:
		v.Set(reflect.ValueOf(new("3Gi")))
	case *int:
		v.Set(reflect.ValueOf(new(*x + 1)))
	case map[string]string:
		v.Set(reflect.ValueOf(map[string]string{"acme.io/moved": "yes"}))
	case *fleet.Artifact:
		a := *x
		a.SHA256, a.Version = strings.Repeat("99", 32), "9.9.9"
		v.Set(reflect.ValueOf(&a))
	case *fleet.GithubRunner:
		v.Set(reflect.ValueOf((*fleet.GithubRunner)(nil)))
	default:
		t.Fatalf("teach this test about %s, and the kubelet's renderer", path)
	}
}

// TestKubeletFactsAreOfTheHost: another configuration moves no fact, so a configuration that
// was not applied yet never looks like drift. What moved on the host does.
func TestKubeletFactsAreOfTheHost(t *testing.T) {
	t.Parallel()
	proven := newKubeletCase().finding(t)
	for name, desired := range map[string]func(*kubeletCase){
		"pods": func(c *kubeletCase) { c.want(func(s *fleet.Spec) { s.TartKubelet.MaxPods = new(7) }) },
		"labels": func(c *kubeletCase) {
			c.want(func(s *fleet.Spec) { s.TartKubelet.Labels = map[string]string{"tier": "x"} })
		},
		"builder": func(c *kubeletCase) { c.want(func(s *fleet.Spec) { s.GithubRunner = &fleet.GithubRunner{} }) },
		"reserve": func(c *kubeletCase) {
			c.want(func(s *fleet.Spec) { s.TartKubelet.Reserve = &fleet.Reserve{CPU: new(1), Memory: new("1Gi")} })
		},
		"address": func(c *kubeletCase) {
			j, _ := c.view.Join.Get()
			j.Server = "https://elsewhere.acme.dev:6443"
			c.view.Join = inventory.Present(j)
		},
	} {
		c := newKubeletCase()
		desired(c)
		f := c.finding(t)
		stepstest.Expect(t, name+": facts", proven.Facts, f.Facts)
		if len(f.Changes) == 0 {
			t.Errorf("%s: nothing is configured: %s", name, stepstest.Brief(f))
		}
	}
	for name, edit := range map[string]func(*kubeletCase){
		"file": func(c *kubeletCase) { c.mac.Plist = strings.Replace(c.mac.Plist, "--max-pods=", "--max-pods=1", 1) },
		"job":  func(c *kubeletCase) { c.mac.Args = append(slices.Clone(c.mac.Args), "--x") },
	} {
		c := newKubeletCase()
		edit(c)
		if f := c.finding(t); f.Facts == proven.Facts {
			t.Errorf("%s: the facts did not move", name)
		}
	}
}

// TestPlaceLabels: what the provider says of a server reaches its Node, and nothing that the cluster would refuse.
func TestPlaceLabels(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ zone, kind, want string }{
		{"fr-par-1", "M2-L", "node.kubernetes.io/instance-type=M2-L,topology.kubernetes.io/region=fr-par,topology.kubernetes.io/zone=fr-par-1"},
		{"nl-ams-12", "", "topology.kubernetes.io/region=nl-ams,topology.kubernetes.io/zone=nl-ams-12"},
		{"dc2", "M4 XL", "topology.kubernetes.io/zone=dc2"},
		{"dc-", "-", ""},
	} {
		c := newKubeletCase()
		c.mac = stepstest.FactoryKubelet()
		c.view.Server.Zone, c.view.Server.Type = tc.zone, tc.kind
		args, _ := c.rendered(t)
		got := ""
		for _, arg := range args {
			if labels, is := strings.CutPrefix(arg, "--node-labels="); is {
				got = labels
			}
		}
		if got != tc.want {
			t.Errorf("%s, %s: %q, want %q", tc.zone, tc.kind, got, tc.want)
		}
	}
}
