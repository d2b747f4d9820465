package sandbox

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"

	"github.com/macfleet/macfleet/internal/sandbox/cloud"
)

// Seed holds the plain values that a fresh world is made with; an existing folder keeps its own.
// What is left out gets a value that works.
type Seed struct {
	ProjectID, ClusterUID string
	Zones                 []string
	PoolPrefix            string // names of pool servers: prefix + "01" …
	Hosts                 int    // pool size; 0 = 16
	Rented                []Rented
	PasswordlessSudo      bool   // whether someone has prepared the Macs; as the provider delivers them, sudo asks for a password
	SSHUser               string // "" = "m1"
	KubeContext           string // name of the cluster in a kubeconfig; "" = any name will do
	SSHKeyRef             string // reference under which the world's fleet private key is found, e.g. "k8s://macfleet/fleet-ssh/id_ed25519"
}

// Rented is a server that is in no pool: a configuration names it by its id.
type Rented struct{ ID, Name, Type string }

const (
	defaultHosts     = 16
	defaultKeyRef    = "k8s://macfleet/fleet-ssh/id_ed25519"
	defaultProjectID = "5eed0000-0000-4000-8000-000000000001"
	defaultCluster   = "5eed0000-0000-4000-8000-000000000002"
	organizationID   = "5eed0000-0000-4000-8000-000000000003"
)

// complete fills what is left out and refuses what the real clients would refuse later, with less
// to go by.
func (s Seed) complete() (Seed, error) {
	s.ProjectID = cmp.Or(s.ProjectID, defaultProjectID)
	s.ClusterUID = cmp.Or(s.ClusterUID, defaultCluster)
	s.PoolPrefix = cmp.Or(s.PoolPrefix, "pool-")
	s.Hosts = cmp.Or(s.Hosts, defaultHosts)
	s.SSHUser = cmp.Or(s.SSHUser, "m1")
	s.SSHKeyRef = cmp.Or(s.SSHKeyRef, defaultKeyRef)
	s.Zones = slices.Clone(s.Zones)
	if len(s.Zones) == 0 {
		s.Zones = []string{"fr-par-1"}
	}
	if !cloud.ValidUUID(s.ProjectID) {
		return Seed{}, fmt.Errorf("make the sandbox: project id %q is not a UUID in lower case; Scaleway's client would refuse it, correct project_id", s.ProjectID)
	}
	form := regexp.MustCompile(`^[a-z]{2}-[a-z]{3,7}-[0-9]{1,2}$`)
	for _, zone := range s.Zones {
		if !form.MatchString(zone) {
			return Seed{}, fmt.Errorf("make the sandbox: %q is not the name of a zone, such as fr-par-1; correct zones", zone)
		}
	}
	if s.Hosts < 0 || s.Hosts > maxHosts {
		return Seed{}, fmt.Errorf("make the sandbox: a world has 1 to %d hosts, not %d; give another number", maxHosts, s.Hosts)
	}
	return s, nil
}
