package steps

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps/kit"
)

var (
	codeUpdatesOn = plan.NewCode("automatic-updates-on", plan.Warning, "macOS may download and install updates by itself, which restarts the Mac")
	codeSpotlight = plan.NewCode("spotlight-on", plan.Warning, "Spotlight indexes the disk, also what builds and virtual machines write")
	codeLeases    = plan.NewCode("leases-too-long", plan.Warning, "an address stays with a virtual machine that is gone: after 253 virtual machines within one lease there is no address left")
	codeUptime    = plan.NewCode("uptime-49-days", plan.Warning, "the Mac has been up for so long that macOS soon opens no network connections any more: it stops after 49 days and 17 hours")
	codeSystem    = plan.NewCode("system-differs", plan.Notice, "a setting of the system is off and should be on")
)

// system turns off what a Mac that runs virtual machines and builds does by itself.
type system struct{ desired *fleet.System }

func (system) ID() plan.StepID { return "system" }

func (s system) Wanted() string {
	if s.desired == nil {
		return ""
	}
	return kit.Wanted(s.settings(systemSeen{}))
}

func (s system) Probes() []plan.Probe {
	if s.desired == nil {
		return nil
	}
	return []plan.Probe{scripts.Probe(s.ID(), "state", plan.Root)}
}

// systemSeen is what a host answered, in normal form.
type systemSeen struct {
	updates, spotlight, leases string
	up                         time.Duration // since the Mac started
}

func (s system) settings(seen systemSeen) []kit.Setting {
	w := s.desired
	return []kit.Setting{
		kit.Compare("automatic updates", seen.updates, kit.Switched(*w.AutomaticUpdates)),
		kit.Compare("Spotlight", seen.spotlight, kit.Switched(*w.Spotlight)),
		kit.Compare("address lease", seen.leases, strconv.Itoa(*w.AddressLease)+" s"),
	}
}

func (s system) Diff(v plan.View) plan.Finding {
	if s.desired == nil {
		return plan.Finding{} // the earlier settings are unknown, so none is restored
	}
	r := kit.Reader{Facts: v.Facts}
	seen := readSystem(&r, "system.state")
	all := s.settings(seen)
	set := func(i int, name string, off plan.Code, on bool, arg string) plan.Change {
		return plan.Change{Reason: plan.Reason{Code: kit.Choose(on, codeSystem, off)}, Fields: kit.Fields(all[i]), Command: scripts.Command("system-set-"+name, plan.Root, arg)}
	}
	w := s.desired
	f := r.Found(all,
		set(0, "updates", codeUpdatesOn, *w.AutomaticUpdates, kit.Choose(*w.AutomaticUpdates, "1", "0")),
		set(1, "spotlight", codeSpotlight, *w.Spotlight, kit.Switched(*w.Spotlight)),
		set(2, "leases", codeLeases, false, strconv.Itoa(*w.AddressLease)))
	if days := int(seen.up / (24 * time.Hour)); *w.RebootAfter > 0 && days >= *w.RebootAfter && len(f.Unread) == 0 {
		f.Restart = &plan.Reason{Code: codeUptime, Text: "the Mac has been up for " + kit.Count(days, "day") + "; after 49 days and 17 hours macOS opens no network connections"}
	}
	return f
}

// updateKeys are the settings that together turn updates off; macOS's default is on for each.
var updateKeys = []string{"AutomaticCheckEnabled", "AutomaticDownload", "AutomaticallyInstallMacOSUpdates", "CriticalUpdateInstall", "ConfigDataInstall"}

func readSystem(r *kit.Reader, id string) (s systemSeen) {
	var on []string
	r.Parts(id, func(p kit.Part) error {
		switch p.Name {
		case "updates":
			values := dictionary(p.Body)
			on = slices.DeleteFunc(slices.Clone(updateKeys), func(key string) bool { return values[key] == "0" })
		case "apps":
			if strings.TrimSpace(p.Body) != "0" {
				on = append(on, "AutoUpdate of apps")
			}
		case "leases":
			s.leases = "macOS default"
			if n, is := dictionary(p.Body)["DHCPLeaseTimeSecs"]; is {
				s.leases = n + " s"
			}
		case "spotlight":
			return s.readSpotlight(p)
		case "boot":
			return s.readBoot(p)
		default:
			return kit.ErrPart
		}
		return nil
	})
	switch len(on) {
	case 0:
		s.updates = "off"
	case len(updateKeys) + 1:
		s.updates = "on"
	default:
		s.updates = "partly on: " + strings.Join(on, ", ")
	}
	return s
}

// readSpotlight reads the volumes that mdutil lists, each with its state on the next line. A volume that cannot be indexed has another
// text there.
func (s *systemSeen) readSpotlight(p kit.Part) error {
	on, off := strings.Contains(p.Body, "Indexing enabled"), strings.Contains(p.Body, "disabled") || strings.Contains(p.Body, "No index")
	if p.Exit != 0 || !on && !off {
		return errors.New("mdutil -a -s: no volume's state in its output")
	}
	s.spotlight = kit.Switched(on)
	return nil
}

// readBoot reads "{ sec = 1763000000, usec = 0 } Wed Nov 13 …" and the time in seconds on the next line.
func (s *systemSeen) readBoot(p kit.Part) error {
	lines := p.Lines()
	if p.Exit != 0 || len(lines) != 2 {
		return errors.New("sysctl kern.boottime and date: not two lines")
	}
	booted, err := bootTime(kit.Part{Body: lines[0]})
	if err != nil {
		return err
	}
	now, err := strconv.ParseInt(lines[1], 10, 64)
	s.up = time.Duration(now-booted) * time.Second
	return err
}

// bootTime reads "{ sec = 1763000000, usec = 0 } …" in seconds since 1970.
func bootTime(p kit.Part) (int64, error) {
	_, text, _ := strings.Cut(p.Body, "sec = ")
	text, _, _ = strings.Cut(text, ",")
	booted, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("kern.boottime: %w", err)
	}
	return booted, nil
}

// dictionary reads the lines "key = value;" of a dictionary as defaults prints it.
func dictionary(text string) map[string]string {
	out := make(map[string]string)
	for line := range strings.Lines(text) {
		if key, value, is := strings.Cut(strings.TrimSpace(line), " = "); is {
			out[strings.Trim(key, `"`)] = strings.TrimSuffix(value, ";")
		}
	}
	return out
}
