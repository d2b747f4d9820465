package runlog_test

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/macfleet/macfleet/internal/runlog"
)

func content(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	return string(text)
}

// TestLog keeps secrets out, in whatever a line is made of.
func TestLog(t *testing.T) {
	t.Parallel()
	l := runlog.NewLog(filepath.Join(t.TempDir(), "logs", "a.log"), scrub())
	if path, err := l.Path(); path != "" || err != nil {
		t.Errorf("before the first line there is %q, %v", path, err)
	}
	log := l.Logger(slog.LevelInfo)
	log.Debug("left out")
	log.Info("said "+sentinel, "text", "a "+sentinel+"\nb", "error", errors.New(sentinel), "any", []string{sentinel}, "n", 3)
	path, err := l.Path()
	must(t, err)
	must(t, l.Close())
	text := content(t, path)
	if strings.Contains(text, sentinel) || strings.Count(text, "<secret>") != 4 || strings.Contains(text, "left out") || !strings.Contains(text, "n=3") {
		t.Errorf("the log is %s", text)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

// TestLogTurns bounds what a log takes, and keeps its end.
func TestLogTurns(t *testing.T) {
	t.Parallel()
	l := runlog.NewLog(filepath.Join(t.TempDir(), "a.log"), scrub())
	log, line := l.Logger(slog.LevelInfo), strings.Repeat("x", 1<<20)
	for i := range 3 * runlog.LogSize >> 20 {
		log.Info(line, "n", i)
	}
	path, err := l.Path()
	must(t, err)
	now, old := content(t, path), content(t, path+".old")
	if len(now) > runlog.LogSize || len(old) > runlog.LogSize || !strings.HasSuffix(now, "n=23\n") || strings.Contains(now+old, "n=0\n") {
		t.Errorf("%d and %d bytes", len(now), len(old))
	}
	must(t, l.Close())
}

// TestLogUnwritable ends nothing, and says why there is no log.
func TestLogUnwritable(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	put(t, file, "")
	l := runlog.NewLog(filepath.Join(file, "a.log"), scrub())
	l.Logger(slog.LevelInfo).Info("text")
	if path, err := l.Path(); path != "" || err == nil || !strings.Contains(err.Error(), "log could not be written") {
		t.Errorf("%q, %v", path, err)
	}
	if err := l.Open(); err == nil {
		t.Error("it opens")
	}
}

// TestPruneLogs leaves the newest of each command.
func TestPruneLogs(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for i := range 4 {
		for _, command := range []string{"plan", "apply"} {
			name := runlog.LogName(time.Date(2026, 11, 21, 10, i, 0, 0, time.UTC), command, "abcd2345")
			for _, name := range []string{name, name + ".old"} {
				put(t, filepath.Join(folder, name), "")
			}
		}
	}
	must(t, runlog.PruneLogs(folder, "plan", 1))
	plans, _ := filepath.Glob(filepath.Join(folder, "*-plan-*"))
	applies, _ := filepath.Glob(filepath.Join(folder, "*-apply-*"))
	if len(plans) != 2 || !strings.Contains(plans[0], "T1003") || len(applies) != 8 {
		t.Errorf("kept %q and %d", plans, len(applies))
	}
	if err := runlog.PruneLogs(filepath.Join(folder, "none"), "plan", 1); err != nil {
		t.Error(err)
	}
}
