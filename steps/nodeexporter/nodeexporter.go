// Package nodeexporter is the step that serves a host's metrics in the tailnet only.
package nodeexporter

import (
	"embed"
	"strconv"
	"strings"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps/boundary"
	"github.com/macfleet/macfleet/steps/kit"
	"github.com/macfleet/macfleet/steps/launchd"
)

//go:embed scripts
var files embed.FS

var scripts = kit.ScriptsOf(files)

// The paths of the exporter on a host.
const (
	label   = "dev.macfleet.node-exporter"
	list    = "/Library/LaunchDaemons/" + label + ".plist"
	program = "/usr/local/bin/node_exporter"
	wrapper = "/usr/local/lib/macfleet/node_exporter-run"
	logFile = "/var/log/node_exporter.log"
)

// The step's codes.
var (
	codeMissing   = plan.NewCode("exporter-missing", plan.Warning, "node_exporter is not installed")
	codeOutdated  = plan.NewCode("exporter-outdated", plan.Notice, "the version of node_exporter is not the configured one")
	codeEdited    = plan.NewCode("exporter-edited", plan.Warning, "the program, the wrapper or the job of node_exporter was modified")
	codeDown      = plan.NewCode("exporter-down", plan.Critical, "node_exporter serves no metrics in the tailnet")
	codeNotWanted = plan.NewCode("exporter-not-wanted", plan.Notice, "the configuration no longer wants metrics of the host")
)

type nodeExporter struct {
	desired *fleet.NodeExporter
	host    fleet.Host
}

// New returns the step for a host.
func New(h fleet.Host) plan.Step { return nodeExporter{h.Spec.NodeExporter, h} }

func (nodeExporter) ID() plan.StepID { return "node_exporter" }

const probe = "node_exporter.state"

// Probes returns the probe for the exporter's files and job, and the one for listeners, which other steps ask, too.
func (n nodeExporter) Probes() []plan.Probe {
	own := kit.ProbeOrTraces(n.desired != nil, scripts.Probe(n.ID(), "state", plan.Root))
	if n.desired == nil {
		return own
	}
	return append(own, boundary.Probe())
}

// port returns the port as text.
func (n nodeExporter) port() string {
	if n.desired == nil || n.desired.Port == nil {
		return ""
	}
	return strconv.Itoa(*n.desired.Port)
}

// DefaultCollectors are those that a Mac's dashboards need. The program for darwin has a few more.
var DefaultCollectors = []string{"boottime", "cpu", "diskstats", "filesystem", "loadavg", "meminfo", "netdev", "os", "thermal", "time", "uname"}

// flags are those of the program besides its address.
func (n nodeExporter) flags() []string {
	out := []string{"--collector.disable-defaults"}
	all := DefaultCollectors
	if n.desired != nil && len(n.desired.Collectors) > 0 {
		all = n.desired.Collectors
	}
	for _, c := range all {
		out = append(out, "--collector."+c)
	}
	return out
}

// script renders the program of the job. It waits for the tailnet address and never uses another: `tailscale ip` also
// prints the address of a host whose node key has expired.
func (n nodeExporter) script() string {
	return `#!/bin/sh
# Managed by macfleet. Serves metrics on the host's address in the tailnet, and ends without one.
PATH=/usr/bin:/bin:/usr/sbin:/sbin
/usr/local/bin/tailscale wait --timeout=60s || exit 1
address=$(/usr/local/bin/tailscale ip -4) || exit 1
case $address in
  100.6[4-9].* | 100.[7-9][0-9].* | 100.1[01][0-9].* | 100.12[0-7].*) ;;
  *) echo "no address in the tailnet: $address" >&2; exit 1 ;;
esac
exec ` + program + ` --web.listen-address="$address:` + n.port() + `" ` + strings.Join(n.flags(), " ") + "\n"
}

func (n nodeExporter) job() launchd.Job {
	return launchd.Job{Label: label, User: n.host.User, Arguments: []string{wrapper}, RunAtLoad: true, KeepAlive: true, Throttle: 10, Stdout: logFile, Stderr: logFile}
}

// seen is the state of the exporter on a host.
type seen struct {
	receipt        kit.Receipt
	program        kit.InstalledFile
	wrapper, plist kit.FileState
	loaded         bool
	service        launchd.Service
	kept           []string
	free           int64
	boundary       boundary.Seen
}

func read(r *kit.Reader, id string) seen {
	s := seen{free: kit.UnknownSpace}
	r.Parts(id, func(p kit.Part) (err error) {
		switch p.Name {
		case "file":
			mode, path, _ := strings.Cut(p.Of, " ")
			switch path {
			case list:
				s.plist = kit.FileState{Text: p.Body, Mode: mode}
			case wrapper:
				s.wrapper = kit.FileState{Text: p.Body, Mode: mode}
			default:
				err = s.receipt.Read(p.Body)
			}
		case "program":
			err = s.program.Read(p)
		case "job":
			if err = kit.JobCode(p.Exit); err == nil {
				if s.loaded = p.Exit == 0; s.loaded {
					s.service, err = launchd.ParsePrint(strings.TrimLeft(p.Body, "\n"))
				}
			}
		case "kept":
			s.kept = p.Lines()
		case "space":
			s.free = kit.FreeSpace(p)
		default:
			err = kit.ErrPart
		}
		return err
	})
	return s
}

// settings compares everything. Without a host only the wanted side means something.
func (n nodeExporter) settings(s seen, goal kit.Goal, unfinished bool) []kit.Setting {
	job := n.job()
	loaded := kit.AsRendered
	switch {
	case !s.loaded:
		loaded = "not loaded"
	case len(s.service.Differs(job)) > 0:
		loaded = "other " + strings.Join(s.service.Differs(job), ", ")
	}
	return []kit.Setting{
		kit.Compare("version", s.receipt.Version(s.program), goal.String()),
		kit.Compare("wrapper", s.wrapper.Is(s.wrapper.Text == n.script(), kit.ProgramMode), kit.AsRendered),
		kit.Compare("job file", s.plist.Is(s.plist.Text == launchd.Plist(job), kit.FileMode), kit.AsRendered),
		kit.Compare("job in launchd", loaded, kit.AsRendered),
		kit.Compare("process", kit.Choose(s.service.PID != 0, "runs", "none"), "runs"),
		kit.Compare("port "+n.port(), s.boundary.Where(n.port()), boundary.Inside),
		kit.Compare("earlier run", kit.Choose(unfinished, "unfinished", "finished"), "finished"),
	}
}

func (n nodeExporter) Wanted() string {
	if n.desired == nil {
		return ""
	}
	all := append(n.settings(seen{}, kit.GoalOf(n.desired.Artifact), false), kit.Compare("flags", "", strings.Join(n.flags(), " ")))
	return kit.Wanted(all)
}

func (n nodeExporter) Diff(v plan.View) plan.Finding {
	r := &kit.Reader{Facts: v.Facts}
	s := read(r, kit.AnsweredProbe(v.Facts, probe))
	if n.desired == nil {
		return n.leave(v, s, r)
	}
	s.boundary = boundary.Read(r).Judged(v)
	if len(r.Unread) > 0 {
		return plan.Finding{Unread: r.Unread}
	}
	goal, back := s.receipt.Goal(n.desired.Artifact, s.kept, v.Rollback)
	all := n.settings(s, goal, v.Pending)
	shown := kit.Choose(s.wrapper.Text == n.script(), strings.Join(n.flags(), " "), "of another wrapper")
	all = append(all, kit.Compare("flags", shown, strings.Join(n.flags(), " ")))
	f := plan.Finding{Facts: kit.Facts(all), Warnings: s.receipt.RolledBack(goal, v.Rollback)}
	if back != nil {
		f.Warnings = append(f.Warnings, *back)
	}
	if kit.Differing(all) == 0 {
		return f
	}
	if all[0].Differs() {
		f.Changes = append(f.Changes, plan.Change{Reason: n.reason(s, all), Fields: kit.Fields(all[0]), Delivery: goal.Delivery(installSpace, s.free),
			Command: scripts.Command("node_exporter-install", plan.Root, append([]string{goal.Path(), goal.SHA, goal.Name, goal.Way()}, n.flags()...)...)})
	}
	run := plan.Change{Reason: n.reason(s, all), Fields: kit.Fields(all[1:]...), Command: n.run(kit.Choose(!s.loaded || all[0].Differs() || all[3].Differs() || s.service.Refused(), "load", "ask"))}
	if len(run.Fields) == 0 {
		run.Fields = []plan.Field{{Name: "process", Before: kit.Choose(s.service.PID != 0, "running", "none"), After: "restarted"}}
	}
	f.Changes = append(f.Changes, run)
	switch d := f.Changes[0].Delivery; {
	case goal.SHA == "":
		f.Refused = kit.ArtifactMissing(n.ID())
	case d != nil && s.free != kit.UnknownSpace && s.free < d.Space:
		f.Refused = kit.DiskFull(s.free, d.Space)
	}
	return f
}

// installSpace is the space the installation needs, in sizes of the archive.
const installSpace = 5

func (n nodeExporter) run(how string) plan.Command {
	return scripts.Command("node_exporter-run", plan.Root, append([]string{n.host.User, launchd.Plist(n.job()), n.script(), how, n.port()}, n.flags()...)...)
}

// Restart returns the change that restarts the job.
func (n nodeExporter) Restart(plan.View) plan.Change {
	return plan.Change{Disruption: plan.Restart, Command: n.run("ask"), Fields: []plan.Field{{Name: "process", Before: "running", After: "restarted"}}}
}

func (n nodeExporter) reason(s seen, all []kit.Setting) plan.Reason {
	where := all[5].Seen
	return kit.Causes(
		kit.When(boundary.Public(where), boundary.CodeMetricsOnPublic, "node_exporter serves port "+n.port()+" "+where),
		kit.When(!s.program.Exists, codeMissing, program+" is missing"),
		kit.When(all[0].Differs() && s.receipt.Exists() && !strings.HasSuffix(all[0].Seen, ", edited"), codeOutdated, "node_exporter is "+all[0].Seen),
		kit.When(all[0].Differs() || s.loaded && (all[1].Differs() || all[2].Differs() || all[3].Differs()), codeEdited, "node_exporter is not as macfleet set it up"),
		kit.When(all[3].Differs() || all[4].Differs() || all[5].Differs(), codeDown, "node_exporter serves no metrics: its port is "+where+
			kit.Choose(s.loaded && s.service.LastExit != "", ", last exit: "+s.service.LastExit, "")),
	)[0]
}

// leave removes an exporter that macfleet installed, as its receipt shows.
func (n nodeExporter) leave(v plan.View, s seen, r *kit.Reader) plan.Finding {
	if f, blind := r.Unreadable(v); blind {
		return f
	}
	if !s.receipt.Exists() && !v.Pending {
		return plan.Finding{}
	}
	all := []kit.Setting{kit.Compare("node_exporter", kit.Choose(s.receipt.Exists(), s.receipt.Current.String(), "partly removed"), "")}
	return plan.Finding{Facts: kit.Facts(all), Changes: []plan.Change{{Removes: true, Fields: kit.Fields(all...), Command: scripts.Command("node_exporter-remove", plan.Root),
		Reason: plan.Reason{Code: codeNotWanted, Text: "the configuration no longer wants metrics of the host"}}}}
}
