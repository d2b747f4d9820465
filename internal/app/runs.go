package app

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/runlog"
	"github.com/macfleet/macfleet/internal/view"
	"github.com/macfleet/macfleet/plan"
)

// Runs lists the runs that were made from here.
func Runs(env *Env, asJSON bool) error {
	all, wrong, err := runlog.List(env.runsDir())
	if err != nil {
		return err
	}
	for _, err := range wrong {
		env.errText().Warn(err.Error())
	}
	return env.answer(asJSON, func(w io.Writer) error { return view.WriteRuns(w, all) }, func(t *view.Text) { t.Runs(all) })
}

// failedFrom narrows an apply to the hosts on which an earlier run left something.
func (env *Env) failedFrom(run string, sel *Selection) (*failedRun, error) {
	switch {
	case run == "":
		return nil, nil
	case len(sel.On)+len(sel.Exclude) > 0:
		return nil, errors.New("--failed-from names the hosts itself: leave --on and --exclude out")
	}
	path, err := runlog.Find(env.runsDir(), run)
	if err != nil {
		return nil, fmt.Errorf("--failed-from: %w", err)
	}
	r, err := runlog.Read(path)
	if err != nil {
		return nil, fmt.Errorf("--failed-from: %w", err)
	}
	left := r.Unfinished()
	if len(left) == 0 {
		return nil, fmt.Errorf("--failed-from: the run %s left nothing on a host; macfleet show %s tells what it did, macfleet plan what is left now", r.Head.ID, r.Head.ID)
	}
	*sel = sel.and(left...)
	return &failedRun{id: r.Head.ID, owner: fleet.Owner{Name: r.Head.Configuration, Environment: r.Head.Environment}, hosts: left}, nil
}

// failedRun is the run that --failed-from names.
type failedRun struct {
	id    string
	owner fleet.Owner
	hosts []string // on which it left something
}

// ownFailed refuses the hosts of another configuration's run.
func (s *session) ownFailed() error {
	if of := s.failed; of != nil && of.owner != s.config.Owner {
		return fmt.Errorf("--failed-from: that run was of %s, this is %s", of.owner, s.config.Owner)
	}
	return nil
}

// sayGone says which of those hosts no plan knows any more: those that were released
// since, and servers of the pool that somebody else has claimed.
func (s *session) sayGone(p *plan.Plan) {
	of := s.failed
	if of == nil {
		return
	}
	gone := slices.DeleteFunc(slices.Clone(of.hosts), func(name string) bool {
		return slices.ContainsFunc(p.Hosts, func(h plan.Host) bool { return h.Name == name }) ||
			slices.ContainsFunc(p.Lost, func(l plan.Lost) bool { return l.Name == name }) ||
			slices.ContainsFunc(p.Actions, func(a plan.Action) bool { return a.Host == name })
	})
	if len(gone) > 0 {
		s.env.warn(fmt.Sprintf("of the hosts on which the run %s left something, these are no longer there and are passed over: %s; macfleet plan shows what is wanted instead of them",
			of.id, strings.Join(gone, ", ")))
	}
}

// Show shows a file where there is one of that name, by what is in it, else a run.
func Show(env *Env, name string, o Form) error {
	if err := o.check(env.Call); err != nil {
		return err
	}
	if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() {
		if runlog.IsRecord(name) {
			return env.showRecord(name, o)
		}
		return env.showPlanFile(name, o)
	}
	path, err := runlog.Find(env.runsDir(), name)
	if err != nil {
		return fmt.Errorf("%w; and no file is called %s", err, name)
	}
	return env.showRecord(path, o)
}

func (env *Env) showRecord(path string, o Form) error {
	if o.Format == formatMarkdown {
		return fmt.Errorf("a run is shown as text or JSON; run macfleet show %s without --format markdown", path)
	}
	r, err := runlog.Read(path)
	if err != nil {
		return fmt.Errorf("show the run: %w", err)
	}
	return env.answer(o.Format == formatJSON, func(w io.Writer) error { return view.WriteRun(w, r) }, func(t *view.Text) { t.Run(r) })
}
