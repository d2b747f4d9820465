package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/runlog"
	"github.com/macfleet/macfleet/providers/transport"
)

// keeping says where records and logs are kept, and how much stands in a log.
type keeping struct {
	runs  string // folder; empty: the default
	file  string // of the log; empty: the default
	level string
}

func (k *keeping) flags(f *pflag.FlagSet) {
	f.StringVar(&k.runs, "runs-dir", "", "keep the records of runs, and the logs, in a `DIR` (default .macfleet/runs and .macfleet/logs beside the configuration)")
	f.StringVar(&k.level, "log-level", "debug", "how much stands in the log: `LEVEL` debug, info, warn, error, or off for no log")
	f.StringVar(&k.file, "log-file", "", "write the log into a `FILE`")
}

// beside is where something of this machine alone is kept: beside the configuration,
// or in the sandbox whose it is.
func (a *app) beside(name string) string {
	if a.sandbox != "" {
		return filepath.Join(a.sandboxDir(), name)
	}
	return filepath.Join(a.dir, ".macfleet", name)
}

// runsDir is where the records of runs are.
func (a *app) runsDir() string {
	if a.keeping.runs != "" {
		return a.keeping.runs
	}
	return a.beside("runs")
}

func (a *app) logsDir() string {
	if a.keeping.runs != "" {
		return a.keeping.runs
	}
	return a.beside("logs")
}

// openLog begins the log of this command. Only one that was asked for by its name
// ends the command when it cannot be written.
func (a *app) openLog() error {
	var level slog.Level
	switch err := level.UnmarshalText([]byte(a.keeping.level)); {
	case a.keeping.level == "off":
		return nil
	case err != nil && a.keeping.level != "":
		return fmt.Errorf("--log-level %s: write debug, info, warn, error or off", a.keeping.level)
	case err != nil:
		level = slog.LevelDebug // no flag was read
	}
	path := a.keeping.file
	if path == "" {
		folder := a.logsDir()
		_ = runlog.PruneLogs(folder, a.command, runlog.LogsKept-1) // old ones that stay harm nothing
		path = filepath.Join(folder, runlog.LogName(a.this.Started, a.command, a.this.ID))
	}
	a.log = runlog.NewLog(path, a.secrets.Scrub)
	a.logger = a.log.Logger(level)
	if a.keeping.file != "" {
		if err := a.log.Open(); err != nil {
			return fmt.Errorf("--log-file: %w", err)
		}
	}
	a.logged(slog.LevelInfo, "begin", "who", a.this.Who, "run", a.this.ID, "command", a.command, "arguments", strings.Join(given(a.given), " "),
		"version", fleet.Version)
	return nil
}

// logged adds a line to the log, where there is one.
func (a *app) logged(level slog.Level, text string, attrs ...any) {
	if a.logger != nil {
		a.logger.Log(a.stop, level, text, attrs...)
	}
}

// endLog ends the log and, where a command failed that a person reads, says where it
// is.
func (a *app) endLog(code int, failed bool) {
	if a.log == nil {
		return
	}
	path, err := a.log.Path()
	if path == "" && err == nil {
		return // nothing was asked of the world
	}
	a.logged(slog.LevelInfo, "end", "exit", code)
	err = errors.Join(err, a.log.Close())
	switch {
	case !failed || a.stream != nil:
	case path == "":
		a.errText().Say(err.Error())
	default:
		a.errText().Say("Log: " + path)
	}
}

// told returns what notes the requests to a provider.
func (a *app) told(provider string) func(transport.Request) {
	return func(r transport.Request) {
		attrs := []any{"provider", provider, "method", r.Method, "path", r.Path, "ms", r.Took.Milliseconds()}
		switch {
		case r.Err != nil:
			a.logged(slog.LevelWarn, "request", append(attrs, "error", r.Err)...)
		case r.Status >= 400 && r.Status != http.StatusNotFound: // what is not there is asked for too
			a.logged(slog.LevelWarn, "request", append(attrs, "status", r.Status)...)
		default:
			a.logged(slog.LevelDebug, "request", append(attrs, "status", r.Status)...)
		}
	}
}

// logEvent notes an event of a run.
func (a *app) logEvent(e engine.Event) {
	attrs := []any{"host", e.Host, "ms", e.Elapsed.Milliseconds()}
	if e.Action != nil {
		x := runlog.ActionOf(*e.Action)
		attrs = append(attrs, "action", strings.TrimSpace(x.Kind+" "+x.Step+x.Object))
	}
	level := slog.LevelInfo
	switch {
	case e.Type == engine.Sending:
		return
	case e.Err != nil:
		level, attrs = slog.LevelError, append(attrs, "error", e.Err)
	case e.Trouble != nil:
		level, attrs = slog.LevelWarn, append(attrs, "code", e.Trouble.Code, "error", e.Trouble.Text)
	}
	a.logged(level, string(e.Type), attrs...)
}
