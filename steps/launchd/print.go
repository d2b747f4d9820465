package launchd

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Service is what `launchctl print` shows of a job that launchd has. What it
// does not show is empty; lines that nobody here knows are passed over, as the
// form is no promise of Apple's.
type Service struct {
	State       string // running, not running, spawn scheduled, SIGTERMed, …
	Program     string
	Arguments   []string
	User        string
	Environment map[string]string // that of the property list, and XPC_SERVICE_NAME
	Stdout      string
	Stderr      string
	PID         int    // 0: there is no process
	Runs        int    // how often it was started since it was loaded
	Throttle    int    // seconds between two starts
	LastExit    string // of the process before: "(never exited)", "0", "78: EX_CONFIG", "Killed: 9"
	LastReason  string // the kernel's reason for that end, such as OS_REASON_CODESIGNING
	Properties  []string
}

// KilledBySignature reports whether the process before was killed because the
// kernel refused its code signature.
func (s Service) KilledBySignature() bool { return s.LastReason == "OS_REASON_CODESIGNING" }

// PinOutdated reports whether launchd says that the program is not the one that it pinned when it loaded the job.
func (s Service) PinOutdated() bool { return slices.Contains(s.Properties, "needs LWCR update") }

// Refused reports whether launchd or the kernel may have refused to start the program: only loading the job anew
// lets launchd take the program that is there now.
func (s Service) Refused() bool {
	return s.KilledBySignature() || s.PinOutdated() || strings.HasPrefix(s.LastExit, "78")
}

// Crashed reports whether the process before ended by a fault of its own: not well,
// and not by a signal with which launchd, a shutdown or a person ends one.
func (s Service) Crashed() bool {
	switch s.LastExit {
	case "", "(never exited)", "0", "Terminated: 15", "Killed: 9":
		return s.LastReason != ""
	}
	return true
}

// Runs of a job that launchd starts again and again count up; one that waits for
// its next start is in one of these states.
const (
	Running   = "running"
	Scheduled = "spawn scheduled"
)

// ErrNoService says that a text is not what `launchctl print` shows of a service.
var ErrNoService = errors.New("it is not what launchctl print shows of a service")

// ParsePrint reads the page of a service. An answer without its first and its
// last line was cut off and is an error that wraps ErrNoService, and so is a
// number that is none.
func ParsePrint(page string) (Service, error) {
	lines := strings.Split(strings.TrimRight(page, "\n"), "\n")
	if !strings.HasSuffix(lines[0], " = {") || len(lines) < 2 || lines[len(lines)-1] != "}" {
		return Service{}, ErrNoService
	}
	var s Service
	fields := s.fields()
	for lines = lines[1 : len(lines)-1]; len(lines) > 0; {
		key, value, found := strings.Cut(strings.TrimPrefix(lines[0], "\t"), " = ")
		lines = lines[1:]
		if !found {
			continue
		}
		if value == "{" {
			end := slices.Index(lines, "\t}")
			if end < 0 {
				return Service{}, fmt.Errorf("%w: %q has no end", ErrNoService, key)
			}
			s.list(key, lines[:end])
			lines = lines[end+1:]
			continue
		}
		switch to := fields[key].(type) {
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

// list reads a part of the page with lines of its own.
func (s *Service) list(key string, lines []string) {
	switch key {
	case "arguments":
		for _, line := range lines {
			arg, whole := strings.CutPrefix(line, "\t\t")
			if n := len(s.Arguments); !whole && n > 0 {
				s.Arguments[n-1] += "\n" + line // an argument of several lines
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

// fields are where the values of the page's lines go.
func (s *Service) fields() map[string]any {
	return map[string]any{
		"state": &s.State, "program": &s.Program, "username": &s.User, "stdout path": &s.Stdout, "stderr path": &s.Stderr,
		"last exit code": &s.LastExit, "last terminating signal": &s.LastExit, "last exit reason": &s.LastReason,
		"pid": &s.PID, "runs": &s.Runs, "minimum runtime": &s.Throttle, "properties": &s.Properties,
	}
}

// Differs lists what of a job that launchd has is not as wanted, in words. The
// rest of the description is not shown by launchctl, or is shown by some
// releases alone; then only what is there counts.
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
