package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/macfleet/macfleet/internal/sandbox/cloud"
	"github.com/macfleet/macfleet/internal/sandbox/kube"
)

// Populations of a new world.
const (
	Pool   = "pool"    // delivered servers that were never set up
	ByHand = "by-hand" // servers that people and another controller named and set up
)

// Populations returns the names of all populations.
func Populations() []string { return []string{Pool, ByHand} }

// handHosts is how many servers a world by hand has unless a number is given.
const handHosts = 20

// mostByHand is limited by the random parts of names, which must differ.
const mostByHand = 100

// The parts of a world by hand that a person or an older tool made on its Macs.
const (
	handAnchor  = "ci.egress"
	handSudoers = "/etc/sudoers.d/ci-nopasswd"
	handProgram = "/usr/local/bin/tart-kubelet"
	handConfig  = "/etc/tart-kubelet/kubeconfig"
	handCluster = "ci-macs"
)

// handName returns the name and type of the server at position i of n: two in five belong to a controller, and
// the others were named by people.
func handName(i, n int) (name, serverType string) {
	switch controlled := n * 2 / 5; {
	case i < controlled:
		return "ci-macs-fleet-6f9d4-" + letters(fmt.Sprintf("machine %d", i), "bcdfghjklmnpqrstvwxz2456789", 5), "M2-L"
	case i == n-1:
		return "qa-mac", "M4-S"
	case i >= n-3:
		return fmt.Sprintf("image-builder-%d", i-n+4), "M4-S"
	default:
		return fmt.Sprintf("ci-runner-%02d", i-controlled+1), "M2-L"
	}
}

// ownedByController reports whether a controller made a server of a world by hand.
func ownedByController(s cloud.Server) bool { return strings.HasPrefix(s.Name, "ci-macs-fleet-") }

// Furnish sets up the Macs of a new world by hand, as people and an older tool have left them: rules of the
// packet filter without marks, sudo without a password on some, and the jobs and objects of another controller.
func (w *World) Furnish(ctx context.Context) error {
	servers, err := w.cloud.Servers()
	if err != nil {
		return err
	}
	var group errgroup.Group
	group.SetLimit(8)
	for i, s := range servers {
		v := &victim{w, s, &record{}}
		group.Go(func() error {
			failed := []error{v.handFilter(ctx)}
			if i%2 == 0 {
				failed = append(failed, v.put(handSudoers, s.SSHUsername+" ALL=(ALL) NOPASSWD: ALL\n", 0o440))
			}
			if ownedByController(s) {
				failed = append(failed, v.oldKubelet())
			}
			if err := errors.Join(failed...); err != nil {
				return fmt.Errorf("set up %s: %w", s.Name, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for _, s := range servers {
		if ownedByController(s) {
			if err := w.oldMachine(s); err != nil {
				return err
			}
		}
	}
	return nil
}

// put writes a file of root.
func (v *victim) put(name, text string, mode fs.FileMode) error {
	machine, err := v.machine()
	if err != nil {
		return err
	}
	return machine.WriteFile(name, []byte(text), 0, 0, mode)
}

// handFilter writes the rules of an older tool: its lines in pf.conf have no marks, and each is present twice.
func (v *victim) handFilter(ctx context.Context) error {
	text, err := v.pfConf()
	if err != nil {
		return err
	}
	if err := errors.Join(
		v.put(pfAnchors+handAnchor, "block drop out quick from 192.168.64.0/22 to { 10.0.0.0/8, 172.16.0.0/12 }\n", 0o644),
		v.writePFConf(legacyBlock(ended(text)+anchorLines(handAnchor), handAnchor))); err != nil {
		return err
	}
	return v.load(ctx, handAnchor)
}

// oldKubelet starts the kubelet of the tool that set the Mac up, under that tool's label.
func (v *victim) oldKubelet() error {
	machine, err := v.machine()
	if err != nil {
		return err
	}
	arguments := ""
	for _, a := range []string{handProgram, "--node-name=" + v.server.Name, "--kubeconfig=" + handConfig, "--max-pods=2", "--provider-id=" + serverProviderID(v.server)} {
		arguments += "\t\t<string>" + a + "</string>\n"
	}
	if err := errors.Join(
		v.put(handProgram, "macfleet sandbox sample\ntart-kubelet-darwin-arm64\nprogram=tart-kubelet\nversion=0.1.0\n", 0o755),
		v.put(handConfig, handKubeconfig, 0o600),
		v.put(otherPlist, fmt.Sprintf(handPlist, otherLabel, arguments), 0o644)); err != nil {
		return err
	}
	return machine.LoadJob(otherPlist)
}

func serverProviderID(s cloud.Server) string { return "scw-applesilicon://" + s.Zone + "/" + s.ID }

// oldMachine creates the objects by which a controller manages a server. They are not paused.
func (w *World) oldMachine(s cloud.Server) error {
	ref := map[string]any{"apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1", "kind": "ScalewayAppleSiliconMachine", "name": s.Name}
	for resource, spec := range map[string]map[string]any{
		"clusters":                     {},
		"machines":                     {"clusterName": handCluster, "providerID": serverProviderID(s), "infrastructureRef": ref},
		"scalewayapplesiliconmachines": {"providerID": serverProviderID(s), "type": s.Type, "zone": s.Zone},
	} {
		o := kube.Object{Resource: resource, Namespace: podNamespace, Name: s.Name}
		if resource == "clusters" {
			o.Name = handCluster
		}
		if err := w.kube.Edit(o, func(map[string]any) map[string]any { return map[string]any{"spec": spec} }); err != nil {
			return err
		}
	}
	return nil
}

const handKubeconfig = `apiVersion: v1
kind: Config
current-context: c
clusters: [{name: c, cluster: {server: "https://api.example:6443", insecure-skip-tls-verify: true}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
users: [{name: u, user: {token: of-an-earlier-tool}}]
`

const handPlist = `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
	<key>Label</key>
	<string>%s</string>
	<key>ProgramArguments</key>
	<array>
%s	</array>
	<key>RunAtLoad</key>
	<true/>
	<key>KeepAlive</key>
	<true/>
	<key>AbandonProcessGroup</key>
	<true/>
</dict>
</plist>
`
