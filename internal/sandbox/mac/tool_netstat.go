package mac

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// socket is one that accepts connections.
type socket struct {
	kind string // tcp4, tcp6 or tcp46
	host string // * = every address
	port string
}

// metricsAddress is where a kubelet serves its metrics: the default moves to the tailnet with the Node's address.
func metricsAddress(set map[string]string, address string) string {
	at := set["metrics-bind-address"]
	if at == ":8080" && set["node-ip-source"] == "tailscale" {
		return net.JoinHostPort(address, "8080")
	}
	return at
}

// sockets are the machine's listeners, the system's own first.
func (v *visit) sockets() ([]socket, error) {
	m, _, err := v.launchd()
	if err != nil {
		return nil, err
	}
	all := []socket{{"tcp4", "*", "22"}, {"tcp6", "*", "22"}, {"tcp4", "*", "5900"}, {"tcp6", "*", "5900"}}
	add := func(at string) {
		host, port, err := net.SplitHostPort(at)
		switch {
		case err != nil || port == "0" || port == "":
		case host == "" || host == "::":
			all = append(all, socket{"tcp46", "*", port})
		case host == "0.0.0.0":
			all = append(all, socket{"tcp4", "*", port})
		default:
			all = append(all, socket{"tcp4", host, port})
		}
	}
	for _, target := range slices.Sorted(maps.Keys(m.Jobs)) {
		j := m.Jobs[target]
		if j.PID == 0 || j.leaving() || m.Halt != nil {
			continue
		}
		if k := j.Kubelet; k != nil {
			add(k.Metrics)
			add(":8081")
			if v.switched(vmMetricsSwitch) == "yes" {
				if guests, err := v.guests(); err == nil && len(guests) > 0 {
					address := k.Address
					if address == "" {
						address = publicAddress
					}
					add(net.JoinHostPort(address, "9091"))
				}
			}
		}
		if j.Exporter != "" {
			add(j.Exporter)
		}
		if d := j.Tailscale; d != nil && d.up() {
			for i, ip := range d.Seen.Addresses {
				all = append(all, socket{map[bool]string{true: "tcp4", false: "tcp6"}[i == 0], ip, strconv.Itoa(d.PeerAPI)})
			}
		}
	}
	return all, nil
}

// vmMetricsSwitch lets virtual machines serve metrics, for which the kubelet listens.
const vmMetricsSwitch = "vm-metrics"

// metricsSwitches are the ways in which listeners differ.
func metricsSwitches() []Switch {
	return []Switch{{vmMetricsSwitch, "whether virtual machines serve metrics, so that the kubelet listens on port 9091 for them", []string{"no", "yes"}}}
}

// netstat lists sockets; only -an is modelled, with or without -p tcp.
func netstat(p *proc) int {
	switch strings.Join(p.args(), " ") {
	case "-an", "-an -p tcp", "-anp tcp", "-a -n -p tcp":
	default:
		return p.unmodelled(strings.Join(p.args(), " "))
	}
	var all []socket
	if err := p.visit(func(v *visit) (err error) { all, err = v.sockets(); return err }); err != nil {
		return p.fail(exitFailed, "%s", why(err))
	}
	p.printf("Active Internet connections (including servers)\nProto Recv-Q Send-Q  Local Address          Foreign Address        (state)    \n")
	p.printf("%-5s %6d %6d  %-22s %-22s %-11s\n", "tcp4", 0, 0, publicAddress+".22", "198.51.100.7.51515", "ESTABLISHED")
	for _, s := range all {
		local := s.host + "." + s.port
		if len(local) > 22 { // as netstat does without -W
			local = local[:22]
		}
		p.printf("%-5s %6d %6d  %-22s %-22s %-11s\n", s.kind, 0, 0, local, "*.*", "LISTEN")
	}
	return 0
}

// Metrics returns what a process of the machine serves at an address to a client outside; an error if none listens there. Without a
// host it is the server's public address.
func (m *Machine) Metrics(at string) (text string, err error) {
	host, port, err := net.SplitHostPort(at)
	if err != nil {
		return "", err
	}
	err = m.asRoot(func(v *visit, _ *proc) error {
		l, _, err := v.launchd()
		if err != nil {
			return err
		}
		if host != "" && (!l.tailscale().up() || host != l.tailnetIP()) {
			return &net.OpError{Op: "dial", Net: "tcp", Err: syscall.EHOSTUNREACH}
		}
		name, _ := v.hostName()
		for _, j := range l.Jobs {
			if j.PID == 0 {
				continue
			}
			for listens, metric := range map[string]string{j.Exporter: "node_uname_info{nodename=%q,sysname=\"Darwin\"} 1\n", j.kubeletMetrics(): "tart_kubelet_build_info{node=%q} 1\n"} {
				if h, p, err := net.SplitHostPort(listens); err == nil && p == port && (h == "" || h == "0.0.0.0" || h == "::" || h == host) {
					text = fmt.Sprintf(metric, name)
				}
			}
		}
		if text == "" {
			return &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
		}
		return nil
	})
	return text, err
}

// kubeletMetrics is where the job's kubelet serves its metrics.
func (j *job) kubeletMetrics() string {
	if j.Kubelet == nil {
		return ""
	}
	return j.Kubelet.Metrics
}
