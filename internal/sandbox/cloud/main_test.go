package cloud_test

import (
	"fmt"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	applesilicon "github.com/scaleway/scaleway-sdk-go/api/applesilicon/v1alpha1"
	iam "github.com/scaleway/scaleway-sdk-go/api/iam/v1alpha1"
	"github.com/scaleway/scaleway-sdk-go/scw"

	"github.com/macfleet/macfleet/internal/maintest"
	"github.com/macfleet/macfleet/internal/sandbox/cloud"
)

func TestMain(m *testing.M) { maintest.Main(m) }

const (
	accessKey = "SCWXXXXXXXXXXXXXXXXX"
	secretKey = "11111111-1111-4111-8111-111111111111"
	project   = "22222222-2222-4222-8222-222222222222"
	zone      = "fr-par-1"
	otherZone = "fr-par-3"

	organization = "55555555-5555-4555-8555-555555555555"
)

// serverNumber returns a server; odd ones are in the other zone.
func serverNumber(i int) cloud.Server {
	created := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC).Add(time.Duration(i) * time.Minute)
	address := netip.AddrFrom4([4]byte{198, 51, byte(100 + i/250), byte(1 + i%250)})
	in := zone
	if i%2 == 1 {
		in = otherZone
	}
	return cloud.Server{
		ID: fmt.Sprintf("%08x-0000-4000-8000-000000000000", i), Type: "M2-L", Name: fmt.Sprintf("acme-pool-%03d", i),
		ProjectID: project, OrganizationID: organization, IP: address, VncURL: fmt.Sprintf("vnc://m1:pass%d@%s:59010", i, address), VncPort: 59010,
		SSHUsername: "m1", SudoPassword: fmt.Sprintf("pass%d", i), Status: "ready", Delivered: true, Zone: in,
		CreatedAt: created, UpdatedAt: created, DeletableAt: created.Add(24 * time.Hour),
	}
}

// world is one API over a folder of servers.
type world struct {
	dir    string
	api    *cloud.API
	server *httptest.Server
}

func newWorld(t *testing.T, servers int, options cloud.Options) *world {
	t.Helper()
	dir := t.TempDir()
	all := make([]cloud.Server, servers)
	for i := range all {
		all[i] = serverNumber(i)
	}
	must(t, cloud.Create(dir, all))
	return serve(t, dir, options)
}

// serve opens the folder again, as another process would.
func serve(t *testing.T, dir string, options cloud.Options) *world {
	t.Helper()
	options.SecretKey, options.ProjectID, options.Zones = secretKey, project, []string{zone, otherZone}
	options.AccessKey, options.OrganizationID = accessKey, organization
	if options.RequestsPerSecond == 0 {
		options.RequestsPerSecond = 1_000_000
	}
	api, err := cloud.New(dir, options)
	must(t, err)
	server := httptest.NewServer(api)
	t.Cleanup(server.Close)
	return &world{dir: dir, api: api, server: server}
}

// client returns the vendor's client, safe for concurrent use.
func (w *world) client(t *testing.T, secret string) *applesilicon.API {
	t.Helper()
	client, err := scw.NewClient(scw.WithAPIURL(w.server.URL), scw.WithAuth(accessKey, secret),
		scw.WithHTTPClient(w.server.Client()))
	must(t, err)
	_, err = client.GetAPIMetadata()
	if err != nil && secret == secretKey {
		t.Fatal(err)
	}
	return applesilicon.NewAPI(client)
}

// Two SSH keys of a project.
const (
	fleetKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKUSGYF7WqwJby/atkbAOYoCs5wIjdcPgeta4eVMtxtl fleet"
	otherKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDo5Mw01tW/FBh48yrCB4FTQOiVNX0ePCgg3Gb/n/pvX other"
)

// iam returns the vendor's client of the account.
func (w *world) iam(t *testing.T) *iam.API {
	t.Helper()
	client, err := scw.NewClient(scw.WithAPIURL(w.server.URL), scw.WithAuth(accessKey, secretKey), scw.WithHTTPClient(w.server.Client()),
		scw.WithDefaultProjectID(project), scw.WithDefaultOrganizationID(organization))
	must(t, err)
	if _, err := client.GetAPIMetadata(); err != nil {
		t.Fatal(err)
	}
	return iam.NewAPI(client)
}

// must ends the test at the first error.
func must(t testing.TB, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}
