package mac

import (
	"strings"
	"testing"
)

// newGuestMac returns a Mac with Tart and a session on which virtual machines run.
func newGuestMac(t *testing.T, switches map[string]string) *Machine {
	t.Helper()
	m := newMachine(t)
	for name, value := range switches {
		ok(t, m.SetSwitch(name, value))
	}
	withTart(&kubeletHost{T: t, Machine: m})
	return m
}

// guests starts or ends virtual machines, and returns the state of pf: enabled or not, how many
// references and vmnet points, and whether the machines have a network.
func guests(t *testing.T, m *Machine, do string, names ...string) string {
	t.Helper()
	for _, name := range names {
		change := m.StartVM
		if do == "end" {
			change = m.RemoveVM
		}
		ok(t, change(name))
	}
	online, err := m.GuestsOnline()
	ok(t, err)
	text := must(t, m, "root", `pfctl -s info | head -n 1 | cut -d ' ' -f 2; pfctl -s References | grep -c -E 'pfd|pfctl|scw-agent' || true; { pfctl -sr; pfctl -sn; } | grep -c internet-sharing || true; ifconfig -l | wc -w | tr -d ' '`)
	words := strings.Fields(text)
	if online {
		words = append(words, "online")
	}
	return strings.Join(words, " ")
}

// TestVMNet: the network of virtual machines starts with the first and ends with the last.
func TestVMNet(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		switches            map[string]string
		before, first, last string // what is done with pf before and while one runs, and its state then and afterwards
		during              string
		want, after         string
	}{
		"alone":                          {want: "Enabled 2 4 3 online", after: "Enabled 1 0 2"},
		"pf was off":                     {before: "pfctl -d", want: "Enabled 1 4 3 online", after: "Disabled 0 0 2"},
		"pf was on, no reference":        {before: "pfctl -d; pfctl -e", want: "Enabled 1 4 3 online", after: "Disabled 0 0 2"},
		"no reference, and it fails":     {switches: map[string]string{"vmnet-without-references": "fails"}, before: "pfctl -d; pfctl -e", want: "Enabled 0 0 2", after: "Enabled 0 0 2"},
		"another reference released":     {during: "pfctl -X $(pfctl -s References | grep scw | tr -s ' ' | cut -d ' ' -f 3)", want: "Enabled 1 4 3 online", after: "Disabled 0 0 2"},
		"pf is disabled":                 {during: "pfctl -d", want: "Disabled 0 4 3", after: "Disabled 0 0 2"},
		"a full load":                    {during: "pfctl -f /etc/pf.conf", want: "Enabled 2 0 3", after: "Enabled 1 0 2"},
		"a full load with its points":    {during: fullLoad, want: "Enabled 2 4 3 online", after: "Enabled 1 4 2"},
		"a full load that breaks NAT":    {switches: map[string]string{"full-load-nat": "broken"}, during: fullLoad, want: "Enabled 2 4 3", after: "Enabled 1 4 2"},
		"a load of the filter rules":     {during: "pfctl -sr | pfctl -R -f -", want: "Enabled 2 4 3 online", after: "Enabled 1 2 2"},
		"it replaces everything":         {switches: map[string]string{"vmnet-adds": "everything"}, want: "Enabled 2 4 3 online", after: "Enabled 1 0 2"},
		"its anchor's rules are flushed": {during: "pfctl -a com.apple.internet-sharing/shared_v4 -F nat", want: "Enabled 2 4 3", after: "Enabled 1 0 2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newGuestMac(t, c.switches)
			must(t, m, "root", c.before+"\n:")
			guests(t, m, "start", "one", "two")
			must(t, m, "root", c.during+"\n:")
			equal(t, guests(t, m, "end", "one"), c.want, "with a virtual machine")
			equal(t, guests(t, m, "end", "two"), c.after, "after the last")
		})
	}
}

const fullLoad = `{ pfctl -sr | grep '^scrub'; pfctl -sn; pfctl -sr | grep -v '^scrub'; } | pfctl -f -`

// TestGuestsPackets: the counters of translated packets show whether machines have a network.
func TestGuestsPackets(t *testing.T) {
	t.Parallel()
	m := newGuestMac(t, nil)
	guests(t, m, "start", "one")
	packets := func() string {
		return must(t, m, "root", "sleep 1; pfctl -a com.apple.internet-sharing/shared_v4 -vsn | grep Packets")
	}
	if a, b := packets(), packets(); a == b {
		t.Errorf("they do not change: %s", a)
	}
	must(t, m, "root", "pfctl -f /etc/pf.conf")
	if a, b := packets(), packets(); a != b {
		t.Errorf("they change: %s %s", a, b)
	}
}

// TestRunIsEmptyAfterABoot: files in /var/run do not survive a boot.
func TestRunIsEmptyAfterABoot(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	must(t, m, "root", "mkdir /var/run/a; echo x >/var/run/a/b; echo x >/var/run/c")
	ok(t, m.Reboot(t.Context()))
	equal(t, must(t, m, "root", "ls /var/run"), "", "left")
}
