package mac

import (
	"context"
	"fmt"
	"io"
	"path"
)

// updateScript replaces the runner's programs, as the listener's own update does: by links to folders of the version.
const updateScript = `set -e
cd "$1"
rm -rf _work/_update
mkdir -p _work/_update
curl -fsSL -o _work/_update/runner.tar.gz "$4"
tar -xzf _work/_update/runner.tar.gz -C _work/_update
for name in bin externals; do
	rm -rf "$name.$3"
	mv "_work/_update/$name" "$name.$3"
done
[ -z "$5" ] || : > "bin.$3/runsvc.sh"
for name in bin externals; do
	if [ -L "$name" ]; then rm -f "$name"; elif [ -d "$name" ]; then mv "$name" "$name.$2"; fi
	ln -s "$1/$name.$3" "$name"
done
[ ! -f runsvc.sh ] || cat bin/runsvc.sh > runsvc.sh
rm -rf _work/_update
`

// RunnerArchive returns the address of the archive of a version of the runner.
func RunnerArchive(version string) string {
	return "https://github.com/actions/runner/releases/download/v" + version + "/actions-runner-osx-arm64-" + version + ".tar.gz"
}

// updateRunner replaces the programs of a listener by those of a version. A broken update leaves an empty runsvc.sh, as
// was seen after downloads that were cut off.
func (s *session) updateRunner(ctx context.Context, one listening, version string, broken bool) error {
	mark := ""
	if broken {
		mark = "broken"
	}
	p := &proc{session: s, ctx: ctx, user: one.user, env: loginEnviron(one.user), dir: "/", umask: 0o022, under: &launch{}, stdout: io.Discard, stderr: io.Discard,
		argv: []string{"/bin/bash", "-c", updateScript, "update.sh", one.listener.Root, one.listener.Version, version, RunnerArchive(version), mark}}
	said := &capture{}
	p.stderr = said
	if status := p.run(); status != 0 {
		return fmt.Errorf("update the runner in %s: status %d: %s", path.Clean(one.listener.Root), status, said.bytes())
	}
	return nil
}
