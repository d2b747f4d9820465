package adopt_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/adopt"
)

// rented returns a server with an id that follows from its number.
func rented(n int, name, serverType string) inventory.Server {
	return inventory.Server{ID: fmt.Sprintf("%08x-0000-4000-8000-000000000000", n), Name: name, Type: serverType, Zone: "fr-par-1",
		OSFamily: "Tahoe", Status: "ready", Delivered: true}
}

func all(names ...string) []inventory.Server {
	var out []inventory.Server
	for i, name := range names {
		name, serverType, _ := strings.Cut(name, " ")
		if serverType == "" {
			serverType = "M2-L"
		}
		out = append(out, rented(i+1, name, serverType))
	}
	return out
}

// lines renders a draft, a line for each group.
func lines(d adopt.Draft) []string {
	var out []string
	for _, f := range d.Fleets {
		for _, g := range f.Groups {
			text := f.Name + "." + g.Name + " " + g.Type + " " + f.OS
			for _, s := range g.Servers {
				text += " " + s.Name
			}
			out = append(out, text)
		}
	}
	for _, l := range d.Left {
		out = append(out, "- "+l.Server.Name+": "+l.Why)
	}
	return out
}

func expect(t *testing.T, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

// TestFleetsAreThoseAPersonWouldMake groups servers by what their names share.
func TestFleetsAreThoseAPersonWouldMake(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		servers []inventory.Server
		want    []string
	}{
		{"numbers", all("ci-runner-01", "ci-runner-02", "image-builder-1"),
			[]string{"builder.m2 M2-L Tahoe image-builder-1", "runners.m2 M2-L Tahoe ci-runner-01 ci-runner-02"}},
		{"a number without a hyphen", all("runner1", "runner12"), []string{"runners.m2 M2-L Tahoe runner1 runner12"}},
		{"what all have in common is dropped", all("acme-ios-runner-a", "acme-ios-runner-b", "acme-android-1"),
			[]string{"android.m2 M2-L Tahoe acme-android-1", "runners.m2 M2-L Tahoe acme-ios-runner-a acme-ios-runner-b"}},
		{"the same last word", all("ios-runner-1", "web-runner-1"),
			[]string{"iosrunner.m2 M2-L Tahoe ios-runner-1", "webrunner.m2 M2-L Tahoe web-runner-1"}},
		{"names of Kubernetes objects", all("ci-runners-fleet-7d9c8-x2k4p", "ci-runners-fleet-7d9c8-q9z5w"),
			[]string{"runners.m2 M2-L Tahoe ci-runners-fleet-7d9c8-q9z5w ci-runners-fleet-7d9c8-x2k4p"}},
		{"nothing but noise", all("mac-mini-01", "macmini-2", "m4-01"), []string{"macs.m2 M2-L Tahoe m4-01 mac-mini-01 macmini-2"}},
		{"two types of one chip", all("runner-1 M2-L", "runner-2 M2-M", "runner-3 M4-M"),
			[]string{"runners.m2l M2-L Tahoe runner-1", "runners.m2m M2-M Tahoe runner-2", "runners.m4 M4-M Tahoe runner-3"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r := adopt.Request{Owner: fleet.Owner{Name: "x"}, PoolPrefix: "x-pool-", Servers: tc.servers, All: tc.servers}
			want := lines(adopt.Plan(r))
			expect(t, want, tc.want)
			slices.Reverse(r.Servers)
			expect(t, lines(adopt.Plan(r)), want)
		})
	}
}

// TestTheSystemThatRunsDecides: an image that was installed years ago says nothing of the macOS that runs now.
func TestTheSystemThatRunsDecides(t *testing.T) {
	t.Parallel()
	servers := all("runner-1", "runner-2")
	r := adopt.Request{Owner: fleet.Owner{Name: "acme"}, PoolPrefix: "pool-", Servers: servers, All: servers,
		Seen: map[string]adopt.Seen{servers[1].ID: {OSFamily: "Sequoia"}, servers[0].ID: {Trouble: "no route to host"}}}
	if d := adopt.Plan(r); len(d.Unread) != 1 || d.Unread[0].Server.Name != "runner-1" || d.Unread[0].Why != "no route to host" {
		t.Errorf("not read: %+v", d.Unread)
	}
	expect(t, lines(adopt.Plan(r)), []string{"runnerssequoia.m2 M2-L Sequoia runner-2", "runnerstahoe.m2 M2-L Tahoe runner-1"})
}

// TestWhatCannotBeAdopted is left out with the reason, and is in no fleet.
func TestWhatCannotBeAdopted(t *testing.T) {
	t.Parallel()
	for reason, edit := range map[string]func(*inventory.Server, *adopt.Request){
		"cannot be the name":        func(s *inventory.Server, _ *adopt.Request) { s.Name = "Runner_1" },
		"another server":            func(s *inventory.Server, r *adopt.Request) { r.All = append(r.All, rented(9, s.Name, "M4-S")) },
		"acme-prod manages":         func(s *inventory.Server, _ *adopt.Request) { s.Name = "acme-prod-macos-m2-00000" },
		"looks like a name that":    func(s *inventory.Server, _ *adopt.Request) { s.Name = "acme-macos-m2-12345" },
		"globex-prod manages":       func(s *inventory.Server, r *adopt.Request) { r.Seen[s.ID] = adopt.Seen{Owner: "globex-prod"} },
		"deletion is scheduled":     func(s *inventory.Server, _ *adopt.Request) { s.DeletionScheduled = true },
		"not delivered":             func(s *inventory.Server, _ *adopt.Request) { s.Delivered = false },
		"that of a pool server":     func(s *inventory.Server, _ *adopt.Request) { s.Name = "other-pool-7" },
		"controller is claiming it": func(s *inventory.Server, _ *adopt.Request) { s.Name = "x-claim-pending-1" },
		"runs Linux":                func(s *inventory.Server, _ *adopt.Request) { s.OSFamily = "Linux" },
		"family is unknown":         func(s *inventory.Server, _ *adopt.Request) { s.OSFamily = "" },
	} {
		r := adopt.Request{Owner: fleet.Owner{Name: "acme"}, PoolPrefix: "pool-", Seen: map[string]adopt.Seen{}}
		s := rented(1, "runner-1", "M2-L")
		edit(&s, &r)
		r.Servers, r.All = []inventory.Server{s}, append(r.All, s)
		d := adopt.Plan(r)
		if d.Hosts() != 0 || len(d.Left) != 1 || !strings.Contains(d.Left[0].Why, reason) || d.Left[0].Fix == "" {
			t.Errorf("%s: %+v", reason, d)
		}
	}
	pooled := all("pool-1")
	if d := adopt.Plan(adopt.Request{Owner: fleet.Owner{Name: "acme"}, PoolPrefix: "pool-", Servers: pooled, All: pooled}); d.Pooled != 1 || d.Hosts()+len(d.Left) != 0 {
		t.Errorf("in the pool: %+v", d)
	}
}

// TestGroupsWithRoom: servers join a group that exists only if it lacks as many hosts, or one would be released
// to make room.
func TestGroupsWithRoom(t *testing.T) {
	t.Parallel()
	has := []fleet.Fleet{{Name: "runners", OS: "Tahoe", Groups: []fleet.Group{{Name: "m2", Type: "M2-L", Replicas: 9}}}}
	servers := all("runner-1", "runner-2")
	for room, want := range map[int][]string{
		2: {"runners.m2 M2-L Tahoe runner-1 runner-2"},
		1: {"runners2.m2 M2-L Tahoe runner-1 runner-2"},
	} {
		r := adopt.Request{Owner: fleet.Owner{Name: "acme"}, PoolPrefix: "pool-", Servers: servers, All: servers, Fleets: has,
			Room: map[fleet.Place]int{{Fleet: "runners", Group: "m2"}: room}}
		d := adopt.Plan(r)
		expect(t, lines(d), want)
		if wrote := strings.Contains(d.Import(), "fleet \""); wrote == (room == 2) {
			t.Errorf("room for %d: fleet block written: %t", room, wrote)
		}
	}
}

// TestConfigurationNames: no server may have a name that the configuration gives to others.
func TestConfigurationNames(t *testing.T) {
	t.Parallel()
	servers := all("acme-ios-runner-00001", "acme-pool-1")
	expect(t, adopt.Names(servers, "My Macs!"), []string{"acme", "acme-macs", "my-macs", "macs"})
	expect(t, adopt.Pools(servers), []string{"acme-pool-"})
	for name, want := range map[string]bool{"acme": false, "acme-macs": true, "my-macs": true} {
		if got := adopt.Fits(fleet.Owner{Name: name}, "acme-pool-", servers); got != want {
			t.Errorf("%s fits: %t", name, got)
		}
	}
}

// TestTextsOfTheProvider cannot become expressions of the configuration.
func TestTextsOfTheProvider(t *testing.T) {
	t.Parallel()
	d := adopt.Plan(adopt.Request{Owner: fleet.Owner{Name: "acme"}, PoolPrefix: "pool-", Servers: []inventory.Server{
		{ID: `${file("x")}`, Name: "runner-1", Type: `%{ if true }`, OSFamily: `"}`, Delivered: true}}})
	got := d.Import()
	for _, want := range []string{`server_id = "$${file(\"x\")}"`, `type = "%%{ if true }"`, `os = "\"}"`} {
		if !strings.Contains(got, want) {
			t.Errorf("%s lacks %s", got, want)
		}
	}
}
