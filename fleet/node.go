package fleet

// Tart is the program that runs virtual machines.
type Tart struct {
	Artifact *Artifact `hcl:"artifact,optional" per:"fleet"` // an archive of tart.app
}

// TartKubelet makes a host a Node of the cluster, which runs each Pod as a
// virtual machine.
type TartKubelet struct {
	Artifact *Artifact         `hcl:"artifact,optional" per:"fleet"`                                 // the program
	MaxPods  *int              `hcl:"max_pods,optional" per:"fleet" default:"3" least:"1" max:"110"` // two guests, and one place for a Pod that replaces or watches them
	Labels   map[string]string `hcl:"labels,optional" per:"fleet" is:"label"`                        // of the Node, next to macfleet's own
	Legacy   []string          `hcl:"legacy,optional" per:"fleet" is:"job"`                          // labels of launchd jobs that run the same program, which it replaces
	Reserve  *Reserve          `hcl:"reserve,block" default:"{}"`                                    // present with its defaults, even if it is not in the configuration
}

// Reserve is what a host keeps for itself. A virtual machine that requests all resources could not start.
type Reserve struct {
	CPU    *int    `hcl:"cpu,optional" per:"fleet" default:"2" max:"64"`           // cores
	Memory *string `hcl:"memory,optional" per:"fleet" default:"2Gi" is:"quantity"` // as Kubernetes writes it
}

// JoinsCluster reports whether the host becomes a Node.
func (s Spec) JoinsCluster() bool { return s.TartKubelet != nil }

// BuildsImages reports whether virtual machines on the host are its own work, and not those of Pods.
func (s Spec) BuildsImages() bool { return s.GithubRunner != nil }

// JobsFrom names who assigns work to a host that builds images, and knows when it is idle.
func (s Spec) JobsFrom() string { return "GitHub" }
