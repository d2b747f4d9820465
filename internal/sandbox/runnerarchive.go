package sandbox

import (
	"net/url"
	"path"
	"regexp"
	"strings"
)

// archiveOfRunner is the name of an archive of GitHub's runner for these Macs.
var archiveOfRunner = regexp.MustCompile(`^actions-runner-osx-arm64-[0-9]+(?:\.[0-9]+)+\.tar\.gz$`)

// isRunnerArchive reports whether GitHub has an archive of its runner at an address.
func isRunnerArchive(at *url.URL) bool {
	return at.Hostname() == "github.com" && strings.HasPrefix(at.Path, "/actions/runner/releases/download/") && archiveOfRunner.MatchString(path.Base(at.Path))
}

// runnerArchive returns the archive of a version of GitHub's runner.
func runnerArchive(version string) []byte {
	return packed([]packedFile{{"bin/", 0o755, nil}, {"bin/Runner.Listener", 0o755, program("Runner.Listener", "Runner.Listener-"+version)}})
}
