package cloud

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"
)

// updateServer changes only what the request names. Its answer is sealed: a client that reads a
// password from it gets the placeholder.
func (a *API) updateServer(r *http.Request) (any, *failure) {
	server, failed := a.find(r)
	if failed != nil {
		return nil, failed
	}
	fields, failed := readBody(r)
	if failed != nil {
		return nil, failed
	}
	if failed := a.refused(fields); failed != nil {
		return nil, failed
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if failed := change(&server, name, fields[name]); failed != nil {
			return nil, failed
		}
	}
	server.UpdatedAt = after(server.UpdatedAt, a.options.Now())
	if err := a.state.put(server); err != nil {
		return nil, internal(err)
	}
	return server.sealed(), nil
}

// after returns now, or the next moment if the clock has not moved since before.
func after(before, now time.Time) time.Time {
	now = now.UTC().Truncate(time.Microsecond)
	if now.After(before) {
		return now
	}
	return before.Add(time.Microsecond)
}

// change sets one field of a PATCH request.
func change(server *Server, name string, value json.RawMessage) *failure {
	switch name {
	case "name":
		failed := decode(name, value, &server.Name)
		if failed == nil && server.Name == "" {
			return invalidArgument(name, "required", "a server needs a name")
		}
		return failed
	case "schedule_deletion":
		return decode(name, value, &server.DeletionScheduled)
	case "enable_vpc":
		var enable bool
		failed := decode(name, value, &enable)
		server.VpcStatus = "vpc_disabled"
		if enable {
			server.VpcStatus = "vpc_enabled"
		}
		return failed
	case "commitment_type":
		var wanted struct {
			Type string `json:"commitment_type"`
		}
		if failed := decode(name, value, &wanted); failed != nil {
			return failed
		}
		return server.commit(wanted.Type)
	case "public_bandwidth_bps":
		return decode(name, value, &server.PublicBandwidthBps)
	case "applied_runner_configurations":
		var wanted struct {
			IDs []string `json:"runner_configuration_ids"`
		}
		failed := decode(name, value, &wanted)
		server.AppliedRunnerConfigurationIDs = append([]string{}, wanted.IDs...)
		return failed
	default:
		return invalidArgument(name, "unknown", "a server has no such field that can be changed")
	}
}

// commit sets the commitment of a server.
func (s *Server) commit(to string) *failure {
	switch to {
	case "duration_24h", "none":
		// Recorded: the daily commitment is accepted and comes back as none.
		s.Commitment = &Commitment{Type: "none"}
	case "renewed_monthly":
		s.Commitment = &Commitment{Type: "renewed_monthly"}
	default:
		return invalidArgument("commitment_type", "constraint", fmt.Sprintf("%q is not a commitment", to))
	}
	return nil
}

func decode(name string, value json.RawMessage, into any) *failure {
	if err := json.Unmarshal(value, into); err != nil {
		return invalidArgument(name, "format", err.Error())
	}
	return nil
}
