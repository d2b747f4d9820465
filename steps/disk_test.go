package steps_test

import (
	"strings"
	"testing"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/scripttest"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps/stepstest"
)

// TestDisk: what was seen of the disk, and what follows. Nothing is deleted that the configuration does not name.
func TestDisk(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		seen stepstest.Disk
		spec fleet.Disk
		want string
	}{
		"empty":                           {},
		"nothing may be deleted":          {stepstest.Disk{Images: stepstest.BakedImages}, fleet.Disk{}, ""},
		"the cache fits":                  {stepstest.Disk{Images: stepstest.BakedImages}, fleet.Disk{CacheBudget: new(110)}, ""},
		"the cache is too large":          {stepstest.Disk{Images: stepstest.BakedImages}, fleet.Disk{CacheBudget: new(100)}, "disk-prune 100"},
		"an old machine":                  {stepstest.Disk{Images: stepstest.BakedImages}, fleet.Disk{Delete: []string{"bake-*"}}, "disk-delete bake-old"},
		"old enough machines":             {stepstest.Disk{Images: stepstest.BakedImages}, fleet.Disk{Delete: []string{"bake-*"}, OlderThan: new(49)}, ""},
		"another name":                    {stepstest.Disk{Images: stepstest.BakedImages}, fleet.Disk{Delete: []string{"test-*"}}, ""},
		"a cached image is not a machine": {stepstest.Disk{Images: stepstest.BakedImages}, fleet.Disk{Delete: []string{"*acme*"}}, ""},
		"one that runs":                   {stepstest.Disk{Images: strings.ReplaceAll(strings.ReplaceAll(stepstest.BakedImages, `"stopped"`, `"running"`), "false", "true")}, fleet.Disk{Delete: []string{"bake-*"}}, ""},
		"an older Tart, without an age":   {stepstest.Disk{Images: `[{"Source":"local","Name":"bake-old","Size":40,"Running":false}]`}, fleet.Disk{Delete: []string{"bake-*"}}, ""},
		"nearly full":                     {stepstest.Disk{FreeKB: 40_000_000}, fleet.Disk{}, "warning 40 GB of the disk are free, fewer than 50; cached images use 0 GB, and there are no stopped virtual machines"},
		"nearly full, and what fills it":  {stepstest.Disk{Images: stepstest.BakedImages, FreeKB: 40_000_000}, fleet.Disk{}, "warning 40 GB of the disk are free, fewer than 50; cached images use 110 GB, and there are bake-old (40 GB); bake-new (41 GB)"},
		"full enough":                     {stepstest.Disk{FreeKB: 40_000_000}, fleet.Disk{WarnBelow: new(40)}, ""},
		"a push runs":                     {stepstest.Disk{Images: stepstest.BakedImages, Work: "812 push bake-old\n"}, fleet.Disk{Delete: []string{"bake-*"}}, "disk-delete bake-old, busy bake-old"},
		"rubbish":                         {stepstest.Disk{Images: "error"}, fleet.Disk{}, "unread"},
	} {
		v := plan.View{Host: stepstest.Host(fleet.Spec{Disk: &tc.spec}), Root: true, Facts: plan.Facts{"disk.state": inventory.Present(tc.seen.Answer())}}
		f := stepstest.Find(t, "disk", v)
		var got []string
		for _, c := range f.Changes {
			got = append(got, c.Command.Name+" "+strings.Join(c.Command.Args, " "))
			if c.Disruption != plan.Drain {
				t.Errorf("%s does not wait until the host is idle", c.Command.Name)
			}
		}
		for _, w := range f.Warnings {
			got = append(got, "warning "+w.Text)
		}
		for _, b := range f.Busy {
			if strings.Contains(b.Text, "bake-old") {
				got = append(got, "busy bake-old")
			}
		}
		if len(f.Unread) > 0 {
			got = append(got, "unread")
		}
		stepstest.Expect(t, name, tc.want, strings.Join(got, ", "))
	}
}

// TestDiskScripts: nothing is deleted while an image is pushed or built, also if that started after the plan.
func TestDiskScripts(t *testing.T) {
	t.Parallel()
	scripttest.InShells(t, func(t *testing.T, shell []string) {
		m := scripttest.New(t, shell, "/usr/local")
		m.Tool("ps", `cat "$STATE/ps"`)
		scripttest.Write(t, m.Path("/usr/local/bin/tart"), "#!/bin/sh\necho \"$*\" >>\""+m.State+"/tart\"\n", 0o755)
		spec := &fleet.Disk{CacheBudget: new(100), Delete: []string{"bake-*"}}
		v := plan.View{Host: stepstest.Host(fleet.Spec{Disk: spec}), Root: true, Facts: plan.Facts{"disk.state": inventory.Present(stepstest.Disk{Images: stepstest.BakedImages}.Answer())}}
		changes := stepstest.StepOf(t, "disk", v.Host).Diff(v).Changes
		for runs, only := range map[string]string{"tart push bake-old ghcr.io/acme/x": "", "packer build x.pkr.hcl": "", "tart clone bake-old ci": "",
			"tart export bake-old": "disk-delete", "tart pull ghcr.io/acme/base:latest": "disk-prune"} {
			m.Set("ps", "812 1 01:02 /usr/local/bin/"+runs+"\n")
			for _, c := range changes {
				if only != "" && c.Command.Name != only {
					continue
				}
				if m.Fails(c.Command, "", "started meanwhile"); m.Get("tart") != "" {
					t.Errorf("%s while %q runs: %q", c.Command.Name, runs, m.Get("tart"))
				}
			}
		}
		m.Unset("ps") // so that ps fails
		for _, c := range changes {
			if m.Fails(c.Command, "", ""); m.Get("tart") != "" {
				t.Errorf("%s, though what runs is unknown: %q", c.Command.Name, m.Get("tart"))
			}
		}
		m.Set("ps", "1 0 01:02 /sbin/launchd\n")
		for _, c := range changes {
			m.Done(c.Command, "")
		}
		stepstest.Expect(t, "commands", "prune --entries caches --space-budget 100\ndelete bake-old", m.Get("tart"))
	})
}
