package agent

import (
	"errors"
	"time"
)

// Runner is one run of GitHub's listener on a Mac, as GitHub sees it.
type Runner struct {
	ServerID string    `json:"server_id"`
	Job      string    `json:"job,omitempty"` // the workflow's job that it runs; "" = none
	PID      int       `json:"pid"`
	Started  time.Time `json:"started"`
	Ended    time.Time `json:"ended,omitzero"` // zero: it is running
	// Left is until when GitHub keeps its session, on the Mac's clock, because it was killed; zero: it closed it.
	Left time.Time `json:"left,omitzero"`

	ID        int64  `json:"id"`        // of its entry, in .runner
	Client    string `json:"client"`    // in .credentials
	Version   string `json:"version"`   // of the program
	Listening bool   `json:"listening"` // it has a session
}

// Runs reports whether the process is running.
func (r Runner) Runs() bool { return r.Ended.IsZero() }

// SameRun reports whether two records are of one run.
func (r Runner) SameRun(other Runner) bool {
	return r.PID == other.PID && r.Started.Equal(other.Started)
}

// Registration is what a Mac's runner sends to register.
type Registration struct {
	URL   string // such as https://github.com/acme
	Token string
	Key   string // identifies the key on the Mac

	Name          string
	Group         string // "" = Default
	Labels        []string
	NoDefault     bool // without the read-only labels
	Ephemeral     bool
	DisableUpdate bool
	Replace       bool // it may replace the entry of this name
	Version       string
}

// Registered is the entry that GitHub made.
type Registered struct {
	ID        int64
	Client    string
	GroupID   int64
	Group     string
	ServerURL string // of the service that the listener polls
	Second    bool   // it uses the second version of the protocol
}

// What GitHub answers a runner that registers or removes itself.
var (
	//lint:ignore ST1005 as the runner prints it
	ErrToken = errors.New("Http response code: NotFound from 'POST https://api.github.com/actions/runner-registration'")
	//lint:ignore ST1005 likewise
	ErrTaken   = errors.New("A runner exists with the same name")
	ErrVersion = errors.New("this version of the runner can no longer register")
	//lint:ignore ST1005 likewise
	ErrUnknown = errors.New("Does not exist. Skipping Removing runner from the server")
)

// Verdict is what GitHub answers a listener that creates a session, or keeps one.
type Verdict int

// The verdicts.
const (
	Listens    Verdict = iota // it has a session
	Deleted                   // its entry is gone, or belongs to other credentials
	Conflicts                 // another listener has the session
	Deprecated                // its version gets no jobs any more
	WrongClock                // its clock and GitHub's differ by more than five minutes
)

// Runners is GitHub's service for the runner on one Mac.
type Runners interface {
	// Register makes an entry. The error is one of those above, or names an unknown group.
	Register(Registration) (Registered, error)
	// Remove removes an entry by its name, as a runner that removes itself does.
	Remove(url, token, name string) error
	// Session answers a listener, at a time of its Mac's clock. update is the version that it updates itself to, "" for none.
	Session(listener Runner, clock time.Time) (verdict Verdict, update string, err error)
	// Report receives the Mac's listeners whenever one changes: the running ones, and those that ended since the last
	// report. It is called with the machine locked.
	Report([]Runner) error
}
