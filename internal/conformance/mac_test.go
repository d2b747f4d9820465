package conformance_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/hosts"
	"github.com/macfleet/macfleet/internal/conformance"
	"github.com/macfleet/macfleet/plan"
)

// The flags of `make conformance`.
var (
	hostFlag        = flag.String("host", "", "the Mac to check: its name or address, and :PORT unless it is 22; without it TestMac is skipped")
	userFlag        = flag.String("user", "m1", "login user of the Mac")
	keyFlag         = flag.String("key", "", "`FILE` with the private key, or with the public key of one in the agent (default: the agent's only key)")
	fingerprintFlag = flag.String("fingerprint", "", "the Mac's host key, SHA256:…, as verified elsewhere")
	filesFlag       = flag.Bool("files", false, "also run rows that create files, each in a temporary folder under /tmp")
)

// TestMac runs the rows on a real Mac and prints what differs. It changes no settings.
func TestMac(t *testing.T) {
	if *hostFlag == "" {
		t.Skip("needs a Mac: make conformance HOST=name")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	key, address, pin := realMac(ctx, t)
	reach := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	about, all, err := ask(ctx, hosts.Options{User: *userFlag, Key: key, Dial: reach}, hosts.Target{
		Server: inventory.Server{ID: "-", Name: *hostFlag, Address: *hostFlag}, Trust: plan.Trust{Pin: &pin}}, table(t), *filesFlag)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Print("\n" + conformance.Report(about, all))
	for _, o := range all {
		if o.NotRun == "" && !o.Same {
			t.Errorf("%s differs", o.Row.ID())
		}
	}
}

// realMac returns what the flags say of a real Mac: the key to log in with, its address, and its host key.
func realMac(ctx context.Context, t *testing.T) (ssh.Signer, string, plan.Pin) {
	t.Helper()
	key, err := loginKey(*keyFlag)
	if err != nil {
		t.Fatal(err)
	}
	address := *hostFlag
	if _, _, err := net.SplitHostPort(address); err != nil {
		address = net.JoinHostPort(address, "22")
	}
	pin, err := trusted(ctx, address, *fingerprintFlag)
	if err != nil {
		t.Fatal(err)
	}
	return key, address, pin
}

// loginKey returns the one key to offer.
func loginKey(file string) (ssh.Signer, error) {
	var public ssh.PublicKey
	if file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if public, _, _, _, err = ssh.ParseAuthorizedKey(text); err != nil {
			return hosts.ParsePrivateKey(string(text))
		}
	}
	conn, err := net.Dial("unix", os.Getenv("SSH_AUTH_SOCK"))
	if err != nil {
		return nil, fmt.Errorf("no SSH agent and no private key: %w; fix: add KEY=FILE", err)
	}
	held, err := agent.NewClient(conn).Signers() // the connection stays open: the agent signs over it
	if err != nil {
		return nil, fmt.Errorf("list the agent's keys: %w", err)
	}
	if public == nil && len(held) == 1 {
		return held[0], nil
	}
	for _, s := range held {
		if public != nil && ssh.FingerprintSHA256(s.PublicKey()) == ssh.FingerprintSHA256(public) {
			return s, nil
		}
	}
	return nil, fmt.Errorf("the agent holds %d keys; fix: choose one with KEY=FILE, its public key", len(held))
}

var errLooked = errors.New("the key was read")

// trusted returns the key of a host if a person has confirmed its fingerprint. It does not log in.
func trusted(ctx context.Context, address, fingerprint string) (plan.Pin, error) {
	conn, err := (&net.Dialer{Timeout: 10 * time.Second}).DialContext(ctx, "tcp", address)
	if err != nil {
		return plan.Pin{}, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		return plan.Pin{}, err
	}
	var key ssh.PublicKey
	_, _, _, err = ssh.NewClientConn(conn, address, &ssh.ClientConfig{
		HostKeyCallback: func(_ string, _ net.Addr, shown ssh.PublicKey) error { key = shown; return errLooked }})
	switch {
	case key == nil:
		return plan.Pin{}, fmt.Errorf("%s sent no host key: %w", address, err)
	case fingerprint == "":
		return plan.Pin{}, fmt.Errorf("%s has the host key %s; compare it with ssh-keygen -lf /etc/ssh/ssh_host_%s_key.pub on the Mac,"+
			"then run again with FINGERPRINT=%[2]s", address, ssh.FingerprintSHA256(key), strings.TrimPrefix(key.Type(), "ssh-"))
	case ssh.FingerprintSHA256(key) != fingerprint:
		return plan.Pin{}, fmt.Errorf("%s has the host key %s, not %s: the address belongs to another machine, or the Mac was reinstalled",
			address, ssh.FingerprintSHA256(key), fingerprint)
	}
	return plan.Pin{Name: address, Key: strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))}, nil
}

// batch is how many rows one command runs, so that its script stays short.
const batch = 80

// ask runs all rows that are safe on a host, over one connection.
func ask(ctx context.Context, o hosts.Options, to hosts.Target, rows []conformance.Row, files bool) (about string, all []conformance.Outcome, err error) {
	o.Deadlines = hosts.Deadlines{Question: 30 * time.Second, Exchange: 5 * time.Minute, Silence: time.Minute}
	conn, err := hosts.New(o).Connect(ctx, to)
	if err != nil {
		return "", nil, err
	}
	defer conn.Close()
	seen := conn.Observe(ctx, nil)
	if seen.Trouble != nil {
		return "", nil, errors.New(seen.Trouble.Text)
	}
	version, _ := seen.OSVersion.Get()
	var safe []conformance.Row
	for _, row := range rows {
		if why := unsafe(row, version, files); why != "" {
			all = append(all, conformance.Outcome{Row: row, NotRun: why})
		} else {
			safe = append(safe, row)
		}
	}
	for len(safe) > 0 {
		n := min(batch, len(safe))
		facts, _, err := conn.Probe(ctx, probes(safe[:n]))
		if err != nil {
			return "", nil, err
		}
		for _, row := range safe[:n] {
			all = append(all, outcome(row, facts.Get(row.File)))
		}
		safe = safe[n:]
	}
	return fmt.Sprintf("macOS %q, root without a password: %t", version, seen.Root), all, nil
}

// unsafe returns why a row must not run on a person's Mac, or "".
func unsafe(row conformance.Row, version string, files bool) string {
	switch {
	case row.Changes == conformance.Settings:
		return "changes the Mac's settings"
	case row.Changes == conformance.Files && !files:
		return "creates files (in a temporary folder): run with FILES=1"
	case row.Needs == conformance.MacOS && version == "":
		return "this is not a Mac"
	case row.Since != "" && version != "" && older(version, row.Since):
		return "needs macOS " + row.Since
	}
	return ""
}

func probes(rows []conformance.Row) []plan.Probe {
	var out []plan.Probe
	for _, row := range rows {
		script, args := row.Command()
		as := plan.Login
		if row.Who == conformance.Root {
			as = plan.Root
		}
		out = append(out, plan.Probe{ID: row.File, Command: plan.Command{Name: row.File, Script: script, As: as, Args: args}})
	}
	return out
}

func outcome(row conformance.Row, answer inventory.Seen[plan.Answer]) conformance.Outcome {
	a, ok := answer.Get()
	if !ok {
		return conformance.Outcome{Row: row, NotRun: answer.Why()}
	}
	return row.Judge(conformance.Result{Exit: a.Exit, Stdout: a.Stdout, Stderr: a.Stderr})
}

// older reports whether a version comes before another.
func older(version, other string) bool {
	a, b := strings.Split(version, "."), strings.Split(other, ".")
	for i := range min(len(a), len(b)) {
		x, _ := strconv.Atoi(a[i])
		y, _ := strconv.Atoi(b[i])
		if x != y {
			return x < y
		}
	}
	return len(a) < len(b)
}
