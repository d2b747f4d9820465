package inventory

// MacOS is the value of the label kubernetes.io/os on a Node that runs macOS.
const MacOS = "darwin"

// IsMac reports whether a Node runs macOS.
func (n Node) IsMac() bool { return n.Labels["kubernetes.io/os"] == MacOS }
