package cloud

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"time"

	"github.com/macfleet/macfleet/internal/sandbox/store"
)

// settingsFile holds the Settings. A person creates it; without it, each has its default.
const settingsFile = "settings.json"

// Settings are how the simulated provider behaves. A Span is a duration such as 3s or 0s.
type Settings struct {
	Reinstall Span `json:"reinstall,omitempty"` // how long a reinstallation takes; "" = 3s
	Reboot    Span `json:"reboot,omitempty"`    // how long a restart takes; "" = 1s
	Diagnosis Span `json:"diagnosis,omitempty"` // how long a connectivity diagnostic takes; "" = 0s

	Lease     Span `json:"lease,omitempty"`     // how long a new server must be kept; "" = the type's minimum
	Passwords Span `json:"passwords,omitempty"` // how long after the delivery or a reinstallation passwords are shown; "" = always

	// Quota is how many servers the account says that it may have; 0 = no limit.
	Quota int `json:"quota,omitempty"`
	// Stock is how many servers of a type the catalogue has, by TYPE or by ZONE/TYPE. Others have none.
	Stock map[string]int `json:"stock,omitempty"`
	// Leases are minimum leases by type, such as 86400s.
	Leases map[string]Span `json:"leases,omitempty"`

	// Gone are the families and the names of systems that the catalogue no longer has.
	Gone []string `json:"gone,omitempty"`
	// Renamed are new names of systems, by the old one: a patch release that replaced another.
	Renamed map[string]string `json:"renamed,omitempty"`

	// FailInstalls is how many of the next reinstallations end with the status error.
	FailInstalls int `json:"fail_installs,omitempty"`

	// KeyExpires is when the API key expires.
	KeyExpires *time.Time `json:"key_expires,omitempty"`
	// Ordered counts the new servers so far. Their ids follow from it.
	Ordered int `json:"ordered,omitempty"`
}

// Span is a duration as text, such as 3s or 0s. "" is the default.
type Span string

func (s Span) or(otherwise time.Duration) (time.Duration, error) {
	if s == "" {
		return otherwise, nil
	}
	d, err := time.ParseDuration(string(s))
	if err == nil && d < 0 {
		err = fmt.Errorf("%s is in the past", d)
	}
	return d, err
}

// settings reads the settings.
func (a *API) settings() (Settings, *failure) {
	var own Settings
	if err := store.ReadJSON(a.own, &own); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return own, internal(err)
	}
	if err := own.check(); err != nil {
		return own, internal(fmt.Errorf("%s: %w", a.own, err))
	}
	return own, nil
}

func (s Settings) check() error {
	spans := map[string]Span{"reinstall": s.Reinstall, "reboot": s.Reboot, "diagnosis": s.Diagnosis,
		"lease": s.Lease, "passwords": s.Passwords}
	for name, span := range s.Leases {
		spans["leases of "+name] = span
	}
	for _, name := range slices.Sorted(maps.Keys(spans)) {
		if _, err := spans[name].or(0); err != nil {
			return fmt.Errorf("%s: %w; use a duration such as 3s", name, err)
		}
	}
	return nil
}

// lasts returns how long something takes.
func (a *API) lasts(which func(Settings) Span, otherwise time.Duration) (time.Duration, *failure) {
	own, failed := a.settings()
	if failed != nil {
		return 0, failed
	}
	d, _ := which(own).or(otherwise) // checked above
	return d, nil
}

// Set changes the settings.
func (a *API) Set(change func(*Settings)) error {
	unlock, err := a.lock.Lock()
	if err != nil {
		return err
	}
	defer unlock()
	return a.set(change)
}

// set is Set with the lock held.
func (a *API) set(change func(*Settings)) error {
	own, failed := a.settings()
	if failed != nil {
		return failed
	}
	change(&own)
	return store.WriteJSON(a.own, own)
}

// stock returns how many servers of a type a zone has left.
func (s Settings) stock(zone, name string) int {
	if n, ok := s.Stock[zone+"/"+name]; ok {
		return n
	}
	if n, ok := s.Stock[name]; ok {
		return n
	}
	if name == asahiType {
		return fewLeft
	}
	return 0
}

// fewLeft is up to how many servers the stock of a type is low.
const fewLeft = 2

func stockWord(n int) string {
	switch {
	case n <= 0:
		return "no_stock"
	case n <= fewLeft:
		return "low_stock"
	}
	return "high_stock"
}

// lease returns how long a server of a type must be kept at least.
func (s Settings) lease(name string) time.Duration {
	otherwise := 24 * time.Hour
	if name == asahiType {
		otherwise = 0
	}
	d, _ := s.Leases[name].or(otherwise) // checked when read
	return d
}
