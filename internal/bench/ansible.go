package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// ansibleModules are the two ways to put a question: raw needs nothing on the
// host and is the cheapest there is; shell is what playbooks use.
var ansibleModules = []string{"raw", "shell"}

// ansible puts the same questions through Ansible, a task each: pipelining,
// ControlPersist, 50 forks, no facts gathered. One run each: it takes minutes.
func (b *bench) ansible(ctx context.Context) (rows []row, err error) {
	program, err := exec.LookPath("ansible-playbook")
	if err != nil {
		return []row{shown("ansible", "not installed")}, nil
	}
	for _, n := range b.options.ansible {
		more, err := b.ansibleOf(ctx, program, n)
		rows = append(rows, more...)
		if err != nil {
			return rows, err
		}
	}
	return rows, nil
}

func (b *bench) ansibleOf(ctx context.Context, program string, n int) (rows []row, err error) {
	dir := filepath.Join(b.dir, fmt.Sprintf("a%d", n)) // short: sockets lie below it
	f, stop, err := startFleet(ctx, dir, n, "")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	f.Parallelism = b.parallelism
	ours := &side{kind: "macfleet"}
	if err := b.once(ctx, ours, f, true); err != nil {
		return nil, err
	}
	rows = append(rows, ours.row())
	rows[0].what = fmt.Sprintf("ansible %d hosts: macfleet beside it, one run", n)
	if err := f.writeInventory(dir); err != nil {
		return rows, err
	}
	for _, module := range ansibleModules {
		b.say("ansible: %d real sshd hosts through %s", n, module)
		u, err := b.playbook(ctx, program, dir, module, f)
		if err != nil {
			return rows, err
		}
		rows = append(rows, shown("  ansible, "+module, "%.1f s (%.0fx), client CPU %.1f s (%.0fx), one run", u.wall.Seconds(),
			u.wall.Seconds()/ours.walls[0].Seconds(), u.cpu.Seconds(), u.cpu.Seconds()/ours.cpus[0].Seconds()))
	}
	return rows, nil
}

// writeInventory writes Ansible's inventory and what ssh knows of the hosts.
func (f *sshFleet) writeInventory(dir string) error {
	hosts := make(map[string]any, len(f.Addresses))
	var known strings.Builder
	for i, address := range f.Addresses {
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			return err
		}
		hosts[fmt.Sprintf("acme-%03d", i)] = map[string]any{"ansible_host": host, "ansible_port": json.Number(port)}
		fmt.Fprintf(&known, "[%s]:%s %s\n", host, port, f.HostKey)
	}
	if err := os.WriteFile(filepath.Join(dir, "known"), []byte(known.String()), 0o600); err != nil {
		return err
	}
	return writeJSON(filepath.Join(dir, "inventory.json"), map[string]any{"all": map[string]any{"hosts": hosts, "vars": map[string]any{
		"ansible_user": f.User, "ansible_ssh_private_key_file": filepath.Join(dir, "login_key"), "ansible_python_interpreter": "/usr/bin/python3"}}})
}

// tasks are macfleet's questions, a task each. Those that package hosts adds to
// every observation are written out.
func (f *sshFleet) tasks(module string) []map[string]any {
	file := func(name string) string { return "cat /etc/macfleet/" + name + " || true" }
	scripts := []string{file("host.json"), file("claim.json"), "ioreg -rd1 -c IOPlatformExpertDevice", "sw_vers -productVersion"}
	for _, p := range f.probes() {
		// Each script in a shell of its own, as macfleet runs it. Ansible takes free
		// text apart by its quotes, also those in a comment: so it is one quoted word.
		words := "sh -c " + quoted(strings.TrimSpace(p.Script)) + " sh"
		for _, arg := range p.Args {
			words += " " + quoted(arg)
		}
		scripts = append(scripts, words)
	}
	var out []map[string]any
	for _, s := range scripts {
		out = append(out, map[string]any{"ansible.builtin." + module: strings.TrimSpace(f.Tools.prologue()) + "; " + s, "changed_when": false,
			"failed_when": false}) // an exit code is an answer
	}
	return out
}

// quoted makes one word of a text for the hosts' shell.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'"'"'`) + "'" }

// playbook runs the tasks on all hosts and ends the connections it leaves.
func (b *bench) playbook(ctx context.Context, program, dir, module string, f *sshFleet) (u usage, err error) {
	book := filepath.Join(dir, module+".json")
	if err := writeJSON(book, []map[string]any{{"hosts": "all", "gather_facts": false, "tasks": f.tasks(module)}}); err != nil {
		return u, err
	}
	// An empty file keeps this machine's own settings out.
	settings := filepath.Join(dir, "ansible.cfg")
	if err := os.WriteFile(settings, nil, 0o600); err != nil {
		return u, err
	}
	sockets := filepath.Join(dir, "s")
	if err := os.MkdirAll(sockets, 0o700); err != nil {
		return u, err
	}
	defer func() { err = errors.Join(err, endMasters(sockets)) }()
	_, u, err = execute(ctx, nil, []string{"ANSIBLE_CONFIG=" + settings, "ANSIBLE_HOME=" + filepath.Join(dir, "ansible"),
		"ANSIBLE_LOCAL_TEMP=" + filepath.Join(dir, "ansible", "tmp"), "ANSIBLE_PIPELINING=True", "ANSIBLE_FORKS=50", "ANSIBLE_GATHERING=explicit",
		"ANSIBLE_SSH_CONTROL_PATH_DIR=" + sockets, "ANSIBLE_HOST_KEY_CHECKING=True", "ANSIBLE_NOCOLOR=1",
		"ANSIBLE_SSH_ARGS=-F none -o ControlMaster=auto -o ControlPersist=60s -o IdentitiesOnly=yes -o UserKnownHostsFile=" + filepath.Join(dir, "known")},
		program, "-i", filepath.Join(dir, "inventory.json"), book)
	return u, err
}

// endMasters ends the ssh processes that Ansible leaves for the next run.
func endMasters(sockets string) error {
	all, err := filepath.Glob(filepath.Join(sockets, "*"))
	if err != nil {
		return err
	}
	// They must end also when the run was interrupted.
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for _, socket := range all {
		if _, _, err := execute(ctx, nil, nil, "ssh", "-F", "none", "-o", "ControlPath="+socket, "-O", "exit", "any"); err != nil {
			return err
		}
	}
	return nil
}

func writeJSON(name string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return os.WriteFile(name, text, 0o600)
}
