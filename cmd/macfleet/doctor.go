package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/macfleet/macfleet/internal/view"
	"github.com/macfleet/macfleet/internal/wholefile"
	"github.com/macfleet/macfleet/plan"
)

type doctorOptions struct {
	json   bool
	record string
	force  bool
}

func (a *app) doctorCmd() *cobra.Command {
	var o doctorOptions
	c := &cobra.Command{Use: "doctor HOST", Short: "Look at one host and say what is wrong with it", Args: cobra.ExactArgs(1),
		Long: "doctor asks one server of the inventory everything that plan asks, and changes nothing: a member,\n" +
			"a server of the pool or any other, by its name or id. It prints a check list with remedies.\n\n" +
			"--record keeps the host's answers in a file, without names, addresses and keys: from a real Mac\n" +
			"it is a test for macfleet's steps. Read it before you give it away.\n\n" +
			"Exit codes: 0 all ok, 1 no such server or no inventory, 3 something is not ok.",
		RunE: func(c *cobra.Command, args []string) error { return a.doctor(c.Context(), args[0], o) }}
	c.Flags().BoolVar(&o.json, "json", false, "print one JSON document")
	c.Flags().StringVar(&o.record, "record", "", "keep the answers in a new `FILE`")
	c.Flags().BoolVar(&o.force, "force", false, "replace FILE when it exists")
	return c
}

func (a *app) doctor(ctx context.Context, name string, o doctorOptions) error {
	if err := a.oneHost("doctor"); err != nil {
		return err
	}
	if _, err := os.Lstat(o.record); o.record != "" && err == nil && !o.force {
		return fmt.Errorf("record %s: %w; name another file, or add --force", o.record, fs.ErrExist)
	}
	ctx, done := a.untilStopped(ctx)
	defer done()
	s, err := a.openToLook(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	checkup, snap, err := s.examine(ctx, name)
	if err != nil {
		return err
	}
	if o.json {
		err = view.WriteCheckup(a.out, checkup)
	} else {
		a.outText().Checkup(checkup)
	}
	if err == nil && o.record != "" {
		err = a.recordAnswers(o.record, snap)
	}
	if err != nil || checkup.Healthy() {
		return err
	}
	return exit(exitIncomplete)
}

// examine looks at one host and shows its progress.
func (s *session) examine(ctx context.Context, name string) (plan.Checkup, plan.Snapshot, error) {
	show, done := s.app.progress(s.app.err)
	defer done()
	s.engine.Emit = s.timed(show)
	return s.engine.Examine(ctx, name)
}

// recordAnswers keeps what one host answered in a file, without what names it.
func (a *app) recordAnswers(path string, snap plan.Snapshot) error {
	if a.secrets.Short() {
		return shortSecret(path)
	}
	server := snap.Servers[0]
	text, err := plan.EncodeRecording(server, snap.Hosts[server.ID])
	if err != nil {
		return err
	}
	if err := replaceFile(path, wholefile.Text(text)); err != nil {
		return fmt.Errorf("record %s: %w; nothing was recorded", path, err)
	}
	a.errText().Say("Recorded the answers in " + path + ". Read it before you give it away.")
	return nil
}
