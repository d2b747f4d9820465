// Package drift makes of a plan what alarms go by: one item for each thing that
// moved behind our back, how bad it is, what is ignored for now, what nobody knows,
// and fingerprints that stay equal as long as the drift does. It does no I/O and
// takes no clock: what day it is, it is told.
package drift

import (
	"maps"
	"slices"
)

// Severity is how bad a drift is for the work on a host.
type Severity string

// The severities, from the worst.
const (
	Critical Severity = "critical" // the host does no work or may not be trusted, or soon, or its jobs are not held back
	Warning  Severity = "warning"  // it works, and not as is wanted
	Notice   Severity = "notice"   // it works as well as before
)

// Severities lists them, from the worst.
func Severities() []Severity { return []Severity{Critical, Warning, Notice} }

// SeverityOf returns how bad the drift with that code is. One that nobody has
// judged yet is a warning.
func SeverityOf(code string) Severity {
	if s, ok := severities()[code]; ok {
		return s
	}
	return Warning
}

// Codes returns every code that was judged, sorted.
func Codes() []string { return slices.Sorted(maps.Keys(severities())) }

// severities is the one place where codes are judged: those of drift, and those of
// what keeps macfleet from seeing any. docs/drift.md has the same table.
func severities() map[string]Severity {
	all := make(map[string]Severity, 160)
	for severity, codes := range judged() {
		for _, code := range codes {
			all[code] = severity
		}
	}
	return all
}

func judged() map[Severity][]string {
	return map[Severity][]string{Critical: criticals(), Warning: warnings(), Notice: notices()}
}

func criticals() []string {
	return []string{
		// Nobody knows the host, or it is another one.
		"unreachable", "no-ssh-answer", "connection-lost", "cut-off", "wrong-host-key", "unknown-host-key", "damaged-pin", "key-refused",
		"jump-failed", "jump-lost", "no-key", "swapped-host", "foreign-marker", "marker-of-another-server", "claimed-by-another", "owned-by-cluster-api", "server-vanished",
		"adopted-server-missing", "host-silent", "inventory-unread", "cluster-unread", "node-twice",
		// It starts no virtual machine: no session, no room.
		"no-gui-session", "dead-loginwindow", "sealed-kcpassword", "foreign-session", "work-in-dead-session", "filevault-on", "disk-full", "tart-missing",
		// Nobody gets root on it any more.
		"sudo-locked", "sudoers-broken", "sudo-missing", "wrong-password",
		// The jobs on it are not held back: the packet filter.
		"pf-disabled", "flushed-pf-anchor", "unreferenced-anchor", "vm-firewall-missing", "pf-conf-reset-by-update", "pf-conf-missing", "pf-conf-broken",
		"live-rules-edited", "bypassed-anchor", "vm-subnet-uncovered",
		// It is no Node, or two kubelets are at work.
		"kubelet-crash-loop", "killed-by-codesigning", "kubelet-respawn-stuck", "kubelet-stopped", "kubelet-not-loaded", "kubelet-disabled", "kubelet-missing",
		"btm-disallowed", "second-kubelet", "node-missing", "node-not-ready", "different-provider-id", "node-name-differs", "token-revoked", "kubeconfig-missing",
		"cluster-not-prepared", "pod-on-builder", "tart-create-failed",
	}
}

func warnings() []string {
	return []string{
		// A run left a Node closed, or could not empty it.
		"left-cordoned", "not-drained",
		// Of the host and its name.
		"marker-missing", "marker-unreadable", "claim-unreadable", "renamed-by-hand", "hostname-edited", "name-taken", "name-differs", "listed-host-missing", "newer-macfleet",
		"not-asked", "host-locked", "newer-run", "run-not-noted", "lock-unread", "hold-expired", "apply-broke-off", "ssh-config", "unread", "known-after-sudo", "unfinished", "needs-root", "server-gone", "adopted-from-pool",
		// What will stop the work one day: after a restart, or when nobody looks.
		"sleep-enabled", "no-restart-after-power-loss", "auto-logout-enabled", "screensaver-enabled", "auto-login-off", "auto-login-other-user",
		"auto-login-disabled-by-profile", "kcpassword-missing", "kcpassword-empty", "kcpassword-unterminated", "kcpassword-mode", "sealed-with-session", "foreign-auto-login",
		"password-not-disclosed", "sealed-in-get", "missing-sudo-password", "sudoers-missing", "sudoers-edited",
		"boot-job-missing", "boot-job-edited", "duplicate-pf-block", "legacy-pf-block", "begin-without-end", "persist-table-left", "pf-conf-edited",
		"anchor-file-missing", "anchor-file-edited", "stock-anchors-missing", "foreign-anchor", "unknown-anchor", "rolled-back", "vm-firewall-not-rendered",
		"kubelet-edited", "kubelet-unknown", "kubelet-outdated", "stale-binary-running", "plist-changed-under-job", "kubeconfig-differs", "kubelet-folders",
		"tart-edited", "tart-unknown", "tart-outdated", "tart-wrapper-edited", "artifact-missing", "artifact-changed", "artifact-unreadable", "reserve-too-large",
		// Of its Node.
		"empty-provider-id", "stuck-terminating-pods", "node-labels-differ", "node-not-judged", "node-not-proven", "identity-missing", "pods-unread", "pods-on-node",
		"machine-not-bound", "pod-namespace-not-listed", "object-differs", "object-missing",
	}
}

func notices() []string {
	return []string{"apply-in-progress", "orphan-vm", "waits-for-idle", "version-rolled-back", "nothing-to-roll-back", "object-surplus", "identity-left-over", "kubelet-settling",
		"restart-asked", "kubelet-not-wanted", "tart-not-wanted", "vm-firewall-not-wanted", "no-longer-wanted", "block-removed", "host-block-removed"}
}
