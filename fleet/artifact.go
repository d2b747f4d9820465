package fleet

import (
	"reflect"
	"slices"
	"strings"
)

// Artifact is a file that hosts get: a program, or an archive of one.
type Artifact struct {
	Name    string `json:"artifact" hcl:"name,label" is:"identifier"` // of its block
	Version string `json:"version" hcl:"version" is:"version"`
	Source  string `json:"-" hcl:"source"`                                         // an https URL, or the path of a file next to the configuration
	SHA256  string `json:"sha256" hcl:"sha256,optional" is:"sha256"`               // 64 lower-case hex digits; empty: not locked, so it cannot be used
	Size    int64  `json:"size" hcl:"size,optional" least:"1" max:"1000000000000"` // in bytes; 0: not written
	Fetch   Fetch  `json:"fetch" hcl:"fetch,optional" is:"fetch"`
}

// Fetch is how a host gets an artifact.
type Fetch string

// The ways to fetch an artifact.
const (
	FetchHost Fetch = "host" // each host downloads it and checks it
	FetchPush Fetch = "push" // macfleet uploads it
)

// String returns the artifact as a configuration refers to it.
func (a Artifact) String() string { return "artifact." + a.Name }

// HostPath is the path of a verified artifact on a host. Its name is its digest, so a file that exists is the
// right one. Older versions are kept for a rollback.
func (a Artifact) HostPath() string { return ArtifactFolder + "/" + a.SHA256 }

// ArtifactFolder holds a host's artifacts. Root owns it and everything above it, so that other users cannot
// replace programs that run from there.
const ArtifactFolder = "/usr/local/lib/macfleet/artifacts"

// IsURL reports whether a source is a URL, and not the path of a file.
func IsURL(source string) bool { return strings.Contains(source, "://") }

// Artifacts returns the artifacts that the blocks of s use, in the order of the
// struct.
func (s Spec) Artifacts() []Artifact {
	var all []Artifact
	s.eachArtifact(func(_ string, a *Artifact) {
		if a != nil {
			all = append(all, *a)
		}
	})
	return all
}

// WithoutArtifact returns the ids of the steps in s that need an artifact and have none.
func (s Spec) WithoutArtifact() []string {
	var all []string
	s.eachArtifact(func(step string, a *Artifact) {
		if a == nil {
			all = append(all, step)
		}
	})
	return all
}

// eachArtifact visits the fields for artifacts of every block of s. A block's own artifact may be missing; others then are not
// visited.
func (s Spec) eachArtifact(visit func(step string, a *Artifact)) {
	for block, v := range reflect.ValueOf(s).Fields() {
		if v.IsNil() {
			continue
		}
		step, _, _ := strings.Cut(block.Tag.Get("hcl"), ",")
		for field, value := range v.Elem().Fields() {
			if a, is := value.Interface().(*Artifact); is && (a != nil || field.Name == "Artifact") {
				visit(step, a)
			}
		}
	}
}

// ArtifactUses returns which fleets use each artifact, by the names of both, in
// the order of the fleets.
func (c *Config) ArtifactUses() map[string][]string {
	uses := map[string][]string{}
	for _, of := range c.Specs() {
		for _, a := range of.Spec.Artifacts() {
			if !slices.Contains(uses[a.Name], of.Fleet) {
				uses[a.Name] = append(uses[a.Name], of.Fleet)
			}
		}
	}
	return uses
}

// Specified is a specification and the hosts that have it.
type Specified struct {
	Fleet, Group string
	Host         string // a host with its own block; empty: all others of the group
	Spec         Spec
	Sources      Sources
}

// Specs returns the specifications of all groups, and then of all hosts with their own block.
func (c *Config) Specs() []Specified {
	var all []Specified
	for _, f := range c.Fleets {
		for _, g := range f.Groups {
			all = append(all, Specified{Fleet: f.Name, Group: g.Name, Spec: g.Spec, Sources: g.Sources})
		}
	}
	for _, h := range c.Hosts {
		all = append(all, Specified{Fleet: h.Fleet, Group: h.Group, Host: h.Name, Spec: h.Spec, Sources: h.Sources})
	}
	return all
}
