package view

import (
	"io"
	"time"

	"github.com/macfleet/macfleet/internal/runlog"
	"github.com/macfleet/macfleet/internal/wire"
)

// RunsDocument is the runs of a folder as one JSON object.
type RunsDocument struct {
	wire.Head
	Runs []RunLine `json:"runs"`
}

// RunLine is one run in a list.
type RunLine struct {
	ID            string      `json:"id"`
	Who           string      `json:"who"`
	Started       time.Time   `json:"started"`
	Command       string      `json:"command"`
	Configuration string      `json:"configuration"`
	Environment   string      `json:"environment"`
	Outcome       string      `json:"outcome"`
	Seconds       *float64    `json:"seconds,omitempty"` // absent: it did not come to its end
	End           *runlog.End `json:"end,omitempty"`     // so here
	Record        string      `json:"record"`
}

// WriteRuns prints the runs of a folder as one JSON object.
func WriteRuns(out io.Writer, runs []runlog.Brief) error {
	d := RunsDocument{Head: wire.NewHead(), Runs: []RunLine{}}
	for _, b := range runs {
		h := b.Head
		line := RunLine{ID: h.ID, Who: h.Who, Started: h.Started, Command: h.Command, Configuration: h.Configuration,
			Environment: h.Environment, Outcome: string(b.Outcome), End: b.End, Record: b.Path}
		if b.End != nil {
			seconds := b.Lasted.Seconds()
			line.Seconds = &seconds
		}
		d.Runs = append(d.Runs, line)
	}
	return wire.Write(out, d)
}

// RunDocument is one run as one JSON object.
type RunDocument struct {
	wire.Head
	Run     runlog.Head         `json:"run"`
	Outcome string              `json:"outcome"`
	End     *runlog.End         `json:"end,omitempty"` // absent: it did not come to its end
	Seconds float64             `json:"seconds"`       // until the last line of its record
	Torn    bool                `json:"torn"`          // that line was cut off
	Record  string              `json:"record"`
	Hosts   []runlog.HostReport `json:"hosts"`
}

// WriteRun prints one run as one JSON object.
func WriteRun(out io.Writer, r runlog.Record) error {
	d := RunDocument{Head: wire.NewHead(), Run: r.Head, Outcome: string(r.Outcome()),
		End: r.End, Seconds: r.Lasted().Seconds(), Torn: r.Torn, Record: r.Path, Hosts: r.Reports()}
	if d.Hosts == nil {
		d.Hosts = []runlog.HostReport{}
	}
	return wire.Write(out, d)
}
