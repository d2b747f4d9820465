package sandbox

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/internal/sandbox/cloud"
)

// Seed holds the values that a new world is created with; an existing folder keeps its own. Empty
// fields have defaults.
type Seed struct {
	ProjectID, ClusterUID string
	Zones                 []string
	PoolPrefix            string // prefix of pool servers' names: prefix + "01" …
	Hosts                 int    // pool size; 0 = 16, or 20 by hand
	Population            string // Pool or ByHand; "" = Pool
	Rented                []Rented
	PasswordlessSudo      bool   // whether sudo works without a password; on delivered Macs it asks for one
	SSHUser               string // "" = "m1"
	KubeContext           string // name of the cluster in a kubeconfig; "" = any name will do
	SSHKeyRef             string // reference to the private key of the world's fleet, e.g. "k8s://macfleet/fleet-ssh/id_ed25519"
}

// Rented is a server outside the pool: a configuration refers to it by id.
type Rented struct{ ID, Name, Type string }

const (
	defaultHosts     = 16
	secondKeyRef     = "file://second_ssh_key" // of a key that no Mac accepts at first, to rotate to
	defaultKeyRef    = "k8s://macfleet/fleet-ssh/id_ed25519"
	defaultProjectID = "5eed0000-0000-4000-8000-000000000001"
	defaultCluster   = "5eed0000-0000-4000-8000-000000000002"
	organizationID   = "5eed0000-0000-4000-8000-000000000003"
)

// complete fills in defaults, and refuses what the real clients would refuse later, with a worse
// message.
func (s Seed) complete() (Seed, error) {
	s.ProjectID = cmp.Or(s.ProjectID, defaultProjectID)
	s.ClusterUID = cmp.Or(s.ClusterUID, defaultCluster)
	s.PoolPrefix = cmp.Or(s.PoolPrefix, "pool-")
	if s.Population = cmp.Or(s.Population, Pool); !slices.Contains(Populations(), s.Population) {
		return Seed{}, fmt.Errorf("create the sandbox: there is no population %q; fix: choose one of %s", s.Population, strings.Join(Populations(), ", "))
	}
	if s.Population == ByHand {
		s.Hosts = cmp.Or(s.Hosts, handHosts)
	}
	if s.Population == ByHand && s.Hosts > mostByHand {
		return Seed{}, fmt.Errorf("create the sandbox: a world by hand has 1 to %d hosts, not %d", mostByHand, s.Hosts)
	}
	s.Hosts = cmp.Or(s.Hosts, defaultHosts)
	s.SSHUser = cmp.Or(s.SSHUser, "m1")
	s.SSHKeyRef = cmp.Or(s.SSHKeyRef, defaultKeyRef)
	s.Zones = slices.Clone(s.Zones)
	if len(s.Zones) == 0 {
		s.Zones = []string{"fr-par-1"}
	}
	if !cloud.ValidUUID(s.ProjectID) {
		return Seed{}, fmt.Errorf("create the sandbox: project id %q is not a lower-case UUID; fix: correct project_id", s.ProjectID)
	}
	form := regexp.MustCompile(`^[a-z]{2}-[a-z]{3,7}-[0-9]{1,2}$`)
	for _, zone := range s.Zones {
		if !form.MatchString(zone) {
			return Seed{}, fmt.Errorf("create the sandbox: %q is not a zone name such as fr-par-1; fix: correct zones", zone)
		}
	}
	if s.Hosts < 0 || s.Hosts > maxHosts {
		return Seed{}, fmt.Errorf("create the sandbox: a world has 1 to %d hosts, not %d", maxHosts, s.Hosts)
	}
	return s, nil
}
