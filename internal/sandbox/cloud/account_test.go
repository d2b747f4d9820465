package cloud_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/scaleway/scaleway-sdk-go/api/applesilicon/v1alpha1"
	iam "github.com/scaleway/scaleway-sdk-go/api/iam/v1alpha1"
	"github.com/scaleway/scaleway-sdk-go/scw"

	"github.com/macfleet/macfleet/internal/sandbox/cloud"
)

func isDenied(err error) bool {
	_, ok := errors.AsType[*scw.PermissionsDeniedError](err)
	return ok
}

func TestSSHKeys(t *testing.T) {
	t.Parallel()
	c := newClock()
	options := c.options()
	options.Keys = []string{fleetKey}
	w := newWorld(t, 1, options)
	api := w.iam(t)
	list := func(request *iam.ListSSHKeysRequest) []*iam.SSHKey {
		t.Helper()
		got, err := api.ListSSHKeys(request, scw.WithAllPages())
		must(t, err)
		return got.SSHKeys
	}
	mine := &iam.ListSSHKeysRequest{ProjectID: scw.StringPtr(project)}
	first := list(mine)
	if len(first) != 1 || first[0].PublicKey != fleetKey || first[0].ProjectID != project || !strings.Contains(first[0].Fingerprint, "MD5:") {
		t.Fatalf("a new world has the keys %+v", first)
	}
	made, err := api.CreateSSHKey(&iam.CreateSSHKeyRequest{Name: "second", PublicKey: otherKey})
	if err != nil || made.ProjectID != project || made.ID == "" {
		t.Fatalf("%+v, %v", made, err)
	}
	if _, err := api.CreateSSHKey(&iam.CreateSSHKeyRequest{Name: "bad", PublicKey: "no key"}); !isInvalid(err) {
		t.Errorf("a bad key: %v", err)
	}
	one := uint32(1)
	if all := list(&iam.ListSSHKeysRequest{ProjectID: scw.StringPtr(project), PageSize: &one}); len(all) != 2 {
		t.Errorf("by pages: %+v", all)
	}
	if named := list(&iam.ListSSHKeysRequest{Name: scw.StringPtr("second"), OrganizationID: scw.StringPtr(organization)}); len(named) != 1 || named[0].ID != made.ID {
		t.Errorf("by name: %+v", named)
	}
	if _, err := api.UpdateSSHKey(&iam.UpdateSSHKeyRequest{SSHKeyID: first[0].ID, Disabled: scw.BoolPtr(true)}); err != nil {
		t.Fatal(err)
	}
	if off := list(&iam.ListSSHKeysRequest{ProjectID: scw.StringPtr(project), Disabled: scw.BoolPtr(false)}); len(off) != 1 || off[0].ID != made.ID {
		t.Errorf("those in use: %+v", off)
	}
	// A Mac gets the keys that are in use when it is restarted.
	if _, err := w.client(t, secretKey).RebootServer(&applesilicon.RebootServerRequest{Zone: zone, ServerID: serverNumber(0).ID}); err != nil {
		t.Fatal(err)
	}
	if server, _, err := w.api.Server(serverNumber(0).ID); err != nil || len(server.Life.Keys) != 1 || server.Life.Keys[0] != otherKey {
		t.Errorf("a restarted Mac gets %q, %v", server.Life.Keys, err)
	}
	must(t, api.DeleteSSHKey(&iam.DeleteSSHKeyRequest{SSHKeyID: made.ID}))
	_, err = api.GetSSHKey(&iam.GetSSHKeyRequest{SSHKeyID: made.ID})
	if _, ok := errors.AsType[*scw.ResourceNotFoundError](err); !ok {
		t.Errorf("a deleted key: %v", err)
	}
}

func TestSSHKeyRights(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 0, cloud.Options{Keys: []string{fleetKey}})
	api := w.iam(t)
	w.write(t, "rights.json", `{"scope": "project"}`)
	_, err := api.ListSSHKeys(&iam.ListSSHKeysRequest{})
	if !isDenied(err) || !strings.Contains(err.Error(), "list ssh_key") {
		t.Errorf("a key of one project, without the project: %v", err)
	}
	mine := &iam.ListSSHKeysRequest{ProjectID: scw.StringPtr(project)}
	if _, err := api.ListSSHKeys(mine); err != nil {
		t.Errorf("a key of one project, with the project: %v", err)
	}
	w.write(t, "rights.json", `{"ssh_keys": "read-only"}`)
	if _, err := api.ListSSHKeys(mine); err != nil {
		t.Errorf("read-only: %v", err)
	}
	if _, err := api.CreateSSHKey(&iam.CreateSSHKeyRequest{Name: "x", PublicKey: otherKey}); !isDenied(err) {
		t.Errorf("read-only, create: %v", err)
	}
	w.write(t, "rights.json", `{"ssh_keys": "denied"}`)
	if _, err := api.ListSSHKeys(mine); !isDenied(err) {
		t.Errorf("denied: %v", err)
	}
}

func TestAccount(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3, cloud.Options{})
	w.write(t, "settings.json", `{"quota": 5, "key_expires": "2026-12-01T00:00:00Z"}`)
	api := w.iam(t)
	key, err := api.GetAPIKey(&iam.GetAPIKeyRequest{AccessKey: accessKey})
	if err != nil || key.DefaultProjectID != project || key.SecretKey != nil || key.ExpiresAt.Month() != time.December {
		t.Errorf("the key is %+v, %v", key, err)
	}
	quota, err := api.ListQuota(&iam.ListQuotaRequest{})
	//lint:ignore SA1019 the API sends it as well as the limits per zone
	if err != nil || quota.TotalCount != 1 || *quota.Quota[0].Limit != 5 || quota.Quota[0].Name != "apple_silicon_servers" {
		t.Errorf("quota %+v, %v", quota, err)
	}
	w.write(t, "rights.json", `{"account": "denied"}`)
	if _, err := api.GetAPIKey(&iam.GetAPIKeyRequest{AccessKey: accessKey}); !isDenied(err) {
		t.Errorf("without the right: %v", err)
	}
}

func TestKeyStates(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2, cloud.Options{})
	api := w.client(t, secretKey)
	mine := &applesilicon.ListServersRequest{Zone: zone, ProjectID: scw.StringPtr(project)}
	for state, reason := range map[string]string{"revoked": "not_found", "expired": "expired"} {
		w.write(t, "rights.json", `{"key": "`+state+`"}`)
		_, err := api.ListServers(mine)
		if refused, ok := errors.AsType[*scw.DeniedAuthenticationError](err); !ok || refused.Method != "api_key" || refused.Reason != reason {
			t.Errorf("%s: %T %v", state, err, err)
		}
	}
	const other = "44444444-4444-4444-8444-444444444444"
	w.write(t, "rights.json", `{"project": "`+other+`"}`)
	if _, err := api.ListServers(mine); !isDenied(err) {
		t.Errorf("a key of another project: %v", err)
	}
	for _, project := range []*string{nil, scw.StringPtr(other)} {
		list, err := api.ListServers(&applesilicon.ListServersRequest{Zone: zone, ProjectID: project})
		if err != nil || list.TotalCount != 0 {
			t.Errorf("a key of another project sees %v, %v", list, err)
		}
	}
	if _, err := api.GetServer(&applesilicon.GetServerRequest{Zone: zone, ServerID: serverNumber(0).ID}); !isDenied(err) {
		t.Errorf("a server of another project: %v", err)
	}
	must(t, w.api.Rights(func(lacking map[string]string) { delete(lacking, "project") }))
	if list, err := api.ListServers(mine); err != nil || list.TotalCount != 1 {
		t.Errorf("afterwards: %v, %v", list, err)
	}
}

func TestPasswordsEnd(t *testing.T) {
	t.Parallel()
	c := newClock()
	w := newWorld(t, 1, c.options())
	w.write(t, "settings.json", `{"passwords": "6h", "reinstall": "0s"}`)
	api, id := w.client(t, secretKey), serverNumber(0).ID
	if s := w.get(t, api, id); s.SudoPassword != "" || s.VncURL != "vnc://m1@198.51.100.1:59010" {
		t.Errorf("long after the order: %q %q", s.SudoPassword, s.VncURL)
	}
	if _, err := api.ReinstallServer(&applesilicon.ReinstallServerRequest{Zone: zone, ServerID: id}); err != nil {
		t.Fatal(err)
	}
	if s := w.get(t, api, id); s.SudoPassword == "" {
		t.Error("after a reinstallation no password is shown")
	}
	c.pass(6 * time.Hour)
	if s := w.get(t, api, id); s.SudoPassword != "" {
		t.Error("six hours later the password is still shown")
	}
}

func TestDiagnostic(t *testing.T) {
	t.Parallel()
	c := newClock()
	health := cloud.Health{CheckedIn: c.now, Alive: true, Agent: true, MDM: true, SSH: true, VNC: true}
	options := c.options()
	options.Health = func(cloud.Server) (cloud.Health, error) { return health, nil }
	w := newWorld(t, 1, options)
	w.write(t, "settings.json", `{"diagnosis": "5s"}`)
	api, id := w.client(t, secretKey), serverNumber(0).ID
	diagnose := func() *applesilicon.ConnectivityDiagnostic {
		t.Helper()
		started, err := api.StartConnectivityDiagnostic(&applesilicon.StartConnectivityDiagnosticRequest{Zone: zone, ServerID: id})
		must(t, err)
		read := func() *applesilicon.ConnectivityDiagnostic {
			got, err := api.GetConnectivityDiagnostic(&applesilicon.GetConnectivityDiagnosticRequest{Zone: zone, DiagnosticID: started.DiagnosticID})
			must(t, err)
			return got
		}
		if got := read(); got.Status != applesilicon.ConnectivityDiagnosticDiagnosticStatusProcessing || got.HealthDetails != nil {
			t.Errorf("at first: %+v", got)
		}
		c.pass(5 * time.Second)
		return read()
	}
	if got := diagnose(); got.Status != applesilicon.ConnectivityDiagnosticDiagnosticStatusCompleted || !got.IsHealthy || len(got.SupportedActions) != 0 || !got.HealthDetails.IsSSHPortUp {
		t.Errorf("of a healthy server: %+v", got)
	}
	health.SSH = false
	if got := diagnose(); got.IsHealthy || got.HealthDetails.IsSSHPortUp || !got.HealthDetails.IsServerAlive || len(got.SupportedActions) != 2 {
		t.Errorf("without port 22: %+v", got)
	}
	if _, err := api.StartConnectivityDiagnostic(&applesilicon.StartConnectivityDiagnosticRequest{Zone: zone, ServerID: serverNumber(1).ID}); !isDenied(err) {
		t.Errorf("of an unknown server: %v", err)
	}
	_, err := api.GetConnectivityDiagnostic(&applesilicon.GetConnectivityDiagnosticRequest{Zone: zone, DiagnosticID: id})
	if _, ok := errors.AsType[*scw.ResourceNotFoundError](err); !ok {
		t.Errorf("an unknown diagnostic: %v", err)
	}
}
