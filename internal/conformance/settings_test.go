package conformance_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/macfleet/macfleet/internal/conformance"
)

// The flags of `make conformance-settings`, besides those of `make conformance`.
var (
	ownFlag    = flag.Bool("own", false, "the Mac may be disrupted: jobs, pf, virtual machines and the GUI session")
	anywayFlag = flag.Bool("anyway", false, "run even if virtual machines run or the Mac has a fleet's marker")
	vmFlag     = flag.String("vm", "", "`NAME` of a virtual machine of the login user with a network; a copy of it is run")
	outFlag    = flag.String("out", "", "new `FOLDER` for the report")
)

// TestOwnedMac runs the experiments on a real Mac that may be disrupted.
func TestOwnedMac(t *testing.T) {
	if *hostFlag == "" {
		t.Skip("needs a Mac: make conformance-settings HOST=name I_OWN_THIS_MAC=1")
	}
	if !*ownFlag {
		t.Fatal("these experiments load jobs, change pf and end the GUI session; if the Mac may be disrupted, set I_OWN_THIS_MAC=1")
	}
	ctx, stop := signal.NotifyContext(t.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	key, address, pin := realMac(ctx, t)
	shown, _, _, _, err := ssh.ParseAuthorizedKey([]byte(pin.Key))
	if err != nil {
		t.Fatal(err)
	}
	o := owned{user: *userFlag, key: key, hostKey: ssh.FixedHostKey(shown), dial: func(ctx context.Context) (net.Conn, error) {
		return (&net.Dialer{Timeout: 20 * time.Second}).DialContext(ctx, "tcp", address)
	}, begins: func(name string) { fmt.Println("running " + name) }, vm: *vmFlag, anyway: *anywayFlag, words: []string{*hostFlag, *userFlag}}
	if o.builds, err = twoBuilds(ctx, t.TempDir()); err != nil {
		t.Fatal(err)
	}
	r, err := o.experiment(ctx)
	fmt.Print("\n" + r.text())
	if err != nil {
		t.Error(err)
	}
	if *outFlag != "" && len(r.verdicts) > 0 {
		if err := r.write(*outFlag); err != nil {
			t.Fatal(err)
		}
		fmt.Println("Written to " + *outFlag + ". Review it, then send it to us.")
	}
	for _, v := range r.verdicts {
		if v.NotRun == "" && !v.Fits {
			t.Errorf("%s: %s is %q", v.Experiment, v.Key, v.Value)
		}
	}
}

// twoBuilds builds the two programs of the experiment swap. Go's linker signs them ad hoc.
func twoBuilds(ctx context.Context, folder string) (builds [2][]byte, err error) {
	for i := range builds {
		out := filepath.Join(folder, fmt.Sprint("build-", i+1))
		c := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", fmt.Sprint("-X main.build=", i+1), "-o", out, "./daemon")
		c.Env = append(os.Environ(), "GOOS=darwin", "GOARCH=arm64", "CGO_ENABLED=0")
		if text, err := c.CombinedOutput(); err != nil {
			return builds, fmt.Errorf("build the daemon for macOS: %w\n%s", err, text)
		}
		if builds[i], err = os.ReadFile(out); err != nil {
			return builds, err
		}
	}
	return builds, nil
}

// owned is a Mac that may be disrupted.
type owned struct {
	user    string
	key     ssh.Signer
	hostKey ssh.HostKeyCallback
	dial    func(context.Context) (net.Conn, error)
	builds  [2][]byte
	vm      string
	anyway  bool
	begins  func(experiment string)
	words   []string // removed from the report
}

// findings are the results of the experiments.
type findings struct {
	about    string
	verdicts []conformance.Verdict
	output   map[string]string // by experiment, scrubbed
}

func (r findings) text() string { return r.about + "\n\n" + conformance.Settled(r.verdicts) }

// write writes the folder of the report.
func (r findings) write(folder string) error {
	if err := os.Mkdir(folder, 0o700); err != nil {
		return err
	}
	files := map[string]string{"report.txt": r.text()}
	for name, text := range r.output {
		files[name+".txt"] = text
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// experiment runs all experiments in order, and reverts them at the end over a separate connection.
func (o owned) experiment(ctx context.Context) (r findings, err error) {
	client, err := o.connect(ctx)
	if err != nil {
		return r, err
	}
	defer client.Close()
	guard, err := o.run(ctx, client, "guard", nil)
	if err != nil {
		return r, err
	}
	said := conformance.Values(guard.Stdout)
	r.about = "macOS " + said["macos"]
	switch why := said["refused"]; {
	case why != "":
		return r, fmt.Errorf("nothing was changed: %s", why)
	case said["busy"] != "" && !o.anyway:
		return r, fmt.Errorf("nothing was changed: %s; to run anyway, set ANYWAY=1", said["busy"])
	}
	defer func() {
		if e := o.restore(); e != nil {
			err = errors.Join(err, fmt.Errorf("the Mac still has changes of the experiments: %w; fix: run this again, which reverts them first, or follow docs/first-mac.md", e))
		}
	}()
	if err := o.restore(); err != nil { // of an aborted run
		return r, err
	}
	for i, build := range o.builds {
		if got, err := o.run(ctx, client, "send", bytes.NewReader(build), fmt.Sprint("build-", i+1)); err != nil || got.Exit != 0 {
			return r, errors.Join(fmt.Errorf("send a program: exit %d, %s", got.Exit, got.Stderr), err)
		}
	}
	r.output = make(map[string]string)
	for _, e := range conformance.Experiments() {
		o.begins(e.Name)
		got, err := o.run(ctx, client, e.Name, nil, o.vm)
		if err != nil {
			return r, fmt.Errorf("%s: %w", e.Name, err)
		}
		r.verdicts = append(r.verdicts, conformance.JudgeExperiment(e, got)...)
		r.output[e.Name] = conformance.ScrubReport(got.Stdout+"--- errors\n"+got.Stderr, append([]string{o.vm}, o.words...)...)
	}
	return r, nil
}

// restore reverts the experiments.
func (o owned) restore() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute) // it waits for an experiment that is still running
	defer cancel()
	client, err := o.connect(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	got, err := o.run(ctx, client, "restore", nil)
	if err != nil {
		return err
	}
	if why := conformance.Values(got.Stdout)["restored"]; why != "yes" {
		return fmt.Errorf("%s%s", why, got.Stderr)
	}
	return nil
}

func (o owned) connect(ctx context.Context) (*ssh.Client, error) {
	conn, err := o.dial(ctx)
	if err != nil {
		return nil, err
	}
	c, channels, requests, err := ssh.NewClientConn(conn, "mac", &ssh.ClientConfig{User: o.user, Auth: []ssh.AuthMethod{ssh.PublicKeys(o.key)}, HostKeyCallback: o.hostKey})
	if err != nil {
		conn.Close()
		return nil, err
	}
	return ssh.NewClient(c, channels, requests), nil
}

func (o owned) run(ctx context.Context, client *ssh.Client, name string, stdin io.Reader, args ...string) (conformance.Result, error) {
	return o.exec(ctx, client, conformance.Script(name), stdin, args...)
}

// exec runs a script as root. Its first argument is the login user.
func (o owned) exec(ctx context.Context, client *ssh.Client, script string, stdin io.Reader, args ...string) (r conformance.Result, err error) {
	s, err := client.NewSession()
	if err != nil {
		return r, err
	}
	defer s.Close()
	defer context.AfterFunc(ctx, func() { client.Close() })()
	line := "sudo -n /bin/sh -c " + quote(script) + " sh " + quote(o.user)
	for _, arg := range args {
		line += " " + quote(arg)
	}
	var out, complaints bytes.Buffer
	s.Stdin, s.Stdout, s.Stderr = stdin, &out, &complaints
	err = s.Run(line)
	r.Stdout, r.Stderr = out.String(), complaints.String()
	var exit *ssh.ExitError
	switch {
	case ctx.Err() != nil:
		return r, context.Cause(ctx)
	case errors.As(err, &exit):
		r.Exit, err = exit.ExitStatus(), nil
	}
	return r, err
}

// TestScrubReport checks that a report identifies no person, host or network.
func TestScrubReport(t *testing.T) {
	t.Parallel()
	got := conformance.ScrubReport("block from 203.0.113.7 to 192.168.64.0/24 fe80::1c2d:3e4f:5061:7283 sam@acme.dev 5B1B6C30-0000-4000-8000-0123456789AB\n"+
		"Token : 18446743523953737727 on mini-1 of /Users/m1 at 12:30:01\n", "mini-1", "m1")
	for _, word := range []string{"203.0.113.7", "fe80", "acme.dev", "5B1B6C30", "18446743523953737727", "mini-1", "/m1"} {
		if strings.Contains(got, word) {
			t.Errorf("%q is left in %s", word, got)
		}
	}
	for _, word := range []string{"192.168.64.0/24", "12:30:01", "block from"} {
		if !strings.Contains(got, word) {
			t.Errorf("%q is gone from %s", word, got)
		}
	}
}
