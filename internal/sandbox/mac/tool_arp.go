package mac

import (
	"fmt"
	"net/netip"
	"strings"
)

// arp lists who was heard on the network: the router, the running virtual machines, and one that does not answer any more.
func arp(p *proc) int {
	if words := strings.Join(p.args(), " "); words != "-an" && words != "-a -n" {
		return p.unmodelled(words)
	}
	text := "? (192.0.2.1) at 0:50:56:9:a:b on en0 ifscope [ethernet]\n"
	err := p.visit(func(v *visit) error {
		all, err := v.guests()
		for _, one := range all {
			if one.runs() {
				text += fmt.Sprintf("? (%s) at 5e:e9:1e:0:53:%x on bridge100 ifscope [bridge]\n", v.addressOf(one), 16+one.PID%200)
			}
		}
		if len(all) > 0 {
			at := v.bridgeNetwork().Addr().As4()
			at[3] = 254
			text += fmt.Sprintf("? (%s) at (incomplete) on bridge100 ifscope [bridge]\n", netip.AddrFrom4(at))
		}
		return err
	})
	if err != nil {
		return p.fail(exitFailed, "%s", why(err))
	}
	p.printf("%s", text)
	return 0
}
