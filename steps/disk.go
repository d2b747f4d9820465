package steps

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps/kit"
)

var (
	codeDiskNearlyFull = plan.NewCode("disk-nearly-full", plan.Warning, "less of the disk is free than the configuration wants",
		"delete images and virtual machines that are not used (tart delete), or let the disk block do it: cache_budget, delete")
	codeCacheTooLarge = plan.NewCode("image-cache-too-large", plan.Notice, "Tart's cached images use more than the configuration allows")
	codeOldMachines   = plan.NewCode("old-virtual-machines", plan.Notice, "stopped virtual machines are old enough to be deleted")
)

// disk keeps room for the next image. Virtual machines are deleted only by the names and the age that the configuration states, by
// Tart's own command: since 2026-08 they may share disks in a store.
type disk struct{ desired *fleet.Disk }

func (disk) ID() plan.StepID { return "disk" }

func (d disk) Wanted() string {
	if d.desired == nil {
		return ""
	}
	return kit.Wanted(d.settings(diskSeen{}))
}

func (d disk) Probes() []plan.Probe {
	if d.desired == nil {
		return nil
	}
	return []plan.Probe{scripts.Probe(d.ID(), "state", plan.Login)}
}

// stored is a line of tart list.
type stored struct {
	Source   string
	Name     string
	Size     float64 // GB
	Accessed string
	Running  bool
	State    string
}

// diskSeen is what a host answered.
type diskSeen struct {
	free   int64
	images []stored
	now    time.Time
	work   []kit.Working
}

// cached is what cached images use. Tart lists an image by its digest and again by each of its tags.
func (s diskSeen) cached() (gigabytes float64) {
	digests := make(map[string]bool) // by repository
	for _, one := range s.images {
		if repository, _, is := strings.Cut(one.Name, "@"); is {
			digests[repository] = true
		}
	}
	for _, one := range s.images {
		tagged, colon := one.Name, strings.LastIndex(one.Name, ":")
		if colon >= 0 {
			tagged = one.Name[:colon]
		}
		if strings.EqualFold(one.Source, "OCI") && (strings.Contains(one.Name, "@") || !digests[tagged]) {
			gigabytes += one.Size
		}
	}
	return gigabytes
}

// old are the stopped virtual machines whose names and ages the configuration gives up.
func (d disk) old(s diskSeen) []string {
	var out []string
	for _, one := range s.images {
		named := slices.ContainsFunc(d.desired.Delete, func(pattern string) bool {
			is, _ := path.Match(pattern, one.Name) // the loader has checked the pattern
			return is
		})
		used, err := time.Parse(time.RFC3339, one.Accessed)
		if named && err == nil && strings.EqualFold(one.Source, "local") && !one.Running && one.State != "running" && s.now.Sub(used) > time.Duration(*d.desired.OlderThan)*time.Hour {
			out = append(out, one.Name)
		}
	}
	return out
}

func (d disk) settings(s diskSeen) []kit.Setting {
	const within = "within the budget"
	cached := within
	if budget := *d.desired.CacheBudget; budget != 0 && s.cached() > float64(budget) {
		cached = fmt.Sprintf("%.0f GB, and %d GB are allowed", s.cached(), budget)
	}
	return []kit.Setting{kit.Compare("cached images", cached, within), kit.Compare("old virtual machines", kit.ListOr(d.old(s), "none"), "none")}
}

func (d disk) Diff(v plan.View) plan.Finding {
	if d.desired == nil {
		return plan.Finding{}
	}
	r := kit.Reader{Facts: v.Facts}
	s := readDisk(&r, "disk.state")
	all := d.settings(s)
	f := r.Found(all,
		plan.Change{Reason: plan.Reason{Code: codeCacheTooLarge, Text: "cached images use " + all[0].Seen}, Fields: kit.Fields(all[0]), Disruption: plan.Drain,
			Command: scripts.Command("disk-prune", plan.Login, strconv.Itoa(*d.desired.CacheBudget))},
		plan.Change{Reason: plan.Reason{Code: codeOldMachines, Text: all[1].Seen + ": stopped, and not used for " + kit.Count(*d.desired.OlderThan, "hour")}, Fields: kit.Fields(all[1]), Disruption: plan.Drain,
			Command: scripts.Command("disk-delete", plan.Login, d.old(s)...)})
	if len(f.Unread) > 0 {
		return f
	}
	f.Busy = kit.Tasks(s.work)
	if gigabytes := s.free / 1_000_000_000; gigabytes < int64(*d.desired.WarnBelow) {
		f.Warnings = append(f.Warnings, *codeDiskNearlyFull.Trouble(fmt.Sprintf("%d GB of the disk are free, fewer than %d; cached images use %.0f GB, and there are %s",
			gigabytes, *d.desired.WarnBelow, s.cached(), kit.ListOr(s.stopped(), "no stopped virtual machines"))))
	}
	return f
}

// stopped names the stopped virtual machines with their sizes.
func (s diskSeen) stopped() []string {
	var out []string
	for _, one := range s.images {
		if strings.EqualFold(one.Source, "local") && !one.Running {
			out = append(out, fmt.Sprintf("%s (%.0f GB)", one.Name, one.Size))
		}
	}
	return out
}

func readDisk(r *kit.Reader, id string) (s diskSeen) {
	s.free = kit.UnknownSpace
	r.Parts(id, func(p kit.Part) (err error) {
		switch p.Name {
		case "images":
			if p.Exit != 0 {
				return fmt.Errorf("tart list: exit code %d", p.Exit)
			}
			err = json.Unmarshal([]byte(p.Body), &s.images)
		case "space":
			if s.free = kit.FreeSpace(p); s.free == kit.UnknownSpace {
				err = errors.New("df: no free space in its output")
			}
		case "now":
			var seconds int64
			seconds, err = strconv.ParseInt(strings.TrimSpace(p.Body), 10, 64)
			s.now = time.Unix(seconds, 0)
		case "work":
			s.work, err = kit.Works(p)
		default:
			err = kit.ErrPart
		}
		return err
	})
	return s
}
