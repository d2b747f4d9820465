package mac

import (
	"cmp"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// namelessPrefix is the prefix of pfctl's names for anchors without one.
const namelessPrefix = "_"

func decimal(n int) string { return strconv.Itoa(n) }

// pfChoice is one combination of a rule's lists.
type pfChoice struct {
	iface, protocol  string
	source, target   pfHost
	fromPort, toPort string
}

// expand expands the lists: one rule for each valid combination.
func (c *pfClause) expand() ([]pfRule, error) {
	hosts := func(peer pfPeer) []pfHost {
		if len(peer.hosts) == 0 {
			return []pfHost{{text: "any"}}
		}
		return peer.hosts
	}
	none := func(all []string) []string {
		if len(all) == 0 {
			return []string{""}
		}
		return all
	}
	if (len(c.from.ports) > 0 || len(c.to.ports) > 0) && !c.hasPorts() {
		return nil, pfLine{c.line, "port only applies to tcp/udp"}
	}
	var rules []pfRule
	for _, iface := range none(c.ifaces) {
		for _, protocol := range none(c.protocols) {
			for _, source := range hosts(c.from) {
				for _, fromPort := range none(c.from.ports) {
					for _, target := range hosts(c.to) {
						for _, toPort := range none(c.to.ports) {
							one, ok := c.rule(pfChoice{iface, protocol, source, target, fromPort, toPort})
							if ok {
								rules = append(rules, one)
							}
						}
					}
				}
			}
		}
	}
	if len(rules) == 0 {
		return nil, pfLine{c.line, "rule expands to no valid combination"}
	}
	return rules, nil
}

// hasPorts reports whether all protocols of the rule have ports.
func (c *pfClause) hasPorts() bool {
	return len(c.protocols) > 0 && !slices.ContainsFunc(c.protocols, func(name string) bool { return name != "tcp" && name != "udp" })
}

// rule returns one combination in the kernel's form; ok is false for a mix of address families.
func (c *pfClause) rule(choice pfChoice) (one pfRule, ok bool) {
	family := c.family
	for _, also := range []string{choice.source.family, choice.target.family, c.poolOf} {
		if also != "" && family != "" && also != family {
			return pfRule{}, false
		}
		family = cmp.Or(family, also)
	}
	words := []string{c.action}
	add := func(text string) {
		if text != "" {
			words = append(words, text)
		}
	}
	if c.anchor && !strings.HasPrefix(c.point, namelessPrefix) {
		add(`"` + c.point + `"`)
	}
	add(c.direction)
	add(c.log)
	if c.quick {
		add("quick")
	}
	if choice.iface != "" {
		add("on " + choice.iface)
	}
	add(family)
	if choice.protocol != "" {
		add("proto " + choice.protocol)
	}
	words = append(words, choice.peers()...)
	words = append(words, c.shownOptions(choice)...)
	if c.pool != "" {
		add("-> " + c.pool)
	}
	one = pfRule{Kind: c.kind, Text: strings.Join(words, " "), Point: c.point}
	for _, host := range []pfHost{choice.source, choice.target} {
		if host.table != "" {
			one.Tables = append(one.Tables, host.table)
		}
	}
	return one, true
}

// peers formats both ends, or all if there are none.
func (choice pfChoice) peers() []string {
	if choice.source.text == "any" && choice.target.text == "any" && choice.fromPort == "" && choice.toPort == "" {
		return []string{"all"}
	}
	words := []string{"from", choice.source.text, choice.fromPort, "to", choice.target.text, choice.toPort}
	return slices.DeleteFunc(words, func(word string) bool { return word == "" })
}

// shownOptions formats a rule's options with the defaults: a pass rule keeps state from the first
// packet on, scrub reassembles.
func (c *pfClause) shownOptions(choice pfChoice) []string {
	own := map[string]string{}
	for name, text := range c.options {
		own[name] = text
	}
	if c.passes {
		own["state"] = cmp.Or(own["state"], "keep state")
		if (choice.protocol == "" || choice.protocol == "tcp") && own["state"] != "no state" {
			own["flags"] = cmp.Or(own["flags"], "flags S/SA")
		}
	}
	if c.kind == scrubRule && !strings.HasPrefix(c.action, "no ") {
		own["fragment"] = cmp.Or(own["fragment"], "fragment reassemble")
	}
	var shown []string
	for _, name := range optionOrder() {
		if own[name] != "" {
			shown = append(shown, own[name])
		}
	}
	return shown
}

// pfAddress formats an address, or a network with its size.
func pfAddress(prefix netip.Prefix) string {
	if prefix.IsSingleIP() {
		return prefix.Addr().String()
	}
	return prefix.String()
}

// services are the ports that pfctl shows by name. /etc/services has many more; a port that is not in
// this list is shown as its number, which may differ from a real Mac.
func services() [][2]string {
	return [][2]string{{"22", "ssh"}, {"25", "smtp"}, {"53", "domain"}, {"67", "bootps"}, {"68", "bootpc"}, {"80", "http"},
		{"123", "ntp"}, {"443", "https"}, {"445", "microsoft-ds"}, {"5900", "vnc-server"}}
}

func pfService(number string) string {
	for _, s := range services() {
		if s[0] == number {
			return s[1]
		}
	}
	return number
}

func pfServiceNumber(name string) string {
	for _, s := range services() {
		if s[1] == name {
			return s[0]
		}
	}
	return ""
}
