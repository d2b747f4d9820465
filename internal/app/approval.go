package app

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/macfleet/macfleet/internal/view"
	"github.com/macfleet/macfleet/internal/wholefile"
	"github.com/macfleet/macfleet/internal/wire"
	"github.com/macfleet/macfleet/plan"
)

// Keep says where a plan is kept, and how long it is good.
type Keep struct {
	Out     string // file; empty: it is not kept
	Expires time.Duration
}

// DefaultExpiry is how long a plan file may be applied.
const DefaultExpiry = 24 * time.Hour

func (o Keep) check(c Call, from Source) error {
	switch {
	case o.Out == "" && c.gave("expires"):
		return errors.New("--expires is of --out: it is how long that file is good")
	case o.Out == "-":
		return errors.New("--out needs the name of a file: standard output is the plan's")
	case o.Out != "" && from.Snapshot != "":
		return errors.New("--out and --snapshot exclude each other: what is approved is the world as it is now")
	case o.Out != "" && (o.Expires <= 0 || o.Expires > wire.LongestExpiry):
		return fmt.Errorf("--expires is %s; it must be more than nothing, and at most %s", o.Expires, wire.LongestExpiry)
	}
	return nil
}

// keepPlan writes a plan into a file, whole or not at all, for its owner alone.
func (env *Env) keepPlan(o PlanOptions, l looked) error {
	if env.secrets.Short() {
		return fmt.Errorf("--out: %w", shortSecret(o.Out))
	}
	f := wire.NewPlanFile(l.plan)
	f.ConfigurationHash, f.MadeBy, f.On, f.Exclude, f.Rollback = l.config.Hash(), caller(), env.On, env.Exclude, o.Rollback
	f.MadeAt = time.Now().UTC().Truncate(time.Second)
	f.ExpiresAt = f.MadeAt.Add(o.Expires)
	content, err := f.Encode()
	if err != nil {
		return err
	}
	if err := replaceFile(o.Out, wholefile.Text(content)); err != nil {
		return fmt.Errorf("keep the plan in %s: %w; nothing was kept", o.Out, err)
	}
	env.errText().Kept(o.Out, f)
	return nil
}

// approval is a plan file that is applied.
type approval struct {
	name string
	wire.PlanFile
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
func readPlanFile(name string) (wire.PlanFile, error) {
	content, err := readSome(name, largestPlanFile)
	if err != nil {
		return wire.PlanFile{}, fmt.Errorf("plan file: %w; make one: macfleet plan --out FILE", err)
	}
	f, err := wire.DecodePlanFile(content)
	if err != nil {
		return f, fmt.Errorf("plan file %s: %w", name, err)
	}
	return f, nil
}

// takePlanFile makes an apply do what stands in a file: its selection counts, and no
// other is taken. Variables are no part of that: another value of one is another
// configuration, which the file does not fit.
func takePlanFile(name string, sel *Selection) (*approval, error) {
	for _, given := range []struct {
		flag string
		is   bool
	}{{"--on", len(sel.On) > 0}, {"--exclude", len(sel.Exclude) > 0}, {"--step", len(sel.Steps) > 0}, {"--rollback", sel.Rollback}} {
		if given.is {
			return nil, fmt.Errorf("%s cannot be given with a plan file: what %s was planned for counts; plan again with --out to change that", given.flag, name)
		}
	}
	f, err := readPlanFile(name)
	if err != nil {
		return nil, err
	}
	sel.On, sel.Exclude, sel.Rollback = f.On, f.Exclude, f.Rollback
	sel.Steps = named(f.Steps, func(id plan.StepID) string { return string(id) })
	return &approval{name, f}, nil
}

// checkApproval returns why the plan file must not be applied to the configuration
// now. It is asked before anything is looked at, and again before the first change:
// somebody may have waited in between.
func (s *session) checkApproval() error {
	if s.approved == nil {
		return nil
	}
	if err := s.approved.Check(s.config, time.Now()); err != nil {
		return fmt.Errorf("plan file %s: %w", s.approved.name, err)
	}
	return nil
}

// sayApproval tells what of a plan file is still to be done.
func (s *session) sayApproval(p *plan.Plan) {
	a := s.approved
	if a == nil {
		return
	}
	s.env.stream.Approved(a.name, a.PlanFile, p)
	s.env.outText().Approved(a.name, a.PlanFile, p)
}

// showPlanFile prints a plan file. It needs no configuration and asks nobody.
func (env *Env) showPlanFile(name string, o Form) error {
	f, err := readPlanFile(name)
	if err != nil {
		return err
	}
	return env.print(o, printed{
		json:     func(w io.Writer) error { return wire.Write(w, f.Shown(time.Now())) },
		markdown: func(m view.Markdown, w io.Writer) error { return m.PlanFile(w, f) },
		text:     func(t *view.Text) { t.PlanFile(f, time.Now()) }})
}
