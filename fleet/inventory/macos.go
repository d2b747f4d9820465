package inventory

// MacOS is what the label kubernetes.io/os of a Node says that runs macOS.
const MacOS = "darwin"

// IsMac reports whether a Node says that it runs macOS.
func (n Node) IsMac() bool { return n.Labels["kubernetes.io/os"] == MacOS }
