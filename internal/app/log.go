package app

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/runlog"
	"github.com/macfleet/macfleet/providers/transport"
)

// runsDir is where the records of runs are.
func (env *Env) runsDir() string {
	if env.RunsDir != "" {
		return env.RunsDir
	}
	return env.beside("runs")
}

func (env *Env) logsDir() string {
	if env.RunsDir != "" {
		return env.RunsDir
	}
	return env.beside("logs")
}

// openLog begins the log of this command. Only one that was asked for by its name
// ends the command when it cannot be written.
func (env *Env) openLog() error {
	var level slog.Level
	switch err := level.UnmarshalText([]byte(env.LogLevel)); {
	case env.LogLevel == "off":
		return nil
	case err != nil && env.LogLevel != "":
		return fmt.Errorf("--log-level %s: write debug, info, warn, error or off", env.LogLevel)
	case err != nil:
		level = slog.LevelDebug // no flag was read
	}
	path := env.LogFile
	if path == "" {
		folder := env.logsDir()
		_ = runlog.PruneLogs(folder, env.Command, runlog.LogsKept-1) // old ones that stay harm nothing
		path = filepath.Join(folder, runlog.LogName(env.this.Started, env.Command, env.this.ID))
	}
	env.log = runlog.NewLog(path, env.secrets.Scrub)
	env.logger = env.log.Logger(level)
	if env.LogFile != "" {
		if err := env.log.Open(); err != nil {
			return fmt.Errorf("--log-file: %w", err)
		}
	}
	env.logged(slog.LevelInfo, "begin", "who", env.this.Who, "run", env.this.ID, "command", env.Command, "arguments", strings.Join(env.words(), " "),
		"version", fleet.Version)
	return nil
}

// logged adds a line to the log, where there is one.
func (env *Env) logged(level slog.Level, text string, attrs ...any) {
	if env.logger != nil {
		env.logger.Log(env.stop, level, text, attrs...)
	}
}

// endLog ends the log and, where a command failed that a person reads, says where it
// is.
func (env *Env) endLog(code int, failed bool) {
	if env.log == nil {
		return
	}
	path, err := env.log.Path()
	if path == "" && err == nil {
		return // nothing was asked of the world
	}
	env.logged(slog.LevelInfo, "end", "exit", code)
	err = errors.Join(err, env.log.Close())
	switch {
	case !failed || env.mute:
	case path == "":
		env.errText().Say(err.Error())
	default:
		env.errText().Say("Log: " + path)
	}
}

// told returns what notes the requests to a provider.
func (env *Env) told(provider string) func(transport.Request) {
	return func(r transport.Request) {
		attrs := []any{"provider", provider, "method", r.Method, "path", r.Path, "ms", r.Took.Milliseconds()}
		switch {
		case r.Err != nil:
			env.logged(slog.LevelWarn, "request", append(attrs, "error", r.Err)...)
		case r.Status >= 400 && r.Status != http.StatusNotFound: // what is not there is asked for too
			env.logged(slog.LevelWarn, "request", append(attrs, "status", r.Status)...)
		default:
			env.logged(slog.LevelDebug, "request", append(attrs, "status", r.Status)...)
		}
	}
}

// logEvent notes an event of a run.
func (env *Env) logEvent(e engine.Event) {
	attrs := []any{"host", e.Host, "ms", int64(e.Seconds * 1000)}
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
	env.logged(level, string(e.Type), attrs...)
}
