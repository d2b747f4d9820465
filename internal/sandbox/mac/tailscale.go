package mac

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/macfleet/macfleet/internal/sandbox/agent"
)

// tailscaleCall is a command line of tailscale.
type tailscaleCall struct {
	*proc
	head   []byte
	socket string
}

// tailscale is the client of the daemon.
func (p *proc) tailscale(head []byte) int {
	p.watched()
	if p.faults.starting != nil && !p.faults.starting(p) {
		return exitTerminated
	}
	c := tailscaleCall{p, head, tailscaleSocket}
	args := p.args()
	for len(args) > 0 && strings.HasPrefix(args[0], "--socket=") {
		c.socket, args = strings.TrimPrefix(args[0], "--socket="), args[1:]
	}
	if len(args) == 0 {
		return p.unmodelled("tailscale without a command")
	}
	run, known := map[string]func([]string) int{"up": c.up, "set": c.set, "get": c.get, "status": c.status, "ip": c.ip, "wait": c.wait,
		"version": c.version, "down": c.down, "logout": c.logout, "debug": c.debug}[args[0]]
	if !known {
		return p.unmodelled("tailscale " + args[0])
	}
	return run(args[1:])
}

// flagsOf splits flags from arguments. A flag without a value is "true".
func flagsOf(args []string) (flags map[string]string, rest []string) {
	flags = map[string]string{}
	for _, a := range args {
		name, value, has := strings.Cut(strings.TrimLeft(a, "-"), "=")
		switch {
		case !strings.HasPrefix(a, "-"):
			rest = append(rest, a)
		case has:
			flags[name] = value
		default:
			flags[name] = "true"
		}
	}
	return flags, rest
}

// allow refuses flags that are not modelled.
func (c tailscaleCall) allow(command string, flags map[string]string, known string) (int, bool) {
	for name := range flags {
		if !slices.Contains(strings.Fields(known), name) {
			return c.unmodelled("tailscale " + command + " --" + name), false
		}
	}
	return 0, true
}

// errNoDaemon is what every command prints without one.
var errNoDaemon = errors.New("failed to connect to local Tailscale service; is Tailscale running?")

// daemon lets use change the daemon of the socket.
func (c tailscaleCall) daemon(use func(v *visit, d *tailscaled) error) error {
	return c.visit(func(v *visit) error {
		return v.changeLaunchd(func(m *manager, _ time.Time) error {
			d := m.tailscale()
			if d == nil || d.Socket != c.socket {
				return errNoDaemon
			}
			if c.user.uid != 0 && !c.reads() {
				return errors.New("Access denied: " + c.args()[0] + " access denied")
			}
			v.contactControl(d, false)
			return use(v, d)
		})
	})
}

// reads reports whether a command only reads, so that every user may use it.
func (c tailscaleCall) reads() bool {
	for _, a := range c.args() {
		if !strings.HasPrefix(a, "-") {
			return slices.Contains([]string{"status", "ip", "wait", "version", "get", "debug"}, a)
		}
	}
	return false
}

// say prints an error as the client does.
func (c tailscaleCall) say(err error) int {
	_, _ = fmt.Fprintln(c.stderr, err)
	return exitFailed
}

// clientText is what the client prints as an error.
type clientText string

// Error returns the text.
func (c clientText) Error() string { return string(c) }

// upFlags are the flags of up that are settings.
const upFlags = "hostname login-server accept-dns accept-routes ssh advertise-tags"

// settings changes preferences by the flags of up or set.
func (p *prefs) settings(flags map[string]string) {
	yes := func(name string, to *bool) {
		if value, set := flags[name]; set {
			*to = value == "true"
		}
	}
	yes("accept-dns", &p.CorpDNS)
	yes("accept-routes", &p.RouteAll)
	yes("ssh", &p.RunSSH)
	if name, set := flags["hostname"]; set {
		p.Hostname = name
	}
	if tags, set := flags["advertise-tags"]; set {
		p.AdvertiseTags = nil
		if tags != "" {
			p.AdvertiseTags = strings.Split(tags, ",")
		}
	}
	if url, set := flags["login-server"]; set {
		p.ControlURL = url
	}
}

// others are the flags that repeat preferences which differ from the defaults, as up demands them.
func (p prefs) others() map[string]string {
	all := map[string]string{}
	if p.Hostname != "" {
		all["hostname"] = p.Hostname
	}
	if p.ControlURL != "" && p.ControlURL != defaultControl {
		all["login-server"] = p.ControlURL
	}
	if !p.CorpDNS {
		all["accept-dns"] = "false"
	}
	if p.RouteAll {
		all["accept-routes"] = "true"
	}
	if p.RunSSH {
		all["ssh"] = "true"
	}
	if len(p.AdvertiseTags) > 0 {
		all["advertise-tags"] = strings.Join(p.AdvertiseTags, ",")
	}
	return all
}

func (c tailscaleCall) up(args []string) int {
	flags, rest := flagsOf(args)
	if code, ok := c.allow("up", flags, upFlags+" auth-key authkey timeout reset force-reauth"); !ok || len(rest) > 0 {
		return max(code, exitFailed)
	}
	key := flags["auth-key"] + flags["authkey"]
	if name, isFile := strings.CutPrefix(key, "file:"); isFile {
		var data []byte
		if err := c.visit(func(v *visit) (err error) { data, err = v.read(c.proc, name); return err }); err != nil {
			return c.say(fmt.Errorf("open %s: %s", name, why(err)))
		}
		key = strings.TrimSpace(string(data))
	}
	limit := time.Duration(1<<62 - 1)
	if text, set := flags["timeout"]; set {
		d, err := time.ParseDuration(text)
		if err != nil {
			return c.say(fmt.Errorf("invalid value %q for flag -timeout: parse error", text))
		}
		if d > 0 {
			limit = d
		}
	}
	var wait bool
	var said error
	err := c.daemon(func(v *visit, d *tailscaled) error {
		wait, said = v.upOnce(d, flags, key)
		v.resolvers(d)
		var kept keptError
		if errors.As(said, &kept) {
			return nil
		}
		return said
	})
	if err == nil {
		err = said
	}
	if err != nil {
		return c.say(err)
	}
	for waited := time.Duration(0); wait; waited += 5 * time.Second {
		if waited >= limit || limit > time.Hour && waited > time.Minute {
			return c.say(errors.New("timeout waiting for Tailscale service to enter a Running state; check health with \"tailscale status\""))
		}
		if code := sleep(c.child([]string{"sleep", "5"})); code != 0 {
			return code
		}
		if err := c.daemon(func(_ *visit, d *tailscaled) error { wait = d.Backend != stateRunning; return nil }); err != nil {
			return c.say(err)
		}
	}
	return 0
}

// keptError is an error of up that leaves the daemon with the key in its memory.
type keptError struct{ error }

// upOnce does what up does before it waits.
func (v *visit) upOnce(d *tailscaled, flags map[string]string, key string) (wait bool, err error) {
	_, reset := flags["reset"]
	_, again := flags["force-reauth"]
	if d.Prefs.ControlURL != "" && !reset {
		var missing []string
		for name, value := range d.Prefs.others() {
			if _, given := flags[name]; !given {
				missing = append(missing, "--"+name+"="+value)
			}
		}
		simple := len(flags) == 0 && d.Node != "" && d.Backend != stateNoLogin // only brings the network up, whatever is set
		if slices.Sort(missing); len(missing) > 0 && !simple {
			return false, errors.New("Error: changing settings via 'tailscale up' requires mentioning all\nnon-default flags. To proceed, either re-run your command with --reset or\n" +
				"use the command below to explicitly mention the current value of\nall non-default settings:\n\n\ttailscale up " + strings.Join(missing, " "))
		}
	}
	if url, set := flags["login-server"]; set && d.Backend == stateRunning && url != d.Prefs.ControlURL && !again {
		return false, errors.New("can't change --login-server without --force-reauth")
	}
	d.Prefs.settings(flags)
	if d.Prefs.ControlURL == "" {
		d.Prefs.ControlURL = defaultControl
	}
	d.Prefs.WantRunning = true
	defer v.storeTailscale(d)
	server := v.control(d)
	if d.Node != "" && !d.Prefs.LoggedOut && !d.Seen.Expired && !again {
		v.contactControl(d, false)
		if d.Backend == stateRunning || key == "" {
			return d.Backend != stateRunning, nil
		}
	}
	if key == "" {
		return true, nil
	}
	d.Key, d.Prefs.LoggedOut = key, false
	if server == nil {
		return true, nil
	}
	if failed := v.join(d, server, key); failed != nil {
		var refused agent.RefusedNode
		if errors.As(failed, &refused) {
			d.Backend = stateNoLogin
			return false, keptError{errors.New("backend error: " + refused.Text)}
		}
		return true, nil
	}
	return d.Backend != stateRunning, nil
}

func (c tailscaleCall) set(args []string) int {
	flags, rest := flagsOf(args)
	if code, ok := c.allow("set", flags, "hostname accept-dns accept-routes ssh shields-up"); !ok || len(rest) > 0 {
		return max(code, exitFailed)
	}
	err := c.daemon(func(v *visit, d *tailscaled) error {
		d.Prefs.settings(flags)
		v.storeTailscale(d)
		v.contactControl(d, false)
		v.resolvers(d)
		return nil
	})
	if err != nil {
		return c.say(err)
	}
	return 0
}

func (c tailscaleCall) get(args []string) int {
	if !slices.Equal(args, []string{"--json"}) {
		return c.unmodelled("tailscale get " + strings.Join(args, " "))
	}
	return c.shows(func(_ *visit, d *tailscaled) (any, error) {
		return map[string]any{"accept-dns": d.Prefs.CorpDNS, "accept-routes": d.Prefs.RouteAll, "hostname": d.Prefs.Hostname, "ssh": d.Prefs.RunSSH, "shields-up": d.Prefs.ShieldsUp}, nil
	})
}

func (c tailscaleCall) debug(args []string) int {
	if !slices.Equal(args, []string{"prefs"}) {
		return c.unmodelled("tailscale debug " + strings.Join(args, " "))
	}
	return c.shows(func(_ *visit, d *tailscaled) (any, error) {
		p := d.Prefs
		if p.ControlURL == "" {
			p.ControlURL = defaultControl
		}
		return p, nil
	})
}

// shows prints a document.
func (c tailscaleCall) shows(document func(*visit, *tailscaled) (any, error)) int {
	var out any
	if err := c.daemon(func(v *visit, d *tailscaled) (err error) { out, err = document(v, d); return err }); err != nil {
		return c.say(err)
	}
	data, err := json.MarshalIndent(out, "", "  ")
	if err != nil {
		return c.say(err)
	}
	c.printf("%s\n", data)
	return 0
}

// peer is a device in the output of status.
type peer struct {
	ID           string
	PublicKey    string
	HostName     string
	DNSName      string
	OS           string
	TailscaleIPs []string
	Tags         []string `json:",omitempty"`
	Online       bool
	Expired      bool       `json:",omitempty"`
	KeyExpiry    *time.Time `json:",omitempty"`
	InNetworkMap bool
	InMagicSock  bool
	InEngine     bool
	PeerAPIURL   []string
}

func peerOf(n agent.Node) peer {
	p := peer{ID: n.ID, HostName: n.HostName, OS: "macOS", TailscaleIPs: n.Addresses, Tags: n.Tags, Online: n.Online, Expired: n.Expired, InNetworkMap: true}
	if n.Name != "" {
		p.DNSName = n.Name + "." + n.Suffix + "."
	}
	if !n.KeyExpiry.IsZero() {
		p.KeyExpiry = &n.KeyExpiry
	}
	return p
}

// health is what the daemon complains of.
func (d *tailscaled) health() []string {
	switch {
	case d.Backend == stateStopped, d.Backend == stateNoLogin && d.Node == "" && d.Key == "":
		return []string{"Tailscale is stopped."}
	case d.Backend == stateRunning && !d.Seen.Online:
		return []string{"Tailscale could not connect to the coordination server."}
	case d.Key != "":
		return []string{"You are logged out. The last login error was: register request: http 400: authkey already used"}
	}
	return []string{}
}

func (c tailscaleCall) status(args []string) int {
	flags, _ := flagsOf(args)
	if code, ok := c.allow("status", flags, "json self peers"); !ok {
		return code
	}
	if flags["json"] == "true" {
		return c.shows(func(v *visit, d *tailscaled) (any, error) {
			name, _ := v.hostName()
			self := peerOf(d.Seen)
			self.HostName, self.PublicKey = d.contact(name).HostName, d.Node
			out := map[string]any{"Version": d.Version, "TUN": true, "BackendState": d.Backend, "HaveNodeKey": d.Node != "", "AuthURL": "",
				"TailscaleIPs": d.Seen.Addresses, "Self": self, "Health": d.health(), "MagicDNSSuffix": d.Seen.Suffix, "CertDomains": nil,
				"CurrentTailnet": nil, "Peer": nil, "User": nil, "ClientVersion": nil}
			if d.Seen.ID != "" {
				out["CurrentTailnet"] = map[string]any{"Name": "acme.dev", "MagicDNSSuffix": d.Seen.Suffix, "MagicDNSEnabled": d.Seen.MagicDNS}
			}
			if d.Node == "" {
				delete(out, "HaveNodeKey")
			}
			if server := v.control(d); server != nil && d.up() && flags["peers"] != "false" && flags["self"] != "true" {
				if all, err := server.Peers(d.Node); err == nil {
					peers := map[string]peer{}
					for _, n := range all {
						peers["nodekey:"+n.ID] = peerOf(n)
					}
					out["Peer"] = peers
				}
			}
			return out, nil
		})
	}
	var text string
	err := c.daemon(func(_ *visit, d *tailscaled) error {
		switch {
		case d.Backend == stateStopped:
			return clientText("Tailscale is stopped.")
		case d.Backend == stateNoLogin:
			return clientText("Logged out.")
		}
		text = fmt.Sprintf("%-15s %-20s tagged-devices macOS   -\n", first(d.Seen.Addresses), d.Seen.Name)
		return nil
	})
	if err != nil {
		return c.say(err)
	}
	c.printf("%s", text)
	return 0
}

func first(all []string) string {
	if len(all) == 0 {
		return ""
	}
	return all[0]
}

func (c tailscaleCall) ip(args []string) int {
	flags, rest := flagsOf(args)
	if code, ok := c.allow("ip", flags, "4 6 1 assert"); !ok || len(rest) > 0 {
		return max(code, exitFailed)
	}
	var out string
	err := c.daemon(func(_ *visit, d *tailscaled) error {
		all := d.Seen.Addresses
		if len(all) == 0 {
			return errors.New("no current Tailscale IPs; state: " + d.Backend)
		}
		if want := flags["assert"]; want != "" {
			if !slices.Contains(all, want) {
				return fmt.Errorf("assertion failed: IP %q not found among %v", want, all)
			}
			return nil
		}
		for i, a := range all {
			if flags["4"] == "true" && i > 0 || flags["6"] == "true" && i == 0 || flags["1"] == "true" && i > 0 {
				continue
			}
			out += a + "\n"
		}
		return nil
	})
	if err != nil {
		return c.say(err)
	}
	c.printf("%s", out)
	return 0
}

func (c tailscaleCall) wait(args []string) int {
	flags, rest := flagsOf(args)
	if code, ok := c.allow("wait", flags, "timeout"); !ok || len(rest) > 0 {
		return max(code, exitFailed)
	}
	limit, err := time.ParseDuration(flags["timeout"])
	if err != nil {
		limit = time.Minute
	}
	for waited := time.Duration(0); ; waited += time.Second {
		var up bool
		if err := c.daemon(func(_ *visit, d *tailscaled) error { up = d.up(); return nil }); err != nil && waited >= limit {
			return c.say(err)
		}
		if up {
			return 0
		}
		if waited >= limit {
			return c.say(errors.New("timeout waiting for Tailscale to be running"))
		}
		if code := sleep(c.child([]string{"sleep", "1"})); code != 0 {
			return code
		}
	}
}

func (c tailscaleCall) version(args []string) int {
	flags, _ := flagsOf(args)
	if code, ok := c.allow("version", flags, "json daemon"); !ok {
		return code
	}
	if flags["json"] == "true" {
		short := codeValue(c.head, "version")
		out := map[string]any{"majorMinorPatch": short, "short": short, "long": codeValue(c.head, "long"), "cap": 130}
		if flags["daemon"] == "true" {
			if err := c.daemon(func(_ *visit, d *tailscaled) error { out["daemonLong"] = d.Version; return nil }); err != nil {
				return c.say(err)
			}
		}
		data, _ := json.MarshalIndent(out, "", "  ") // texts and a number
		c.printf("%s\n", data)
		return 0
	}
	c.printf("%s\n", versionText(c.head))
	return 0
}

func (c tailscaleCall) down(args []string) int {
	flags, _ := flagsOf(args)
	if code, ok := c.allow("down", flags, "accept-risk reason"); !ok {
		return code
	}
	return c.changes(func(v *visit, d *tailscaled) {
		if d.Prefs.WantRunning = false; d.Node != "" {
			d.Backend = stateStopped
		}
	})
}

func (c tailscaleCall) logout(args []string) int {
	flags, _ := flagsOf(args)
	if code, ok := c.allow("logout", flags, "reason"); !ok {
		return code
	}
	var failed error
	if code := c.changes(func(v *visit, d *tailscaled) {
		server := v.control(d)
		if server != nil && d.Node != "" {
			failed = server.Logout(d.Node)
		} else if d.Node != "" {
			failed = errors.New("timeout waiting for logout")
		}
		if failed != nil {
			return
		}
		d.Node, d.Key, d.Seen, d.Backend = "", "", agent.Node{}, stateNoLogin
		d.Prefs = prefs{CorpDNS: true, LoggedOut: true} // a new profile
	}); code != 0 {
		return code
	}
	if failed != nil {
		return c.say(errors.New("500 Internal Server Error: " + failed.Error()))
	}
	return 0
}

// changes changes the daemon's state.
func (c tailscaleCall) changes(do func(*visit, *tailscaled)) int {
	err := c.daemon(func(v *visit, d *tailscaled) error {
		do(v, d)
		v.storeTailscale(d)
		v.resolvers(d)
		return nil
	})
	if err != nil {
		return c.say(err)
	}
	return 0
}

// resolverFolder has the name servers of domains.
const resolverFolder = "/etc/resolver"

// resolvers writes what the daemon writes with accept-dns, and removes it without.
func (v *visit) resolvers(d *tailscaled) {
	p := v.rootProc()
	p.umask = 0o022
	if d.up() && d.Prefs.CorpDNS && d.Seen.MagicDNS {
		_ = v.mkdirAll(p, resolverFolder, 0o755)
		_ = v.writeAs(p, resolverFolder+"/search.tailscale", []byte("# Added by tailscaled\nsearch "+d.Seen.Suffix+"\n"), os.O_TRUNC, 0o644)
		return
	}
	v.forgetResolvers()
}

// forgetResolvers removes what a daemon wrote, as it does when it stops by itself.
func (v *visit) forgetResolvers() {
	root := v.session.users()[0]
	if n, err := v.find(root, "/", resolverFolder+"/search.tailscale", true); err == nil {
		_ = v.removeAll(root, n)
	}
}
