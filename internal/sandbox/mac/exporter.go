package mac

import (
	"net"
	"slices"
	"strings"
)

// exporterProgram is the node exporter, as the line program= names it.
const exporterProgram = "node_exporter"

// collectors are those of the vendor's program for these Macs.
var collectors = strings.Fields("boottime cpu diskstats filesystem loadavg meminfo netdev os powersupplyclass textfile thermal time uname xfrm")

// exporterFlags reads the flags of node_exporter. A flag that the program does not have is fatal.
func exporterFlags(args []string) (listen string, fault string) {
	listen = ":9100"
	for _, arg := range args {
		name, value, has := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		collector, isCollector := strings.CutPrefix(name, "collector.")
		collector = strings.TrimPrefix(collector, "no-")
		base, _, _ := strings.Cut(collector, ".")
		switch {
		case name == "web.listen-address" && has:
			listen = value
		case name == "web.telemetry-path", name == "web.max-requests", name == "web.disable-exporter-metrics", name == "log.level", name == "version", name == "help",
			name == "collector.disable-defaults":
		case name == "no-collector." && !has:
		case isCollector && slices.Contains(collectors, base):
		case strings.HasPrefix(name, "no-collector.") && slices.Contains(collectors, strings.TrimPrefix(name, "no-collector.")):
		default:
			return "", "node_exporter: error: unknown long flag '--" + name + "', try --help\n"
		}
	}
	return listen, ""
}

// exporterStarts reports where an exporter listens; ok is false if it ends, with what it prints.
func (v *visit) exporterStarts(p *proc) (at, text string, ok bool) {
	at, fault := exporterFlags(p.args())
	if fault != "" {
		return "", fault, false
	}
	host, _, err := net.SplitHostPort(at)
	if err != nil {
		return "", "level=error msg=\"listen tcp: address " + at + ": missing port in address\"\n", false
	}
	m, _, err := v.launchd()
	if err != nil {
		return "", err.Error(), false
	}
	if host != "" && host != "0.0.0.0" && host != "127.0.0.1" && host != publicAddress && (host != m.tailnetIP() || !m.tailscale().up()) {
		return "", "level=error msg=\"listen tcp " + at + ": bind: can't assign requested address\"\n", false
	}
	return at, "", true
}

// publicAddress is the machine's address as it knows it itself.
const publicAddress = "192.0.2.10"

// runExporter is node_exporter in a shell, or in a job whose script has started it.
func (p *proc) runExporter(head []byte) int {
	p.watched()
	if p.faults.starting != nil && !p.faults.starting(p) {
		return exitTerminated
	}
	_, fault := exporterFlags(p.args())
	switch {
	case fault != "":
		_, _ = p.stderr.Write([]byte(fault))
		return exitFailed
	case slices.Contains(p.args(), "--version"):
		p.printf("node_exporter, version %s (branch: HEAD, revision: 3fbd2e1b7a4e)\n  build user:       root@acme\n  go version:       go1.26.4\n  platform:         darwin/arm64\n", codeValue(head, "version"))
		return 0
	case slices.Contains(p.args(), "--help"):
		p.printf("usage: node_exporter [<flags>]\n")
		return 0
	case p.under == nil:
		return p.unmodelled("node_exporter that launchd has not started")
	}
	var at, text string
	var ok bool
	if err := p.visit(func(v *visit) error { at, text, ok = v.exporterStarts(p); return nil }); err != nil || !ok {
		_, _ = p.stderr.Write([]byte(text))
		return exitFailed
	}
	p.under.exporter = at
	p.under.stay()
	return exitTerminated
}
