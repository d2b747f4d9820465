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

// isExporterArchive reports whether GitHub has an archive of the node exporter at an address.
func isExporterArchive(at *url.URL) bool {
	return at.Hostname() == "github.com" && strings.HasPrefix(at.Path, "/prometheus/node_exporter/releases/download/") && strings.HasSuffix(at.Path, ".darwin-arm64.tar.gz")
}

// runnerArchive returns the archive of a version of GitHub's runner, with its folders and files. Their programs are those
// that the simulated Macs know.
func runnerArchive(version string) []byte {
	code := func(name, version string) []byte {
		return []byte(string(program(name, name+"-"+version)) + "program=" + name + "\nteam=ABCDE12345\n")
	}
	return packed([]packedFile{
		{"bin/", 0o755, nil},
		{"bin/Runner.Listener", 0o755, code("Runner.Listener", version)},
		{"bin/Runner.Worker", 0o755, code("Runner.Worker", version)},
		{"bin/RunnerService.js", 0o644, []byte("// The service starts the listener, and starts it again unless it stops for good.\n")},
		{"bin/runsvc.sh", 0o755, []byte(runnerService)},
		{"bin/darwin.svc.sh.template", 0o644, []byte("#!/bin/bash\n")},
		{"bin/actions.runner.plist.template", 0o644, []byte(runnerPlist)},
		{"externals/", 0o755, nil}, {"externals/node20/", 0o755, nil}, {"externals/node20/bin/", 0o755, nil},
		{"externals/node20/bin/node", 0o755, code("node", "20.20.0")},
		{"config.sh", 0o755, []byte(runnerConfig)},
		{"env.sh", 0o755, []byte(runnerEnv)},
		{"run.sh", 0o755, []byte("#!/bin/bash\necho 'run.sh is not modelled: use bin/runsvc.sh' >&2\nexit 64\n")},
		{"safe_sleep.sh", 0o755, []byte("#!/bin/bash\nsleep \"$1\"\n")},
	})
}

// runnerConfig is config.sh.
const runnerConfig = `#!/bin/bash
if [ "$(id -u)" -eq 0 ] && [ -z "$RUNNER_ALLOW_RUNASROOT" ]; then
	echo "Must not run with sudo"
	exit 1
fi
cd "$(dirname "$0")" || exit 1
. ./env.sh
if [ "$1" = remove ]; then
	./bin/Runner.Listener "$@"
else
	./bin/Runner.Listener configure "$@"
fi
`

// runnerEnv is env.sh: it keeps variables of its caller, and its search path.
const runnerEnv = `#!/bin/bash
[ -f .env ] || touch .env
for name in LANG JAVA_HOME ANT_HOME M2_HOME ANDROID_HOME GRADLE_HOME NVM_BIN NVM_PATH LD_LIBRARY_PATH PERL5LIB; do
	eval "value=\$$name"
	if [ -n "$value" ] && ! grep -q "^$name=" .env; then
		echo "$name=$value" >> .env
	fi
done
echo "$PATH" > .path
`

// runnerService is runsvc.sh. Its paths are relative to the job's folder.
const runnerService = `#!/bin/bash
if [ -f .path ]; then
	PATH=$(cat .path)
	export PATH
fi
./externals/node20/bin/node ./bin/RunnerService.js
`

// runnerPlist is the template of the property list that svc.sh installs.
const runnerPlist = `<?xml version="1.0" encoding="UTF-8"?>
<plist version="1.0">
<dict>
	<key>Label</key>
	<string>{{SvcName}}</string>
	<key>ProgramArguments</key>
	<array>
		<string>{{RunnerRoot}}/runsvc.sh</string>
	</array>
	<key>UserName</key>
	<string>{{User}}</string>
	<key>WorkingDirectory</key>
	<string>{{RunnerRoot}}</string>
	<key>RunAtLoad</key>
	<true/>
	<key>StandardOutPath</key>
	<string>{{UserHome}}/Library/Logs/{{SvcName}}/stdout.log</string>
	<key>StandardErrorPath</key>
	<string>{{UserHome}}/Library/Logs/{{SvcName}}/stderr.log</string>
	<key>EnvironmentVariables</key>
	<dict>
		<key>ACTIONS_RUNNER_SVC</key>
		<string>1</string>
	</dict>
	<key>ProcessType</key>
	<string>Interactive</string>
	<key>SessionCreate</key>
	<true/>
</dict>
</plist>
`
