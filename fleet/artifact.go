package fleet

import "strings"

// Artifact is a file that hosts get: a program, or an archive of one.
type Artifact struct {
	Name    string `json:"artifact"` // of its block
	Version string `json:"version"`
	Source  string `json:"-"`      // an https URL, or the path of a file beside the configuration
	SHA256  string `json:"sha256"` // 64 digits of small hex; empty: not locked, and nothing may be done with it
	Size    int64  `json:"size"`   // in bytes; 0: not written
	Fetch   Fetch  `json:"fetch"`
}

// Fetch is how a host gets an artifact.
type Fetch string

// The ways of an artifact.
const (
	FetchHost Fetch = "host" // each host downloads it and checks it
	FetchPush Fetch = "push" // macfleet uploads it
)

// String returns the artifact as a configuration refers to it.
func (a Artifact) String() string { return "artifact." + a.Name }

// HostPath is where an artifact lies on a host, whole and checked. Its name is
// its digest: one that is there is the right one, and an older version stays
// beside it for a way back.
func (a Artifact) HostPath() string { return ArtifactFolder + "/" + a.SHA256 }

// ArtifactFolder holds a host's artifacts. Root owns it and everything above it:
// what is run from there must not be exchangeable by others.
const ArtifactFolder = "/usr/local/lib/macfleet/artifacts"

// IsURL reports whether a source is a URL, and not the path of a file.
func IsURL(source string) bool { return strings.Contains(source, "://") }
