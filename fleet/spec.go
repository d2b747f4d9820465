package fleet

// Spec is what the steps want of a host: one field a step, nil where the
// configuration has no such block. The block's name is the step's id.
//
// Pointers inside mark what was written, so that a fleet overrides its defaults
// field by field; a list replaces. Every leaf says in its "per" tag whether all
// hosts of a group share its value ("fleet") or each has its own ("host"); a
// test walks the struct and shows that each reaches its step's rendering. A leaf
// with "run" is for the run itself, such as a credential: hosts are not compared
// with it. The tag "default" is the value of a leaf that the configuration does not set.
type Spec struct {
	Sudo         *Sudo         `hcl:"sudo,block"`
	Hostname     *Hostname     `hcl:"hostname,block"`
	Power        *Power        `hcl:"power,block"`
	System       *System       `hcl:"system,block"`
	LocalNetwork *LocalNetwork `hcl:"local_network,block"`
	Disk         *Disk         `hcl:"disk,block"`
	AutoLogin    *AutoLogin    `hcl:"auto_login,block"`
	VMFirewall   *VMFirewall   `hcl:"vm_firewall,block"`
	Tailscale    *Tailscale    `hcl:"tailscale,block"`
	NodeExporter *NodeExporter `hcl:"node_exporter,block"`
	BuildTools   *BuildTools   `hcl:"build_tools,block"`
	Tart         *Tart         `hcl:"tart,block"`
	TartKubelet  *TartKubelet  `hcl:"tart_kubelet,block"`
	GithubRunner *GithubRunner `hcl:"github_runner,block"`
}

// WithBuiltIn returns s with the blocks that every fleet has without writing them.
func (s Spec) WithBuiltIn() Spec {
	if s.Sudo == nil {
		s.Sudo = &Sudo{}
	}
	return s
}

// GrantsRoot reports whether macfleet sets up passwordless sudo on a host that does not have it yet.
func (s Spec) GrantsRoot() bool { return s.Sudo != nil }

// Sudo gives the login user passwordless sudo: nearly everything that macfleet does needs it. Every fleet has
// the block unless it disables it.
type Sudo struct{}

// Hostname gives a host the name of its server. It has no attributes: server, Node, device, runner and host
// have one name.
type Hostname struct{}

// Power keeps a host awake and its session alive: a sleeping or logged-out Mac
// cannot start a virtual machine.
type Power struct {
	Sleep                 *int  `hcl:"sleep,optional" per:"fleet" default:"0"`                       // idle minutes before the system sleeps; 0 = never
	DisplaySleep          *int  `hcl:"display_sleep,optional" per:"fleet" default:"0"`               // minutes; 0 = never
	DiskSleep             *int  `hcl:"disk_sleep,optional" per:"fleet" default:"0"`                  // minutes; 0 = never
	Screensaver           *int  `hcl:"screensaver,optional" per:"fleet" default:"0"`                 // idle seconds before it starts; 0 = never
	AutoLogout            *int  `hcl:"auto_logout,optional" per:"fleet" default:"0"`                 // idle seconds before the session ends; 0 = never
	RestartAfterPowerLoss *bool `hcl:"restart_after_power_loss,optional" per:"fleet" default:"true"` // restart by itself after a power failure
}

// System turns off what macOS does by itself and a Mac of a fleet should not do.
type System struct {
	AutomaticUpdates *bool `hcl:"automatic_updates,optional" per:"fleet" default:"false"`                  // of macOS and of apps
	Spotlight        *bool `hcl:"spotlight,optional" per:"fleet" default:"false"`                          // indexes all volumes
	RebootAfter      *int  `hcl:"reboot_after,optional" per:"run" default:"45" least:"0" max:"49"`         // days that the Mac may be up; 0 = any
	AddressLease     *int  `hcl:"address_lease,optional" per:"fleet" default:"600" least:"60" max:"86400"` // seconds that a virtual machine keeps its address; macOS's default is a day
}

// LocalNetwork lets programs of the session reach virtual machines. From 15.0 on macOS keeps them away.
type LocalNetwork struct {
	Subnet *string `hcl:"subnet,optional" per:"fleet" default:"192.168.64.0/24" is:"network"` // of the virtual machines, as vmnet gives it
}

// Disk keeps room on a host's disk for the next image.
type Disk struct {
	WarnBelow   *int     `hcl:"warn_below,optional" per:"run" default:"50" least:"0"`  // GB that should be free
	CacheBudget *int     `hcl:"cache_budget,optional" per:"run" default:"0" least:"0"` // GB that Tart's cached images may use; 0 = any
	Delete      []string `hcl:"delete,optional" per:"run" is:"vm_pattern"`             // names of stopped virtual machines, such as bake-*
	OlderThan   *int     `hcl:"older_than,optional" per:"run" default:"24" least:"1"`  // hours since one was used
}

// AutoLogin keeps the login user logged in at the screen: a virtual machine needs this session. It has no
// attributes: the user is the one of the ssh block, and the password is looked up when it is needed.
type AutoLogin struct{}

// Host is the specification of one host, as its steps use it.
type Host struct {
	Name        string `per:"host"` // its name
	Fleet       string `per:"fleet"`
	Group       string `per:"fleet"`
	User        string `per:"fleet"` // login user
	LabelPrefix string `per:"fleet"` // of macfleet's labels on its Node; empty: the configuration has no cluster
	// Tailnet is the tailnet of the configuration, enabled or not; nil: it has no such block.
	Tailnet *Tailnet `per:"fleet"`
	Spec    Spec
}
