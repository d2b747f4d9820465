package sandbox

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// bakeScript is what a workflow does on a builder. It runs with the PATH of the runner, given as $1, for the machine $2.
const bakeScript = `set -e
PATH=$(cat "$1/.path")
packer version | head -n 1
echo "Xcode: $(xcode-select -p)"
address=$(tart ip "$2")
echo "Waiting for SSH at $address"
nc -z -G 3 -w 3 "$address" 22
tart stop "$2"
tart push "$2" registry.acme.dev/images/base:1
echo "Pushed $2"
`

const bakeJob = `<?xml version="1.0" encoding="UTF-8"?>
<plist version="1.0"><dict>
<key>Label</key><string>LABEL</string>
<key>ProgramArguments</key><array><string>/bin/zsh</string><string>FOLDER/script</string><string>RUNNER</string><string>MACHINE</string></array>
<key>RunAtLoad</key><true/>
<key>StandardOutPath</key><string>FOLDER/log</string>
<key>StandardErrorPath</key><string>FOLDER/log</string>
</dict></plist>
`

// The job of a bake, and the virtual machine that it makes.
const (
	bakeLabel   = "dev.acme.bake"
	bakeMachine = "bake-base"
	bakeFolder  = "/tmp/dev.acme.bake"
)

// ErrBakeFailed is the error of a bake whose job failed.
var ErrBakeFailed = errors.New("the bake failed")

// Bake bakes an image on a host as a workflow does: a job of the login user's session connects to a virtual machine, stops it and pushes
// it. It returns what the job printed, also with ErrBakeFailed.
func (w *World) Bake(ctx context.Context, host string) (log string, err error) {
	machine, err := w.Mac(host)
	if err != nil {
		return "", err
	}
	runner, err := machine.Runner()
	if err != nil {
		return "", err
	}
	if runner.ID == 0 {
		return "", fmt.Errorf("%s has no runner that is registered", host)
	}
	if err := machine.StartWork("bake"); err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, machine.FinishWork()) }()
	if err := machine.StartVM(bakeMachine); err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, machine.RemoveVM(bakeMachine)) }()
	user := w.settings.SSHUser
	do := func(script string) (string, error) {
		r, err := machine.Run(ctx, user, script)
		if err == nil && r.Exit != 0 {
			err = fmt.Errorf("%w: %s", ErrBakeFailed, strings.TrimSpace(string(r.Stderr)))
		}
		return string(r.Stdout), err
	}
	job := strings.NewReplacer("LABEL", bakeLabel, "FOLDER", bakeFolder, "RUNNER", runner.Root, "MACHINE", bakeMachine).Replace(bakeJob)
	_, err = do("rm -rf " + bakeFolder + "; mkdir " + bakeFolder + "; cat >" + bakeFolder + "/script <<'SCRIPT'\n" + bakeScript + "SCRIPT\ncat >" + bakeFolder + "/job.plist <<'JOB'\n" + job +
		"JOB\nlaunchctl bootstrap gui/$(id -u) " + bakeFolder + "/job.plist")
	if err == nil {
		err = machine.Settle(ctx)
	}
	if err == nil {
		log, err = do("cat " + bakeFolder + "/log; launchctl bootout gui/$(id -u)/" + bakeLabel + "; rm -rf " + bakeFolder)
	}
	if err == nil && !strings.Contains(log, "Pushed ") {
		err = ErrBakeFailed
	}
	return log, err
}
