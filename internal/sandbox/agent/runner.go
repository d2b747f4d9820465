package agent

import "time"

// Runner is one run of GitHub's listener on a Mac, as GitHub sees it.
type Runner struct {
	ServerID string    `json:"server_id"`
	Job      string    `json:"job,omitempty"` // the workflow's job that it runs; "" = none
	PID      int       `json:"pid"`
	Started  time.Time `json:"started"`
	Ended    time.Time `json:"ended,omitzero"` // zero: it is running

	ID        int64  `json:"id"`        // of its entry, in .runner
	Client    string `json:"client"`    // in .credentials
	Version   string `json:"version"`   // of the program
	Listening bool   `json:"listening"` // it has a session
}

// Runs reports whether the process is running.
func (r Runner) Runs() bool { return r.Ended.IsZero() }
