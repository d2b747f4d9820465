package inventory

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Stock is how many servers of a type the provider has left.
type Stock string

// The provider's words for stock.
const (
	UnknownStock Stock = "unknown_stock"
	NoStock      Stock = "no_stock"
	LowStock     Stock = "low_stock"
	HighStock    Stock = "high_stock"
)

// Offer is a server type that the provider rents in one zone.
type Offer struct {
	Type     string        `json:"type"`
	Zone     string        `json:"zone"`
	Stock    Stock         `json:"stock"`
	MinLease time.Duration `json:"minimum_lease"` // a server cannot be deleted earlier; 0: any time
}

// DevOS is the family of the provider's images for CI. A server with one cannot be reinstalled.
const DevOS = "DevOS"

// System is an operating system that the provider installs in one zone. The catalogue changes: patch releases
// come and go.
type System struct {
	ID      string   `json:"id"`
	Name    string   `json:"name"` // for example macos-tahoe-26.6.1
	Family  string   `json:"family"`
	Version string   `json:"version"`
	Zone    string   `json:"zone"`
	Beta    bool     `json:"beta,omitempty"`
	Types   []string `json:"types"` // server types it runs on
	Fast    []string `json:"fast"`  // of these, those that come without a slow reinstall
}

// Catalogue is what the provider rents and installs in the configured zones.
type Catalogue struct {
	Offers  []Offer  `json:"offers"`
	Systems []System `json:"systems"`
}

// System returns the newest released operating system of a family that a server type runs in a zone.
func (c Catalogue) System(family, serverType, zone string) (System, bool) {
	fit := slices.DeleteFunc(slices.Clone(c.Systems), func(s System) bool {
		return s.Family != family || s.Zone != zone || s.Beta || !slices.Contains(s.Types, serverType)
	})
	if len(fit) == 0 {
		return System{}, false
	}
	return slices.MaxFunc(fit, func(a, b System) int {
		return cmp.Or(compareVersions(a.Version, b.Version), cmp.Compare(a.ID, b.ID))
	}), true
}

// Families returns the families that a server type runs in a zone, sorted.
func (c Catalogue) Families(serverType, zone string) []string {
	var out []string
	for _, s := range c.Systems {
		if s.Zone == zone && !s.Beta && slices.Contains(s.Types, serverType) {
			out = append(out, s.Family)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Offer returns the provider's offer of a type in a zone.
func (c Catalogue) Offer(serverType, zone string) (Offer, bool) {
	i := slices.IndexFunc(c.Offers, func(o Offer) bool { return o.Type == serverType && o.Zone == zone })
	if i < 0 {
		return Offer{}, false
	}
	return c.Offers[i], true
}

// compareVersions compares dotted versions by their numbers.
func compareVersions(a, b string) int {
	as, bs := strings.Split(a, "."), strings.Split(b, ".")
	for i := range max(len(as), len(bs)) {
		var x, y int
		if i < len(as) {
			x, _ = strconv.Atoi(as[i])
		}
		if i < len(bs) {
			y, _ = strconv.Atoi(bs[i])
		}
		if x != y {
			return cmp.Compare(x, y)
		}
	}
	return 0
}

// Diagnosis is the provider's own look at a server's network.
type Diagnosis struct {
	Healthy bool     `json:"healthy"`
	Text    string   `json:"text"`    // the provider's message
	Actions []string `json:"actions"` // what it supports: reboot, reinstall
	// Detailed says that the fields below are known; otherwise they are false.
	Detailed  bool      `json:"detailed"`
	Alive     bool      `json:"alive"`      // the machine answers
	Agent     bool      `json:"agent"`      // the provider's agent on it answers
	SSH       bool      `json:"ssh"`        // port 22 is open, as the provider sees it
	VNC       bool      `json:"vnc"`        // the VNC port is open
	CheckedIn time.Time `json:"checked_in"` // the last sign of the agent; zero: unknown
}

// SSHKey is a public key that the provider injects into servers when they are installed or rebooted.
type SSHKey struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Public   string `json:"public_key"` // type and base64, without the comment
	Project  string `json:"project_id"`
	Disabled bool   `json:"disabled,omitempty"`
}
