package cloud

import (
	"errors"
	"io/fs"
	"net/http"
	"time"

	"github.com/macfleet/macfleet/internal/sandbox/store"
)

// Health is what the provider sees of a Mac from outside.
type Health struct {
	CheckedIn time.Time `json:"last_checkin_date"` // when the provider's agent on the Mac last answered
	Alive     bool      `json:"is_server_alive"`
	Agent     bool      `json:"is_agent_alive"`
	MDM       bool      `json:"is_mdm_alive"`
	SSH       bool      `json:"is_ssh_port_up"`
	VNC       bool      `json:"is_vnc_port_up"`
}

// healthy reports whether nothing is wrong.
func (h Health) healthy() bool { return h.Alive && h.Agent && h.MDM && h.SSH && h.VNC }

// diagnosis is a connectivity diagnostic. Its result is found when it is read after its end.
type diagnosis struct {
	ServerID string    `json:"server_id"`
	Zone     string    `json:"zone"`
	Ends     time.Time `json:"ends"`
}

// keptDiagnoses limits the file of diagnostics.
const keptDiagnoses = 100

func (a *API) diagnoses() (map[string]diagnosis, *failure) {
	all := map[string]diagnosis{}
	if err := store.ReadJSON(a.diagnosed, &all); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, internal(err)
	}
	return all, nil
}

func (a *API) startDiagnosis(r *http.Request) (any, *failure) {
	fields, failed := readBody(r)
	if failed != nil {
		return nil, failed
	}
	var id string
	if value, ok := fields["server_id"]; ok {
		failed = decode("server_id", value, &id)
	}
	if failed != nil {
		return nil, failed
	}
	r.SetPathValue("id", id)
	if _, failed := a.find(r); failed != nil {
		return nil, failed
	}
	if failed := a.mayRead(); failed != nil {
		return nil, failed
	}
	lasts, failed := a.lasts(func(s Settings) Span { return s.Diagnosis }, 0)
	if failed != nil {
		return nil, failed
	}
	all, failed := a.diagnoses()
	if failed != nil {
		return nil, failed
	}
	for old, one := range all {
		if len(all) >= keptDiagnoses && a.options.Now().After(one.Ends) {
			delete(all, old)
		}
	}
	started := requestID()
	all[started] = diagnosis{ServerID: id, Zone: r.PathValue("zone"), Ends: a.options.Now().UTC().Add(lasts)}
	if err := store.WriteJSON(a.diagnosed, all); err != nil {
		return nil, internal(err)
	}
	return map[string]string{"diagnostic_id": started}, nil
}

// diagnosisAnswer is a diagnostic as the API shows it.
type diagnosisAnswer struct {
	ID               string   `json:"id"`
	Status           string   `json:"status"`
	IsHealthy        bool     `json:"is_healthy"`
	HealthDetails    *Health  `json:"health_details"`
	SupportedActions []string `json:"supported_actions"`
	ErrorMessage     string   `json:"error_message"`
	Zone             string   `json:"zone"`

	of string // the server
}

// getDiagnosis reads a diagnostic. The Mac is examined after the lock is released.
func (a *API) getDiagnosis(r *http.Request) (any, *failure) {
	all, failed := a.diagnoses()
	if failed != nil {
		return nil, failed
	}
	id := r.PathValue("id")
	one, ok := all[id]
	if !ok || one.Zone != r.PathValue("zone") {
		return nil, notFound("connectivity_diagnostic", id)
	}
	answer := diagnosisAnswer{ID: id, Status: "processing", SupportedActions: []string{}, Zone: one.Zone, of: one.ServerID}
	if a.options.Now().Before(one.Ends) {
		return answer, nil
	}
	server, found, err := a.state.get(one.ServerID)
	if err != nil {
		return nil, internal(err)
	}
	if !found {
		answer.Status, answer.ErrorMessage = "error", "the server is gone"
		return answer, nil
	}
	return looked{answer, server}, nil
}

// looked is the answer of a diagnostic that has ended, without what the Mac says.
type looked struct {
	answer diagnosisAnswer
	server Server
}

func (a *API) examined(l looked) (any, *failure) {
	health := Health{CheckedIn: a.options.Now().UTC().Truncate(time.Second), Alive: true, Agent: true, MDM: true, SSH: true, VNC: true}
	if a.options.Health != nil {
		var err error
		if health, err = a.options.Health(l.server); err != nil {
			return nil, internal(err)
		}
	}
	l.answer.Status, l.answer.HealthDetails, l.answer.IsHealthy = "completed", &health, health.healthy()
	if !l.answer.IsHealthy && l.server.inWork() == nil {
		l.answer.SupportedActions = []string{"reboot_server", "reinstall_server"}
	}
	return l.answer, nil
}
