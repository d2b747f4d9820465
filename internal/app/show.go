package app

import (
	"fmt"
	"io"
	"os"

	"github.com/macfleet/macfleet/internal/runlog"
	"github.com/macfleet/macfleet/internal/view"
)

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
