package cloud

import (
	"fmt"
	"net/netip"
	"net/url"
	"time"
)

// sealed is what the API shows instead of a password that it does not disclose.
const sealed = "<sealed>"

// Sealed returns the placeholders of a server's passwords.
func Sealed() Passwords { return Passwords{sealed, sealed} }

// Server is a Mac mini as the API represents it, field by field as the vendor's SDK decodes it. A
// state file holds this object, with the passwords that the API discloses in plain text.
type Server struct {
	ID                            string      `json:"id"`
	Type                          string      `json:"type"`
	Name                          string      `json:"name"`
	ProjectID                     string      `json:"project_id"`
	OrganizationID                string      `json:"organization_id"`
	IP                            netip.Addr  `json:"ip"`
	VncURL                        string      `json:"vnc_url"`
	VncPort                       uint32      `json:"vnc_port"`
	SSHUsername                   string      `json:"ssh_username"`
	SudoPassword                  string      `json:"sudo_password"`
	OS                            *OS         `json:"os"`
	Status                        string      `json:"status"`
	CreatedAt                     time.Time   `json:"created_at"`
	UpdatedAt                     time.Time   `json:"updated_at"`
	DeletableAt                   time.Time   `json:"deletable_at"`
	DeletionScheduled             bool        `json:"deletion_scheduled"`
	Zone                          string      `json:"zone"`
	Srn                           string      `json:"srn"`
	Delivered                     bool        `json:"delivered"`
	VpcStatus                     string      `json:"vpc_status"`
	Commitment                    *Commitment `json:"commitment"`
	PublicBandwidthBps            uint64      `json:"public_bandwidth_bps"`
	RunnerConfiguration           any         `json:"runner_configuration"`
	Tags                          []string    `json:"tags"`
	AppliedRunnerConfigurationIDs []string    `json:"applied_runner_configuration_ids"`
	KextEnabled                   bool        `json:"kext_enabled"`

	Life Life `json:"-"` // never in an answer
}

// Commitment is the period for which a server is paid.
type Commitment struct {
	Type      string `json:"type"`
	Cancelled bool   `json:"cancelled"`
}

// sealed returns the server as lists and answers to writes show it.
func (s Server) sealed() Server {
	s.VncURL, s.SudoPassword = sealed, sealed
	return s
}

// concealed returns the server as the API shows it when it no longer shows passwords.
func (s Server) concealed() Server {
	s.SudoPassword = ""
	if address, err := url.Parse(s.VncURL); err == nil && address.User != nil {
		address.User = url.User(address.User.Username())
		s.VncURL = address.String()
	}
	return s
}

// normal returns the server with the fields that an edited file may lack and clients need.
func (s Server) normal() Server {
	if s.Tags == nil {
		s.Tags = []string{}
	}
	if s.AppliedRunnerConfigurationIDs == nil {
		s.AppliedRunnerConfigurationIDs = []string{}
	}
	return s
}

// ValidUUID reports whether id is a lower-case UUID. It also prevents an id in a request from naming a
// file outside the state folder.
func ValidUUID(id string) bool {
	if len(id) != 36 {
		return false
	}
	for i, c := range []byte(id) {
		hyphen := i == 8 || i == 13 || i == 18 || i == 23
		hex := c >= '0' && c <= '9' || c >= 'a' && c <= 'f'
		if hyphen != (c == '-') || !hyphen && !hex {
			return false
		}
	}
	return true
}

// FormatUUID returns the version 4 UUID of these bytes.
func FormatUUID(b [16]byte) string {
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
