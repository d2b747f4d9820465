package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sync/errgroup"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/hosts"
	"github.com/macfleet/macfleet/plan"
)

// uploadRatio is how much longer a delivery may take than ssh with cat: 0.8 of
// its throughput.
const uploadRatio = 1.25

// payload is a file that goes to every host of a fleet, into a folder of its own.
type payload struct {
	Path   string
	SHA256 string
	Size   int64
	Folder string // of the hosts' folders
	Limit  int    // on their way at once
}

// folder is where a host keeps what it gets.
func (p payload) folder(host int) string { return filepath.Join(p.Folder, fmt.Sprint(host)) }

// upload compares macfleet's delivery of an artifact with the ssh client and cat,
// and with the least that a Go program does.
func (b *bench) upload(ctx context.Context) (rows []row, err error) {
	dir := filepath.Join(b.dir, "upload")
	f, stop, err := startFleet(ctx, dir, b.uploadHosts)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	p, err := newPayload(dir, b.uploadBytes)
	if err != nil {
		return nil, err
	}
	f.Payload = p
	b.say("upload: %d rounds of %d bytes to %d hosts", b.rounds, p.Size, b.uploadHosts)
	sides := []*side{{kind: "deliver"}, {kind: "ssh"}, {kind: "cat"}}
	for round := range b.rounds + 1 {
		for i := range sides {
			s := sides[(i+round)%len(sides)]
			if err := b.uploadOnce(ctx, s, f, dir, round > 0); err != nil {
				return nil, err
			}
		}
	}
	ours, client, bare := sides[0], sides[1], sides[2]
	beside := func(other *side) float64 {
		var ratios []float64
		for i := range ours.walls {
			ratios = append(ratios, ours.walls[i].Seconds()/other.walls[i].Seconds())
		}
		return medianFloat(ratios)
	}
	all := float64(p.Size) * float64(b.uploadHosts) / 1e6
	figure := func(s *side) row {
		wall := medianTime(s.walls).Seconds()
		return shown("  "+s.kind, "%.2f s, %.0f MB/s, client CPU %.2f s", wall, all/wall, medianTime(s.cpus).Seconds())
	}
	what := fmt.Sprintf("upload of %.0f MB to %d hosts, %d at once: macfleet / ssh cat", float64(p.Size)/1e6, b.uploadHosts, p.Limit)
	return []row{judged(what, beside(client), uploadRatio, times), figure(ours), figure(client), figure(bare),
		shown("  macfleet / cat by a Go program, which checks nothing", "%.2fx", beside(bare)),
		shown("  most on their way at once", "%d", ours.last.Answers)}, nil
}

func newPayload(dir string, size int64) (*payload, error) {
	data := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(data) // never fails, by its contract
	sum := sha256.Sum256(data)
	p := &payload{Path: filepath.Join(dir, "payload"), SHA256: hex.EncodeToString(sum[:]), Size: size, Folder: filepath.Join(dir, "hosts"), Limit: hosts.DefaultUploads}
	return p, os.WriteFile(p.Path, data, 0o600)
}

// uploadOnce lets one program send the payload, and removes what arrived.
func (b *bench) uploadOnce(ctx context.Context, s *side, f *sshFleet, dir string, counts bool) error {
	for host := range f.Addresses {
		if err := os.MkdirAll(f.Payload.folder(host), 0o755); err != nil {
			return err
		}
	}
	var r result
	var u usage
	var err error
	if s.kind == "ssh" {
		r.Wall, u.cpu, err = uploadByClient(ctx, f, dir)
	} else {
		r, u, err = b.do(ctx, job{Kind: s.kind, Fleet: f})
	}
	if err == nil {
		err = f.Payload.arrived(len(f.Addresses))
	}
	err = errors.Join(err, os.RemoveAll(f.Payload.Folder))
	if err == nil && counts {
		s.walls, s.cpus, s.last = append(s.walls, r.Wall), append(s.cpus, u.cpu), r
	}
	return err
}

// arrived looks whether every host has a file of the payload's size.
func (p payload) arrived(n int) error {
	for host := range n {
		found, err := filepath.Glob(filepath.Join(p.folder(host), "*"))
		if err != nil || len(found) != 1 {
			return fmt.Errorf("host %d has %q, %v", host, found, err)
		}
		if info, err := os.Stat(found[0]); err != nil || info.Size() != p.Size {
			return fmt.Errorf("host %d: %v, %+v", host, err, info)
		}
	}
	return nil
}

// toEach does something for every host, as many at once as may.
func (f *sshFleet) toEach(ctx context.Context, do func(ctx context.Context, host int) error) (time.Duration, error) {
	began := time.Now()
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(f.Payload.Limit)
	for host := range f.Addresses {
		g.Go(func() error {
			if err := do(ctx, host); err != nil {
				return fmt.Errorf("host %d: %w", host, err)
			}
			return nil
		})
	}
	err := g.Wait()
	return time.Since(began), err
}

// uploadByClient runs OpenSSH's client with cat.
func uploadByClient(ctx context.Context, f *sshFleet, dir string) (wall, cpu time.Duration, err error) {
	var spent atomic.Int64
	known := filepath.Join(dir, "known_hosts")
	if err := os.WriteFile(known, []byte("bench "+f.HostKey+"\n"), 0o600); err != nil {
		return 0, 0, err
	}
	wall, err = f.toEach(ctx, func(ctx context.Context, host int) error {
		address, port, err := net.SplitHostPort(f.Addresses[host])
		if err != nil {
			return err
		}
		file, err := os.Open(f.Payload.Path)
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }() // it was read, not written
		cmd := exec.CommandContext(ctx, "ssh", "-F", "none", "-i", filepath.Join(dir, "login_key"), "-o", "IdentitiesOnly=yes", "-o", "BatchMode=yes",
			"-o", "UserKnownHostsFile="+known, "-o", "HostKeyAlias=bench", "-p", port, f.User+"@"+address, "cat > "+filepath.Join(f.Payload.folder(host), "file"))
		var errs bytes.Buffer
		cmd.Stdin, cmd.Stderr = file, &errs
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("ssh: %w\n%s", err, errs.String())
		}
		spent.Add(int64(cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()))
		return nil
	})
	return wall, time.Duration(spent.Load()), err
}

// uploadBare is the least that a Go program does.
func uploadBare(ctx context.Context, f *sshFleet) (r result, err error) {
	signer, err := ssh.ParsePrivateKey([]byte(f.Key))
	if err != nil {
		return r, err
	}
	key, err := f.hostKey()
	if err != nil {
		return r, err
	}
	config := &ssh.ClientConfig{User: f.User, Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)},
		HostKeyCallback: ssh.FixedHostKey(key), HostKeyAlgorithms: []string{key.Type()}}
	r.Wall, err = f.toEach(ctx, func(_ context.Context, host int) error {
		client, err := ssh.Dial("tcp", f.Addresses[host], config)
		if err != nil {
			return err
		}
		defer func() { _ = client.Close() }() // nothing is left to say
		session, err := client.NewSession()
		if err != nil {
			return err
		}
		file, err := os.Open(f.Payload.Path)
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }() // it was read, not written
		session.Stdin = file
		return session.Run("cat > " + filepath.Join(f.Payload.folder(host), "file"))
	})
	return r, err
}

// uploadMacfleet delivers the payload to all hosts as an apply does: all want it
// at once, and package hosts lets so many have it.
func uploadMacfleet(ctx context.Context, f *sshFleet) (r result, err error) {
	key, err := hosts.ParsePrivateKey(f.Key)
	if err != nil {
		return r, err
	}
	book, folders := make(map[string]string), make(map[string]string)
	for host, to := range f.Addresses {
		book[fmt.Sprintf("192.0.2.%d:22", host+1)], folders[fmt.Sprint(host)] = to, f.Payload.folder(host)
	}
	client := hosts.New(hosts.Options{User: f.User, Key: key, Prologue: f.prologue(), Uploads: f.Payload.Limit,
		ArtifactFolder: func(server string) string { return folders[server] },
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, book[address])
		}})
	defer client.Close()
	artifact := fleet.Artifact{Name: "payload", Version: "1", SHA256: f.Payload.SHA256, Size: f.Payload.Size, Fetch: fleet.FetchPush}
	var now, most atomic.Int64
	began := time.Now()
	g, ctx := errgroup.WithContext(ctx)
	for host := range f.Addresses {
		g.Go(func() error {
			conn, err := client.Connect(ctx, hosts.Target{Server: inventory.Server{ID: fmt.Sprint(host), Name: fmt.Sprintf("acme-%d", host),
				Address: fmt.Sprintf("192.0.2.%d", host+1)}, Pin: &plan.Pin{Key: f.HostKey}})
			if err != nil {
				return err
			}
			defer conn.Close()
			_, err = conn.Deliver(ctx, plan.Delivery{Artifact: artifact, Space: artifact.Size}, func() (io.ReadCloser, int64, error) {
				file, err := os.Open(f.Payload.Path)
				for n, m := now.Add(1), most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
				}
				return leaving{file, &now}, f.Payload.Size, err
			})
			return err
		})
	}
	err = g.Wait()
	r.Wall, r.Answers = time.Since(began), int(most.Load())
	if err == nil && r.Answers > f.Payload.Limit {
		err = fmt.Errorf("%d uploads were under way at once, and %d may be", r.Answers, f.Payload.Limit)
	}
	return r, err
}

// leaving counts down when a file is closed.
type leaving struct {
	*os.File
	now *atomic.Int64
}

// Close closes the file.
func (l leaving) Close() error {
	l.now.Add(-1)
	return l.File.Close()
}
