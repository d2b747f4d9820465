package launchd

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Service is a loaded job as `launchctl print` shows it. Missing values are empty. Unknown
// lines are skipped, because Apple does not guarantee the format.
type Service struct {
	State       string // running, not running, spawn scheduled, SIGTERMed, …
	Program     string
	Arguments   []string
	User        string
	Environment map[string]string // the property list's, and XPC_SERVICE_NAME
	Stdout      string
	Stderr      string
	PID         int    // 0: no process
	Runs        int    // starts since it was loaded
	Throttle    int    // minimum seconds between two starts
	ExitTimeout int    // seconds from SIGTERM to SIGKILL; 0: not shown
	LastExit    string // of the last process: "(never exited)", "0", "78: EX_CONFIG", "Killed: 9"
	LastReason  string // the kernel's reason for that exit, such as OS_REASON_CODESIGNING
	Properties  []string
}

// KilledBySignature reports whether the kernel killed the last process because of its code
// signature.
func (s Service) KilledBySignature() bool { return s.LastReason == "OS_REASON_CODESIGNING" }

// PinOutdated reports whether launchd sees a different program from the one it pinned when it loaded the job.
func (s Service) PinOutdated() bool { return slices.Contains(s.Properties, "needs LWCR update") }

// Refused reports whether launchd or the kernel may have refused to start the program. Only reloading the job makes
// launchd accept the current program.
func (s Service) Refused() bool {
	return s.KilledBySignature() || s.PinOutdated() || strings.HasPrefix(s.LastExit, "78")
}

// Crashed reports whether the last process failed by itself: it did not exit with code 0 and
// was not stopped by launchd, a shutdown or a person.
func (s Service) Crashed() bool {
	switch s.LastExit {
	case "", "(never exited)", "0", "Terminated: 15", "Killed: 9":
		return s.LastReason != ""
	}
	return true
}

// The states of a job that launchd restarts and that waits for its next start.
const (
	Running   = "running"
	Scheduled = "spawn scheduled"
)

// ErrNoService reports a text that is not the output of `launchctl print` for a service.
var ErrNoService = errors.New("not the output of launchctl print for a service")

// ParsePrint parses the output for a service. A truncated text or a malformed number is an
// error that wraps ErrNoService.
func ParsePrint(page string) (Service, error) {
	lines := strings.Split(strings.TrimRight(page, "\n"), "\n")
	if !strings.HasSuffix(lines[0], " = {") || len(lines) < 2 || lines[len(lines)-1] != "}" {
		return Service{}, ErrNoService
	}
	var s Service
	for lines = lines[1 : len(lines)-1]; len(lines) > 0; {
		key, value, found := strings.Cut(strings.TrimPrefix(lines[0], "\t"), " = ")
		lines = lines[1:]
		if !found {
			continue
		}
		if value == "{" {
			end := slices.Index(lines, "\t}")
			if end < 0 {
				return Service{}, fmt.Errorf("%w: %q is not closed", ErrNoService, key)
			}
			s.list(key, lines[:end])
			lines = lines[end+1:]
			continue
		}
		switch to := s.field(key).(type) {
		case *string:
			*to = value
		case *[]string:
			*to = strings.Split(value, " | ")
		case *int:
			var err error
			if *to, err = strconv.Atoi(value); err != nil {
				return Service{}, fmt.Errorf("%w: %s = %q", ErrNoService, key, value)
			}
		}
	}
	return s, nil
}

// list parses a nested list of the output.
func (s *Service) list(key string, lines []string) {
	switch key {
	case "arguments":
		for _, line := range lines {
			arg, whole := strings.CutPrefix(line, "\t\t")
			if n := len(s.Arguments); !whole && n > 0 {
				s.Arguments[n-1] += "\n" + line // an argument with several lines
				continue
			}
			s.Arguments = append(s.Arguments, arg)
		}
	case "environment":
		s.Environment = make(map[string]string, len(lines))
		for _, line := range lines {
			if name, value, ok := strings.Cut(strings.TrimPrefix(line, "\t\t"), " => "); ok {
				s.Environment[name] = value
			}
		}
	}
}

// field returns the field of s for a key of the output, or nil.
func (s *Service) field(key string) any {
	switch key {
	case "state":
		return &s.State
	case "program":
		return &s.Program
	case "username":
		return &s.User
	case "stdout path":
		return &s.Stdout
	case "stderr path":
		return &s.Stderr
	case "last exit code", "last terminating signal":
		return &s.LastExit
	case "last exit reason":
		return &s.LastReason
	case "pid":
		return &s.PID
	case "runs":
		return &s.Runs
	case "minimum runtime":
		return &s.Throttle
	case "exit timeout":
		return &s.ExitTimeout
	case "properties":
		return &s.Properties
	}
	return nil
}

// Differs lists what differs between the loaded job and the wanted one. Some releases of
// macOS do not show every value; only those shown are compared.
func (s Service) Differs(want Job) []string {
	var out []string
	note := func(what string, differs bool) {
		if differs {
			out = append(out, what)
		}
	}
	note("program", s.Program != "" && s.Program != want.Program())
	note("arguments", !slices.Equal(s.Arguments, want.Arguments))
	note("user", s.User != "" && s.User != want.User)
	note("log", s.Stdout != "" && s.Stdout != want.Stdout || s.Stderr != "" && s.Stderr != want.Stderr)
	note("throttle", s.Throttle != 0 && want.Throttle != 0 && s.Throttle != want.Throttle)
	if s.Environment != nil {
		for name, value := range want.Environment {
			if s.Environment[name] != value {
				note("environment", !slices.Contains(out, "environment"))
			}
		}
	}
	note("keepalive", want.KeepAlive && s.Properties != nil && !slices.Contains(s.Properties, "keepalive"))
	return out
}
