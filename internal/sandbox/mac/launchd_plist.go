package mac

import (
	"errors"
	"slices"
	"time"
)

// description is the content of a job's property list.
type description struct {
	Label      string            `json:"label"`
	Program    string            `json:"program"`
	Inferred   bool              `json:"inferred,omitempty"` // Program is the first argument
	Args       []string          `json:"args"`
	User       string            `json:"user,omitempty"`
	Dir        string            `json:"dir,omitempty"`
	Env        map[string]string `json:"env,omitempty"`
	Stdout     string            `json:"stdout,omitempty"`
	Stderr     string            `json:"stderr,omitempty"`
	Umask      int64             `json:"umask"`
	RunAtLoad  bool              `json:"run_at_load,omitempty"`
	Interval   time.Duration     `json:"interval_ns,omitempty"`
	Throttle   time.Duration     `json:"throttle_ns"`
	ExitWithin time.Duration     `json:"exit_within_ns"`
	Keep       keepAlive         `json:"keep,omitzero"`
	Queue      []string          `json:"queue,omitempty"`    // folders: the job is started while one is not empty
	Sessions   []string          `json:"sessions,omitempty"` // LimitLoadToSessionType
	Disabled   bool              `json:"disabled,omitempty"`
	Abandon    bool              `json:"abandon,omitempty"` // AbandonProcessGroup
	Lacking    string            `json:"-"`                 // a key that is not modelled
}

// keepAlive is when a job is restarted.
type keepAlive struct {
	Always  bool            `json:"always,omitempty"`
	Success *bool           `json:"success,omitempty"`
	Crashed *bool           `json:"crashed,omitempty"`
	Paths   map[string]bool `json:"paths,omitempty"`
}

func (k keepAlive) set() bool {
	return k.Always || k.Success != nil || k.Crashed != nil || len(k.Paths) > 0
}

// after reports whether a process that ended like this is restarted. Any condition suffices.
func (k keepAlive) after(e ending) bool {
	crashed, success := e.Signal != 0, e.Signal == 0 && e.Code == 0
	return k.Always || k.Success != nil && *k.Success == success || k.Crashed != nil && *k.Crashed == crashed
}

var errBadJob = errors.New("the property list does not describe a job")

// describe reads a job's property list. Unknown keys are ignored, as launchd does; relevant keys that
// are not modelled are reported.
func describe(data []byte) (description, error) {
	values, err := decodePlist(data)
	if err != nil {
		return description{}, err
	}
	d := description{
		Label: text(values["Label"]), Program: text(values["Program"]), Args: texts(values["ProgramArguments"]),
		User: text(values["UserName"]), Dir: text(values["WorkingDirectory"]), Env: map[string]string{},
		Stdout: text(values["StandardOutPath"]), Stderr: text(values["StandardErrorPath"]), Umask: 0o022,
		RunAtLoad: boolean(values["RunAtLoad"]), Abandon: boolean(values["AbandonProcessGroup"]), Disabled: boolean(values["Disabled"]), Throttle: throttle, ExitWithin: exitTimeout,
		Sessions: texts(values["LimitLoadToSessionType"]), Queue: texts(values["QueueDirectories"]),
	}
	for name, value := range dict(values, "EnvironmentVariables") {
		d.Env[name] = text(value)
	}
	if n, ok := integer(values["StartInterval"]); ok && n > 0 {
		d.Interval = time.Duration(n) * time.Second
	}
	if n, ok := integer(values["ThrottleInterval"]); ok && n >= 0 {
		d.Throttle = time.Duration(n) * time.Second
	}
	if n, ok := integer(values["ExitTimeOut"]); ok && n > 0 {
		d.ExitWithin = time.Duration(n) * time.Second
	}
	if n, ok := integer(values["Umask"]); ok && n >= 0 && n <= 0o777 {
		d.Umask = n
	}
	if d.Program == "" && len(d.Args) > 0 {
		d.Program, d.Inferred = d.Args[0], true
	}
	if len(d.Args) == 0 {
		d.Args = []string{d.Program}
	}
	if d.Label == "" || d.Program == "" {
		return description{}, errBadJob
	}
	for _, key := range []string{"StartCalendarInterval", "WatchPaths", "StartOnMount", "LaunchEvents"} {
		if _, ok := values[key]; ok {
			d.Lacking = key
		}
	}
	d.keepAlive(values["KeepAlive"])
	return d, nil
}

// keepAlive reads the key of this name. Conditions on the exit of a process need a first one.
func (d *description) keepAlive(value any) {
	conditions, ok := value.(map[string]any)
	if !ok {
		d.Keep.Always = boolean(value)
		d.RunAtLoad = d.RunAtLoad || d.Keep.Always
		return
	}
	for key, value := range conditions {
		yes := boolean(value)
		switch key {
		case "SuccessfulExit":
			d.Keep.Success, d.RunAtLoad = &yes, true
		case "Crashed":
			d.Keep.Crashed = &yes
		case "PathState":
			d.Keep.Paths = map[string]bool{}
			for path, wanted := range dict(conditions, key) {
				d.Keep.Paths[path] = boolean(wanted)
			}
		case "OtherJobEnabled", "AfterInitialDemand":
			d.Lacking = "KeepAlive " + key
		}
	}
}

// fits reports whether a job may be loaded into a kind of domain. An agent without a setting needs an
// Aqua session.
func (d description) fits(kind string) bool {
	switch kind {
	case "gui":
		return len(d.Sessions) == 0 || slices.Contains(d.Sessions, "Aqua")
	case "user":
		return slices.Contains(d.Sessions, "Background")
	}
	return true
}

func text(value any) string {
	s, _ := value.(string)
	return s
}

// texts reads a list of texts, or a single one.
func texts(value any) []string {
	if s, ok := value.(string); ok {
		return []string{s}
	}
	list, _ := value.([]any)
	var all []string
	for _, one := range list {
		all = append(all, text(one))
	}
	return all
}

func boolean(value any) bool {
	b, _ := value.(bool)
	return b
}

// maxNumber prevents overflows of times that a person wrote.
const maxNumber = 1 << 31

func integer(value any) (int64, bool) {
	var n int64
	switch value := value.(type) {
	case int64:
		n = value
	case uint64:
		n = int64(min(value, maxNumber))
	case int:
		n = int64(value)
	default:
		return 0, false
	}
	return min(n, maxNumber), true
}
