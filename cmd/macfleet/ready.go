package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/view"
	"github.com/macfleet/macfleet/plan"
)

// waitOptions are those of hosts --wait.
type waitOptions struct {
	what    string
	timeout time.Duration
	json    bool
}

// wait ends when all selected members are Ready, or when time is up.
func (a *app) wait(ctx context.Context, o waitOptions) error {
	if o.what != "ready" {
		return fmt.Errorf("--wait %s: write --wait ready", o.what)
	}
	if o.timeout <= 0 {
		return fmt.Errorf("--timeout is %s; it must be more than nothing", o.timeout)
	}
	ctx, done := a.untilStopped(ctx)
	defer done()
	s, err := a.openToLook(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	if s.kubernetes == nil {
		return errNoCluster("hosts --wait ready")
	}
	m, err := s.engine.Members(ctx)
	if err != nil {
		return err
	}
	if m.Missing == 0 && !slices.ContainsFunc(m.Hosts, joins) {
		return errors.New("none of the selected hosts joins the cluster (a host with a tart_kubelet block does), so there is no Node to wait for")
	}
	s.engine.Ready.Within = o.timeout
	waited, err := s.engine.WaitReady(ctx, m, func(late []engine.NotReady) {
		if len(late) > 0 {
			a.errText().NotReady(time.Now(), late)
		}
	})
	if err != nil {
		return err
	}
	late := waited.Late
	for _, h := range waited.Alone {
		a.errText().Warn(h.Host.Name + " could not be asked, so what its Node says counts alone: " + h.Why)
	}
	if o.json {
		if err := view.WriteReady(a.out, s.config.Owner, m.Hosts, m.Missing, late); err != nil {
			return err
		}
	} else {
		s.sayReady(m, late, o.timeout)
	}
	return result(false, m.Missing+len(late) == 0)
}

func joins(h plan.Host) bool { return h.Spec.Spec.JoinsCluster() }

func (s *session) sayReady(m engine.Members, late []engine.NotReady, timeout time.Duration) {
	t := s.app.outText()
	all := len(slices.DeleteFunc(slices.Clone(m.Hosts), func(h plan.Host) bool { return !joins(h) }))
	switch {
	case len(late) > 0:
		t.Say(fmt.Sprintf("After %s %d of %d Nodes are not Ready; macfleet plan says what their hosts lack.", timeout, len(late), all))
	case all > 0:
		t.Say(fmt.Sprintf("All %d Nodes are Ready.", all))
	}
	if m.Missing > 0 {
		t.Say(fmt.Sprintf("%d more hosts are wanted and not there; macfleet apply claims them.", m.Missing))
	}
}
