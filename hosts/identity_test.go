package hosts

import (
	"testing"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

const (
	markerText = `{"configuration":"acme","environment":"prod","name":"acme-prod-runners-mini-1","server_id":"id-1"}` + "\n"
	claimText  = `{"configuration":"acme","environment":"prod","name":"acme-prod-runners-mini-1","server_id":"id-1","nonce":"n"}` + "\n"
	ioregText  = "+-o J473AP  <class IOPlatformExpertDevice>\n    {\n      \"model\" = <\"Mac14,3\">\n      \"IOPlatformSerialNumber\" = \"C07ACME001\"\n    }\n"
	// A loaded job keeps no second entry for its file; one that is disabled stays away, unless it is still loaded.
	jobsText = `job system/org.cirruslabs.orchard.worker
path = /Library/LaunchDaemons/org.cirruslabs.orchard.worker.plist
program = /opt/homebrew/bin/orchard
job system/com.tailscale.tailscaled
program = /usr/local/bin/tailscaled
job system/dev.acme.pull
program = /usr/local/bin/ansible-pull
disabled system/dev.acme.pull
disabled system/com.chef.chef-client
file system/org.cirruslabs.orchard.worker
path = /Library/LaunchDaemons/org.cirruslabs.orchard.worker.plist
file system/com.chef.chef-client
path = /Library/LaunchDaemons/com.chef.chef-client.plist
file gui/501/gitlab-runner
path = /Users/m1/Library/LaunchAgents/gitlab-runner.plist
`
)

func acmeMarker() plan.Marker {
	return plan.Marker{Configuration: "acme", Environment: "prod", Name: "acme-prod-runners-mini-1", ServerID: "id-1"}
}

func acmeClaim() plan.Claim {
	return plan.Claim{Configuration: "acme", Environment: "prod", Name: "acme-prod-runners-mini-1", ServerID: "id-1", Nonce: "n"}
}

func TestIdentify(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		facts plan.Facts
		want  plan.HostSeen // without its facts
	}{
		{
			name: "a member",
			facts: plan.Facts{"host.marker": said(0, markerText, ""), "host.claim": said(0, claimText, ""),
				"host.serial": said(0, ioregText, ""), "host.os-version": said(0, "26.3\n", "")},
			want: plan.HostSeen{Marker: inventory.Present(acmeMarker()), Claim: inventory.Present(acmeClaim()),
				Serial: inventory.Present("C07ACME001"), OSVersion: inventory.Present("26.3")},
		},
		{
			name: "a clean host",
			facts: plan.Facts{"host.marker": said(absent, "", ""), "host.claim": said(absent, "", ""),
				"host.serial": said(0, ioregText, ""), "host.os-version": said(0, "13.0.1", "")},
			want: plan.HostSeen{Marker: inventory.Absent[plan.Marker](), Claim: inventory.Absent[plan.Claim](),
				Serial: inventory.Present("C07ACME001"), OSVersion: inventory.Present("13.0.1")},
		},
		{
			name:  "no one answered",
			facts: plan.Facts{},
			want: plan.HostSeen{
				Marker:    inventory.Unread[plan.Marker]("the probe host.marker did not run"),
				Claim:     inventory.Unread[plan.Claim]("the probe host.claim did not run"),
				Serial:    inventory.Unread[string]("the probe host.serial did not run"),
				OSVersion: inventory.Unread[string]("the probe host.os-version did not run")},
		},
		{
			// A file that cannot be read may be someone's marker: it is never absent.
			name: "tools fail",
			facts: plan.Facts{"host.marker": said(1, "", "cat: host.json: I/O error\n"), "host.claim": unread("needs root"),
				"host.serial": said(127, "", "sh: line 1\n  ioreg: not found \n\n"), "host.os-version": said(4, "", "")},
			want: plan.HostSeen{
				Marker:    inventory.Unread[plan.Marker]("exit code 1: cat: host.json: I/O error"),
				Claim:     inventory.Unread[plan.Claim]("needs root"),
				Serial:    inventory.Unread[string]("exit code 127: ioreg: not found"),
				OSVersion: inventory.Unread[string]("exit code 4: ")},
		},
		{
			name: "absent and yet with text",
			facts: plan.Facts{"host.marker": said(absent, "x", "odd"), "host.claim": said(absent, claimText, "odd"),
				"host.serial": said(absent, "", "odd"), "host.os-version": said(absent, "", "odd")},
			want: plan.HostSeen{
				Marker:    inventory.Unread[plan.Marker]("exit code 4: odd"),
				Claim:     inventory.Unread[plan.Claim]("exit code 4: odd"),
				Serial:    inventory.Unread[string]("exit code 4: odd"),
				OSVersion: inventory.Unread[string]("exit code 4: odd")},
		},
	}
	for _, tt := range tests {
		got := plan.HostSeen{Facts: tt.facts}
		identify(&got)
		tt.want.Facts = tt.facts
		tt.want.Jobs = inventory.Unread[[]plan.Job]("the probe host.jobs did not run")
		is(t, tt.name, got, tt.want)
	}
}

func TestIdentityParsers(t *testing.T) {
	t.Parallel()
	text := func(parse func(string) (string, error)) func(string) (any, error) {
		return func(s string) (any, error) { return parse(s) }
	}
	claim := func(s string) (any, error) { return parseClaim(s) }
	jobs := func(s string) (any, error) { return parseJobs(s) }
	tests := []struct {
		name  string
		parse func(string) (any, error)
		text  string
		want  any // nil: an error
	}{
		{"serial", text(parseSerial), ioregText, "C07ACME001"},
		{"serial, first of two", text(parseSerial), `"IOPlatformSerialNumber" = "A" "IOPlatformSerialNumber" = "B"`, "A"},
		{"serial empty", text(parseSerial), `"IOPlatformSerialNumber" = ""`, nil},
		{"serial not closed", text(parseSerial), `"IOPlatformSerialNumber" = "C07`, nil},
		{"serial missing", text(parseSerial), "+-o J473AP\n", nil},
		{"serial of nothing", text(parseSerial), "", nil},
		{"version", text(parseVersion), "15.6.1\n", "15.6.1"},
		{"version empty", text(parseVersion), "\n", nil},
		{"version with words", text(parseVersion), "macOS 15", nil},
		{"version on two lines", text(parseVersion), "15\n6\n", nil},
		{"claim", claim, claimText, acmeClaim()},
		{"claim of nothing", claim, "", nil},
		{"claim is not an object", claim, `["acme"]`, nil},
		{"claim without configuration", claim, `{"name":"acme-1","server_id":"1"}`, nil},
		{"claim without name", claim, `{"configuration":"acme","server_id":"1"}`, nil},
		{"claim without server", claim, `{"configuration":"acme","name":"acme-1"}`, nil},
		{"two claims", claim, claimText + claimText, nil},
		{"jobs", jobs, jobsText, []plan.Job{
			{Target: "system/org.cirruslabs.orchard.worker", Path: "/Library/LaunchDaemons/org.cirruslabs.orchard.worker.plist", Program: "/opt/homebrew/bin/orchard", Loaded: true},
			{Target: "system/dev.acme.pull", Program: "/usr/local/bin/ansible-pull", Loaded: true},
			{Target: "gui/501/gitlab-runner", Path: "/Users/m1/Library/LaunchAgents/gitlab-runner.plist"},
		}},
		{"no jobs", jobs, "", []plan.Job(nil)},
		{"jobs that cannot be understood", jobs, "job system/a\nstate running\n", nil},
		{"a path without a job", jobs, "path = /a\n", nil},
	}
	for _, tt := range tests {
		got, err := tt.parse(tt.text)
		if tt.want == nil {
			if err == nil {
				t.Errorf("parsed %q as %+v, want an error", tt.text, got)
			}
			continue
		}
		must(t, err)
		is(t, tt.name, got, tt.want)
	}
}
