package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os/user"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
)

// slowSeconds is the budget of all hosts that take a second each.
const slowSeconds = 4.0

// slow observes hosts that answer after a second, from a recording.
func (b *bench) slow(ctx context.Context) (_ []row, err error) {
	me, err := user.Current()
	if err != nil {
		return nil, err
	}
	f := &sshFleet{Hosts: b.simulated, User: me.Username, Parallelism: 256}
	if f.Tools, err = writeStandIn(filepath.Join(b.dir, "slow")); err != nil {
		return nil, err
	}
	r, err := record(ctx, f)
	if err != nil {
		return nil, err
	}
	if f.HostKey, f.Key, err = newKey(); err != nil {
		return nil, err
	}
	key, err := ssh.ParsePrivateKey([]byte(f.Key))
	if err != nil {
		return nil, err
	}
	config := &ssh.ServerConfig{PublicKeyCallback: func(ssh.ConnMetadata, ssh.PublicKey) (*ssh.Permissions, error) { return nil, nil }}
	config.AddHostKey(key)
	at, stop, err := serveEach(func(conn *net.TCPConn) { r.answer(conn, config) })
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	f.Address = at
	b.say("slow: %d hosts that take a second each", f.Hosts)
	s := &side{kind: "macfleet"}
	for range b.rounds {
		if err := b.once(ctx, s, f, true); err != nil {
			return nil, err
		}
	}
	return []row{judged(fmt.Sprintf("%d hosts that take a second each, %d at once", f.Hosts, f.Parallelism), median(s.walls), slowSeconds, " s"),
		shown("  macfleet's own CPU a host", "%.1f ms", median(s.cpus)/float64(f.Hosts))}, nil
}

// recorded is the recorded answer of hosts.
type recorded struct {
	mark, stdout, stderr string // stderr has the lines of stdout that frame answers
}

var framing = regexp.MustCompile(`\n[0-9A-Z]{26} (?:begin|end) \S+\n`)

// record asks the stand-in once.
func record(ctx context.Context, f *sshFleet) (recorded, error) {
	sent, err := f.Tools.exec(f.User, probesOf(f.User, spec()))
	if err != nil {
		return recorded{}, err
	}
	out, _, err := f.Tools.run(ctx, sent)
	mark, _, _ := strings.Cut(sent.Stdin, "\n")
	return recorded{mark: mark, stdout: out, stderr: strings.Join(framing.FindAllString(out, -1), "")}, err
}

func (r recorded) answer(conn net.Conn, config *ssh.ServerConfig) {
	defer conn.Close()
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
				_ = request.Reply(request.Type == "exec", nil) // a client that disconnected sends no further requests
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
	time.Sleep(time.Second)
	now := strings.NewReplacer(r.mark, strings.TrimSpace(mark))
	// A client that disconnected does not read it.
	_, _ = now.WriteString(channel.Stderr(), r.stderr)
	_, _ = now.WriteString(channel, r.stdout)
	_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{}))
	_ = channel.Close()
}
