package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/view"
	"github.com/macfleet/macfleet/plan"
)

// keepOptions say where a plan is kept, and how long it is good.
type keepOptions struct {
	out     string
	expires time.Duration
}

const defaultExpiry = 24 * time.Hour

func (o *keepOptions) flags(c *cobra.Command) {
	c.Flags().StringVar(&o.out, "out", "", "keep the plan in a `FILE`, for macfleet show and macfleet apply")
	c.Flags().DurationVar(&o.expires, "expires", defaultExpiry, "how `LONG` the file of --out may be applied, at most 168h")
}

func (o keepOptions) check(c *cobra.Command, from source) error {
	switch {
	case o.out == "" && c.Flags().Changed("expires"):
		return errors.New("--expires is of --out: it is how long that file is good")
	case o.out == "-":
		return errors.New("--out needs the name of a file: standard output is the plan's")
	case o.out != "" && from.snapshot != "":
		return errors.New("--out and --snapshot exclude each other: what is approved is the world as it is now")
	case o.out != "" && (o.expires <= 0 || o.expires > plan.LongestExpiry):
		return fmt.Errorf("--expires is %s; it must be more than nothing, and at most %s", o.expires, plan.LongestExpiry)
	}
	return nil
}

// keep writes a plan into a file, whole or not at all, for its owner alone.
func (a *app) keep(o keepOptions, p *plan.Plan, cfg *fleet.Config) error {
	if a.secrets.Short() {
		return fmt.Errorf("--out: %w", shortSecret(o.out))
	}
	f := plan.NewPlanFile(p)
	f.Configuration, f.Who, f.On, f.Exclude, f.Rollback = cfg.Hash(), caller(), a.on, a.exclude, a.rollback
	f.Made = time.Now().UTC().Truncate(time.Second)
	f.Expires = f.Made.Add(o.expires)
	content, err := f.Encode()
	if err != nil {
		return err
	}
	if err := replaceFile(o.out, func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	}); err != nil {
		return fmt.Errorf("keep the plan in %s: %w; nothing was kept", o.out, err)
	}
	a.errText().Kept(o.out, f)
	return nil
}

// approval is a plan file that is applied.
type approval struct {
	name string
	plan.PlanFile
}

// largestPlanFile is how many bytes of a file are read: that of 500 new hosts has
// about a tenth, and a wrong name must not fill the memory.
const largestPlanFile = 64 << 20

// readSome reads a file of at most so many bytes; it may be a pipe.
func readSome(name string, most int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(content)) > most {
		err = &fs.PathError{Op: "read", Path: name, Err: fmt.Errorf("it has more than %d bytes, and is no such file", most)}
	}
	return content, err
}

// readPlanFile reads a plan file. Whether it may be applied is another question.
func readPlanFile(name string) (plan.PlanFile, error) {
	content, err := readSome(name, largestPlanFile)
	if err != nil {
		return plan.PlanFile{}, fmt.Errorf("plan file: %w; make one: macfleet plan --out FILE", err)
	}
	f, err := plan.DecodePlanFile(content)
	if err != nil {
		return f, fmt.Errorf("plan file %s: %w", name, err)
	}
	return f, nil
}

// takePlanFile makes an apply do what stands in a file: its selection counts, and no
// other is taken. Variables are no part of that: another value of one is another
// configuration, which the file does not fit.
func (a *app) takePlanFile(name string) error {
	for _, given := range []struct {
		flag string
		is   bool
	}{{"--on", len(a.on) > 0}, {"--exclude", len(a.exclude) > 0}, {"--step", len(a.steps) > 0}, {"--rollback", a.rollback}} {
		if given.is {
			return fmt.Errorf("%s cannot be given with a plan file: what %s was planned for counts; plan again with --out to change that", given.flag, name)
		}
	}
	f, err := readPlanFile(name)
	if err != nil {
		return err
	}
	a.on, a.exclude, a.rollback = f.On, f.Exclude, f.Rollback
	for _, id := range f.Plan.Steps {
		a.steps = append(a.steps, string(id))
	}
	a.approved = &approval{name, f}
	return nil
}

// checkApproval returns why the plan file must not be applied to the configuration
// now. It is asked before anything is looked at, and again before the first change:
// somebody may have waited in between.
func (s *session) checkApproval() error {
	a := s.app.approved
	if a == nil {
		return nil
	}
	if err := a.Check(s.config, time.Now()); err != nil {
		return fmt.Errorf("plan file %s: %w", a.name, err)
	}
	return nil
}

// sayApproval tells a person what of a plan file is still to be done.
func (s *session) sayApproval(p *plan.Plan) {
	a := s.app.approved
	switch {
	case a == nil:
	case s.app.stream != nil:
		s.app.stream.Approved(a.name, a.PlanFile, p)
	default:
		s.app.outText().Approved(a.name, a.PlanFile, p)
	}
}

// showPlanFile prints a plan file. It needs no configuration and asks nobody.
func (a *app) showPlanFile(name string, o formatOptions) error {
	f, err := readPlanFile(name)
	if err != nil {
		return err
	}
	switch o.format {
	case formatJSON:
		return view.WritePlanFile(a.sink(a.out), f, time.Now())
	case formatMarkdown:
		m, err := view.NewMarkdown(o.limit)
		if err != nil {
			return err
		}
		return m.PlanFile(a.sink(a.out), f)
	}
	a.outText().PlanFile(f, time.Now())
	return nil
}
