package plan

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
)

// ComputeOn is Compute on a number of goroutines.
func ComputeOn(cfg *fleet.Config, stepsFor StepsFor, snap Snapshot, sel Selection, workers int) *Plan {
	return compute(cfg, stepsFor, snap, sel, workers, nil)
}

// CompleteOn is Complete on a number of goroutines.
func CompleteOn(cfg *fleet.Config, stepsFor StepsFor, snap Snapshot, sel Selection, before *Plan, again map[string]bool, workers int) *Plan {
	return compute(cfg, stepsFor, snap, sel, workers, before.except(again))
}

// ApprovalOf is the digest of an action of the plan.
func (p *Plan) ApprovalOf(a Action) string {
	h, _ := p.HostByServer(a.ServerID)
	return p.approvalOf(a, h.Seen.Fingerprint)
}

// DecodeRecording reads a recording and returns the answers. Text of another
// format is an error.
func DecodeRecording(content []byte) (Facts, error) {
	var r recording
	if err := json.Unmarshal(content, &r); err != nil {
		return nil, fmt.Errorf("read a recording: %w", err)
	}
	if r.Format != recordingFormat {
		return nil, fmt.Errorf("read a recording: its format is %d, this macfleet reads %d", r.Format, recordingFormat)
	}
	if len(r.Answers) == 0 {
		return nil, errors.New("read a recording: it holds no answers")
	}
	facts := make(Facts, len(r.Answers))
	for id, a := range r.Answers {
		if a.Unread != "" {
			facts[id] = inventory.Unread[Answer](string(a.Unread))
			continue
		}
		facts[id] = inventory.Present(Answer{Exit: a.Exit, Stdout: string(a.Stdout), Stderr: string(a.Stderr)})
	}
	return facts, nil
}

// SameChange reports whether two hosts may share a change.
var SameChange = sameChange
