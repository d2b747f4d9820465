package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/macfleet/macfleet/hosts"
	"github.com/macfleet/macfleet/internal/sandbox"
)

// serve starts a process that serves hosts until stop is called, so that their cost is not the
// measured program's. The answer is what the process printed once it served.
func (b *bench) serve(ctx context.Context, j job) (said string, stop func() error, err error) {
	text, err := json.Marshal(j)
	if err != nil {
		return "", nil, err
	}
	cmd := exec.CommandContext(ctx, b.self, childArgument)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return "", nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	stop = func() error { return errors.Join(in.Close(), cmd.Wait()) }
	if _, err := in.Write(append(text, '\n')); err != nil {
		return "", nil, errors.Join(err, stop())
	}
	if err := json.NewDecoder(out).Decode(&said); err != nil {
		return "", nil, errors.Join(fmt.Errorf("%s: %w", j.Kind, err), stop())
	}
	return said, stop, nil
}

// serving prints where something is served, and returns when nobody needs it any more.
func serving(in io.Reader, out io.Writer, at string) error {
	if err := json.NewEncoder(out).Encode(at); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, in)
	return err
}

// serveWorld serves the simulated world of a folder.
func serveWorld(in io.Reader, out io.Writer, dir string) (err error) {
	w, err := sandbox.Open(dir, sandbox.Seed{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	at, err := w.Share()
	if err != nil {
		return err
	}
	return serving(in, out, at)
}

// serveSlow serves hosts that give a recorded answer after a time.
func serveSlow(in io.Reader, out io.Writer, r recorded) error {
	key, err := ssh.ParsePrivateKey([]byte(r.HostKey))
	if err != nil {
		return err
	}
	config := &ssh.ServerConfig{PublicKeyCallback: func(ssh.ConnMetadata, ssh.PublicKey) (*ssh.Permissions, error) { return nil, nil }}
	config.AddHostKey(key)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go r.answer(conn, config)
		}
	}()
	return errors.Join(serving(in, out, listener.Addr().String()), listener.Close())
}

// recorded is what hosts say that were asked by a recorded mark.
type recorded struct {
	HostKey             string // private key, PEM
	Mark, Stdout, Marks string // Marks: the lines of stdout that stand on stderr too
	After               time.Duration
}

func (r recorded) answer(conn net.Conn, config *ssh.ServerConfig) {
	_, channels, requests, err := ssh.NewServerConn(conn, config)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	for opened := range channels {
		channel, asked, err := opened.Accept()
		if err != nil {
			return
		}
		go func() {
			for request := range asked {
				_ = request.Reply(request.Type == "exec", nil) // a client that has gone asks nothing more
				if request.Type == "exec" {
					go r.say(channel)
				}
			}
		}()
	}
}

func (r recorded) say(channel ssh.Channel) {
	mark, err := bufio.NewReader(channel).ReadString('\n')
	if err != nil {
		return
	}
	time.Sleep(r.After)
	now := strings.NewReplacer(r.Mark, strings.TrimSpace(mark))
	// A client that has gone hears nothing of it.
	_, _ = now.WriteString(channel.Stderr(), r.Marks)
	_, _ = now.WriteString(channel, r.Stdout)
	_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{}))
	_ = channel.Close()
}

var framing = regexp.MustCompile(`\n[0-9a-f]{32} (?:begin|end) \S+\n`)

// record asks the stand-in once.
func record(ctx context.Context, m standIn, f *sshFleet) (recorded, error) {
	sent, err := hosts.New(hosts.Options{User: f.User, Prologue: m.prologue()}).Exec(f.probes())
	if err != nil {
		return recorded{}, err
	}
	out, _, err := execute(ctx, strings.NewReader(sent.Stdin), []string{"PATH=" + m.path()}, "/bin/sh", "-c", sent.Line)
	mark, _, _ := strings.Cut(sent.Stdin, "\n")
	return recorded{Mark: mark, Stdout: out, Marks: strings.Join(framing.FindAllString(out, -1), "")}, err
}

// slow observes hosts that take a second each.
func (b *bench) slow(ctx context.Context) (_ []row, err error) {
	me, err := user.Current()
	if err != nil {
		return nil, err
	}
	m, err := writeStandIn(filepath.Join(b.dir, "slow"))
	if err != nil {
		return nil, err
	}
	f := &sshFleet{User: me.Username, Tools: m, Parallelism: 256}
	r, err := record(ctx, m, f)
	if err != nil {
		return nil, err
	}
	public, private, err := newKey()
	if err != nil {
		return nil, err
	}
	f.Key, f.HostKey, r.HostKey, r.After = string(private), strings.TrimSpace(string(public)), string(private), time.Second
	at, stop, err := b.serve(ctx, job{Kind: "slow", Recorded: r})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	for range b.simulated {
		f.Addresses = append(f.Addresses, at)
	}
	b.say("slow: %d hosts that take a second each", b.simulated)
	s := &side{kind: "macfleet"}
	for range b.rounds {
		if err := b.once(ctx, s, f, true); err != nil {
			return nil, err
		}
	}
	return []row{judged(fmt.Sprintf("%d hosts that take a second each, %d at once", b.simulated, f.Parallelism), medianTime(s.walls).Seconds(), slowSeconds, " s"),
		shown("  macfleet's own CPU a host", "%.1f ms", perHost(s.cpus, b.simulated))}, nil
}

// slowSeconds is how long the hosts that take a second each may take together.
const slowSeconds = 4.0

func perHost(cpus []time.Duration, n int) float64 {
	return float64(medianTime(cpus).Microseconds()) / 1000 / float64(n)
}
