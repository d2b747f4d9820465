package mac

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// kubeletFlags are the flags of a kubelet with their defaults.
func kubeletFlags() map[string]string {
	return map[string]string{
		"node-name": "", "provider-id": "", "node-ip": "", "node-ip-source": "auto", "scrape-allowed-cidr": "", "node-labels": "",
		"host-cpu": "8", "host-memory-mb": "16384", "max-pods": "2", "metrics-bind-address": ":8080", "health-probe-bind-address": ":8081",
		"tart-binary": "/usr/local/bin/tart", "disable-vm-gc": "false", "kubeconfig": "",
		"vnc-control-dir": "/var/lib/tart-vnc-control", "vnc-relay-host": "", "vnc-relay-port": "0",
		"runner-cache-root": "", "cache-volume-cap-gib": "20",
	}
}

// flagFault is an invalid command line: the kubelet exits at once with status 2.
type flagFault string

// Error is the kubelet's message.
func (f flagFault) Error() string { return string(f) }

// parseKubelet reads a kubelet's flags as Go's flag package does, after its environment.
func parseKubelet(args []string, env map[string]string) (map[string]string, error) {
	set := kubeletFlags()
	for name := range set {
		if value, ok := env["TART_KUBELET_"+strings.ReplaceAll(strings.ToUpper(name), "-", "_")]; ok {
			set[name] = value
		}
	}
	for len(args) > 0 {
		word := args[0]
		args = args[1:]
		name := strings.TrimPrefix(strings.TrimPrefix(word, "-"), "-")
		if word == "--" || name == word || word == "-" {
			break // like Go's flag package
		}
		name, value, given := strings.Cut(name, "=")
		if _, known := set[name]; !known {
			return nil, flagFault("flag provided but not defined: -" + name)
		}
		switch {
		case given:
		case name == "disable-vm-gc":
			value = "true"
		case len(args) == 0:
			return nil, flagFault("flag needs an argument: -" + name)
		default:
			value, args = args[0], args[1:]
		}
		set[name] = value
	}
	return set, checkKubelet(set)
}

// checkKubelet refuses values of the wrong type.
func checkKubelet(set map[string]string) error {
	for _, name := range []string{"host-cpu", "host-memory-mb", "max-pods", "vnc-relay-port", "cache-volume-cap-gib"} {
		if _, err := strconv.Atoi(set[name]); err != nil {
			return flagFault(fmt.Sprintf("invalid value %q for flag -%s: parse error", set[name], name))
		}
	}
	if _, err := strconv.ParseBool(set["disable-vm-gc"]); err != nil {
		return flagFault(fmt.Sprintf("invalid boolean value %q for -disable-vm-gc: parse error", set["disable-vm-gc"]))
	}
	if !slices.Contains([]string{"auto", "tailscale"}, set["node-ip-source"]) {
		return fmt.Errorf("unknown --node-ip-source %q", set["node-ip-source"])
	}
	return nil
}

// nodeLabels reads --node-labels.
func nodeLabels(text string) map[string]string {
	labels := map[string]string{}
	for pair := range strings.SplitSeq(text, ",") {
		if key, value, ok := strings.Cut(pair, "="); ok {
			labels[strings.TrimSpace(key)] = strings.TrimSpace(value)
		}
	}
	return labels
}
