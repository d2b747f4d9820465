package mac

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"
)

// networkInterface is an interface as ifconfig shows it.
type networkInterface struct {
	name string
	text string
}

// interfaces returns those of the machine. The virtual machines' bridge exists once one has run.
func (v *visit) interfaces() []networkInterface {
	all := []networkInterface{
		{"lo0", `lo0: flags=8049<UP,LOOPBACK,RUNNING,MULTICAST> mtu 16384
	options=1203<RXCSUM,TXCSUM,TXSTATUS,SW_TIMESTAMP>
	inet 127.0.0.1 netmask 0xff000000
	inet6 ::1 prefixlen 128
	inet6 fe80::1%lo0 prefixlen 64 scopeid 0x1
	nd6 options=201<PERFORMNUD,DAD>
`},
		{"en0", `en0: flags=8863<UP,BROADCAST,SMART,RUNNING,SIMPLEX,MULTICAST> mtu 1500
	options=404<VLAN_MTU,CHANNEL_IO>
	ether 5c:e9:1e:00:53:01
	inet 192.0.2.10 netmask 0xffffff00 broadcast 192.0.2.255
	media: autoselect (1000baseT <full-duplex>)
	status: active
`},
	}
	if m, _, err := v.launchd(); err == nil && m.tailscale() != nil {
		text := "utun4: flags=8051<UP,POINTOPOINT,RUNNING,MULTICAST> mtu 1280\n\toptions=6463<RXCSUM,TXCSUM,TSO4,TSO6,CHANNEL_IO,PARTIAL_CSUM,ZEROINVERT_CSUM>\n"
		if ip := m.tailnetIP(); ip != "" && m.tailscale().up() {
			text += "\tinet " + ip + " --> " + ip + " netmask 0xffffffff\n"
		}
		all = append(all, networkInterface{"utun4", text + "\tnd6 options=201<PERFORMNUD,DAD>\n"})
	}
	if live, err := v.filter(); err != nil || live.VMNet == nil && v.switched("vm-network") != "present" {
		return all
	}
	address := netip.MustParsePrefix(v.switched("vm-subnet"))
	mask := ^uint32(0) << (32 - address.Bits())
	low := address.Masked().Addr().As4()
	var last [4]byte
	binary.BigEndian.PutUint32(last[:], binary.BigEndian.Uint32(low[:])|^mask)
	return append(all, networkInterface{"bridge100", "bridge100: flags=8a63<UP,BROADCAST,SMART,RUNNING,ALLMULTI,SIMPLEX,MULTICAST> mtu 1500\n" +
		"\toptions=3<RXCSUM,TXCSUM>\n\tether 5e:e9:1e:00:53:64\n" +
		"\tinet " + address.Addr().String() + " netmask " + fmt.Sprintf("0x%08x", mask) + " broadcast " + netip.AddrFrom4(last).String() + "\n" +
		"\tinet6 fe80::5ce9:1eff:fe00:5364%bridge100 prefixlen 64 scopeid 0x16\n" +
		"\tConfiguration:\n\t\tid 0:0:0:0:0:0 priority 0 hellotime 0 fwddelay 0\n\t\tmaxage 0 holdcnt 0 proto stp maxaddr 100 timeout 1200\n" +
		"\t\troot id 0:0:0:0:0:0 priority 0 ifcost 0 port 0\n\t\tipfilter disabled flags 0x0\n" +
		"\tmember: vmenet0 flags=3<LEARNING,DISCOVER>\n\t        ifmaxaddr 0 port 21 priority 0 path cost 0\n" +
		"\tnd6 options=201<PERFORMNUD,DAD>\n\tmedia: autoselect\n\tstatus: active\n"})
}

// bridgeNetwork is the network of the virtual machines.
func (v *visit) bridgeNetwork() netip.Prefix {
	return netip.MustParsePrefix(v.switched("vm-subnet")).Masked()
}

func ifconfig(p *proc) int {
	var all []networkInterface
	err := p.visit(func(v *visit) error {
		all = v.interfaces()
		return nil
	})
	if err != nil {
		return p.fail(exitFailed, "%s", why(err))
	}
	args := p.args()
	switch {
	case len(args) == 1 && args[0] == "-l":
		var names []string
		for _, one := range all {
			names = append(names, one.name)
		}
		p.printf("%s\n", strings.Join(names, " "))
		return 0
	case len(args) == 0 || len(args) == 1 && args[0] == "-a":
		for _, one := range all {
			p.printf("%s", one.text)
		}
		return 0
	case len(args) > 1 || strings.HasPrefix(args[0], "-"):
		return p.unmodelled(strings.Join(args, " "))
	}
	for _, one := range all {
		if one.name == args[0] {
			p.printf("%s", one.text)
			return 0
		}
	}
	return p.fail(exitFailed, "interface %s does not exist", args[0])
}

// addressOf is a running virtual machine's address.
func (v *visit) addressOf(one guest) netip.Addr {
	at := v.bridgeNetwork().Addr().As4()
	at[3] = byte(2 + one.PID%250)
	return netip.AddrFrom4(at)
}
