package load

import (
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/macfleet/macfleet/fleet"
)

// artifactType is the type of what artifact.NAME refers to. Two calls of
// cty.Capsule would make two types, so it is made once.
var artifactType = cty.Capsule("artifact", reflect.TypeFor[fleet.Artifact]())

// artifacts checks the artifact blocks and lets expressions refer to them.
func (l *loader) artifacts(blocks []artifactBlock, sc *scope) []fleet.Artifact {
	var all []fleet.Artifact
	sc.values["artifact"] = map[string]cty.Value{}
	for _, b := range blocks {
		isURL := l.artifactSource(b)
		switch {
		case b.Fetch == fleet.FetchHost && !isURL && b.Place.good["source"]:
			l.fault(b.Place.at("fetch"), "Invalid fetch", "Hosts cannot download a local file. Write fetch = \"push\", leave it out, or use an https URL as the source.")
		case b.Fetch == "" && isURL:
			b.Fetch = fleet.FetchHost
		case b.Fetch == "":
			b.Fetch = fleet.FetchPush
		}
		l.sourceVersion(b)
		if !b.Place.twice {
			sc.values["artifact"][b.Name] = cty.CapsuleVal(artifactType, &b.Artifact)
			all = append(all, b.Artifact)
		}
	}
	return all
}

// artifactSource checks where an artifact comes from, and reports whether it is a
// URL.
func (l *loader) artifactSource(b artifactBlock) bool {
	const summary = "Invalid source"
	if !b.Place.good["source"] {
		return false
	}
	at := b.Place.at("source")
	if !fleet.IsURL(b.Source) {
		if why := fileFault(b.Source); why != "" {
			l.fault(at, summary, "%s cannot be the source of an artifact: %s.", quoted(b.Source), why)
		}
		return false
	}
	u, err := url.Parse(b.Source)
	if err != nil || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		l.mask(at) // it may hold a password or a signature
	}
	switch {
	case err != nil:
		l.fault(at, summary, "This URL is invalid. Write an https URL, or the path of a file relative to the configuration.")
	case u.User != nil:
		l.fault(at, summary, "The URL of an artifact must not contain a user or a password, because plans show it and every user of a host can see it. Download the file yourself and use its path.")
	case u.RawQuery != "" || u.Fragment != "":
		l.fault(at, summary, "The URL of an artifact must not contain ? or #: what follows may be a signature, and every user of a host can see it. Download the file yourself and use its path.")
	case u.Scheme != "https":
		l.fault(at, summary, "%s is not an https URL, so the file could be changed on its way. Write https://.", quoted(b.Source))
	case u.Hostname() == "" || strings.ContainsFunc(b.Source, func(r rune) bool { return r <= ' ' || r >= 0x7f }):
		l.fault(at, summary, "%s is not a complete URL in ASCII characters. Write one such as \"https://releases.acme.dev/tart.tar.gz\", with other characters percent-encoded.", quoted(b.Source))
	}
	return true
}

// versionNumber is a version such as 2.32.1 in the name of a file.
var versionNumber = regexp.MustCompile(`\d+(\.\d+)+`)

// sourceVersion warns of a version that was changed while source and sha256 still belong to another one.
func (l *loader) sourceVersion(b artifactBlock) {
	names := versionNumber.FindAllString(b.Source, -1)
	if own := versionNumber.FindString(b.Version); own == "" || len(names) == 0 || slices.Contains(names, own) || !b.Place.good["version"] || !b.Place.good["source"] {
		return
	}
	l.warn(b.Place.at("version"), "Version and source differ", "The version is %s, but the source names %s. Correct one of them, then run macfleet artifacts lock --update %s for the new sha256.",
		quoted(b.Version), quoted(names[len(names)-1]), b.Name)
}

// fileFault says what is wrong with the path of a file, or "".
func fileFault(path string) string {
	switch {
	case strings.TrimSpace(path) == "":
		return "it is empty"
	case strings.HasPrefix(path, "~"):
		return "~ is not expanded; write a path relative to the configuration's directory"
	case strings.ContainsFunc(path, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return "it contains a control character"
	case strings.HasSuffix(path, "/"):
		return "it is a directory, and an artifact is one file"
	}
	return ""
}

// locked reports the artifacts that a fleet uses and that have no digest.
func (l *loader) locked(cfg *fleet.Config, blocks []artifactBlock) {
	if l.opts.Unlocked {
		return
	}
	used := cfg.ArtifactUses()
	for _, b := range blocks {
		in := len(used[b.Name]) > 0
		delete(used, b.Name) // of two with one name, the first counts
		if in && !b.Place.written("sha256") && !l.mayStand("sha256") {
			l.fault(b.Place.header(), "Artifact not locked", "The artifact %s is in use and has no sha256, so hosts cannot verify the file. Run macfleet artifacts lock to write it.", quoted(b.Name))
		}
	}
}
