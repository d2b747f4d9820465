package tailscale

import "github.com/macfleet/macfleet/plan"

// The step's codes.
var (
	codeMissing    = plan.NewCode("tailscale-missing", plan.Warning, "tailscaled is not installed")
	codeEdited     = plan.NewCode("tailscale-edited", plan.Warning, "a program of Tailscale was modified after it was installed")
	codeUnknown    = plan.NewCode("tailscale-unknown", plan.Warning, "macfleet did not install tailscaled: version unknown")
	codeOutdated   = plan.NewCode("tailscale-outdated", plan.Notice, "the version of Tailscale is not the configured one")
	codeJobEdited  = plan.NewCode("tailscale-job-edited", plan.Warning, "the job of tailscaled, in launchd or in its property list, differs from the configured one")
	codeStopped    = plan.NewCode("tailscaled-stopped", plan.Critical, "tailscaled does not run")
	codeOldProcess = plan.NewCode("tailscaled-outdated", plan.Warning, "the running tailscaled is older than its program")
	codeNoState    = plan.NewCode("missing-state-folder", plan.Critical, "the folder of tailscaled's state is missing, so it cannot start")
	codeNotJoined  = plan.NewCode("tailscale-not-joined", plan.Notice, "the host has not joined the tailnet yet")
	codeLoggedOut  = plan.NewCode("tailscale-logged-out", plan.Critical, "tailscaled is logged out: it has no node key")
	codeDown       = plan.NewCode("tailscale-down", plan.Critical, "someone ran tailscale down: tailscaled has its node key and is set not to connect")
	codeExpired    = plan.NewCode("key-expired", plan.Critical, "the host's node key has expired")
	codeDeleted    = plan.NewCode("device-deleted", plan.Critical, "the tailnet no longer has the host's device, although tailscaled may say that it runs")
	codeRetrying   = plan.NewCode("join-retrying", plan.Critical, "tailscaled has an auth key in its memory, with which it tries to join for ever")
	codeUnapproved = plan.NewCode("machine-not-approved", plan.Critical, "the host's device waits for an administrator's approval")
	codeOffline    = plan.NewCode("control-unreachable", plan.Critical, "tailscaled does not reach its control server",
		"check the host's way out of its network (TCP 443), then run the command again")
	codeNameTaken = plan.NewCode("hostname-taken", plan.Warning, "another device has the host's name in the tailnet",
		"rename or delete the other device in the admin console, then: macfleet apply")
	codeRenamed = plan.NewCode("device-renamed", plan.Warning, "the host's device does not have the host's name")
	codeShared  = plan.NewCode("node-key-shared", plan.Critical, "another machine uses a copy of the host's node key",
		"delete /Library/Tailscale on the other machine and the device in the admin console, then: macfleet apply")
	codeTags      = plan.NewCode("tags-edited", plan.Critical, "the tags of the host's device are not the configured ones, so other rules apply to it")
	codeExpires   = plan.NewCode("key-expires", plan.Warning, "the host's node key will expire")
	codeSettings  = plan.NewCode("tailscale-settings", plan.Warning, "a setting of tailscaled differs")
	codeElsewhere = plan.NewCode("other-control-server", plan.Warning, "tailscaled uses another control server")
	codeResolver  = plan.NewCode("resolver-leftover", plan.Warning, "a tailscaled that was killed left files in /etc/resolver, which still direct names to it")
	codeKeyLeft   = plan.NewCode("tailnet-key-left", plan.Warning, "an auth key of an earlier run can still be used")
	codeKeyFile   = plan.NewCode("tailnet-key-file", plan.Critical, "a file with an auth key was left on the host")
	codeNotWanted = plan.NewCode("tailscale-not-wanted", plan.Notice, "the configuration no longer wants the host in a tailnet")
	codePathInUse = plan.NewCode("tailnet-in-use", plan.Warning, "the connection to the host goes over the tailnet that would end",
		`connect over another path: via = ["public"] in the ssh block, then: macfleet apply`)
	codeDeviceStays = plan.NewCode("device-stays", plan.Warning, "macfleet cannot delete a host's device, because the configuration has no credentials for its tailnet",
		"delete the device in the admin console; next time set enabled = false and apply before the block is removed")
	codeLeftOver = plan.NewCode("device-left-over", plan.Notice, "the tailnet lists a disconnected device whose host is gone")
	codeCap      = plan.NewCode("device-cap-reached", plan.NotDrift, "the tailnet has no room for another device",
		"delete unused devices; or change the tailnet's plan and raise device_budget; or disable the step in a fleet; or use your own control server (control_url)")
	codeMagicDNS = plan.NewCode("magicdns-off", plan.Notice, "MagicDNS is off in the tailnet, so devices are found only by address",
		"turn MagicDNS on in the admin console (DNS)")
)
