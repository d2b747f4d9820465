package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sync/errgroup"

	"github.com/macfleet/macfleet/hosts"
)

// observeBare is the least that a Go program does to put the same questions: it
// opens the same connections, checks the host key, runs the same command line
// with the same stdin on as many hosts at once, and reads what comes. It has no
// deadlines, parses no answer and plans nothing.
func observeBare(ctx context.Context, f *sshFleet) (result, error) {
	sent, err := hosts.New(hosts.Options{User: f.User, Prologue: f.Tools.prologue()}).Exec(f.probes())
	if err != nil {
		return result{}, err
	}
	return observeWith(ctx, f, sent)
}

// observeWith sends the same exec to every host.
func observeWith(ctx context.Context, f *sshFleet, sent hosts.Exec) (result, error) {
	signer, err := ssh.ParsePrivateKey([]byte(f.Key))
	if err != nil {
		return result{}, err
	}
	key, err := f.hostKey()
	if err != nil {
		return result{}, err
	}
	config := &ssh.ClientConfig{User: f.User, Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)},
		HostKeyCallback: ssh.FixedHostKey(key), HostKeyAlgorithms: []string{key.Type()}}
	answers := make([]int, len(f.Addresses))
	var turns atomic.Int64
	began := time.Now()
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(max(1, f.Parallelism))
	for i, address := range f.Addresses {
		g.Go(func() (err error) {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			answers[i], err = askBare(config, address, sent, &turns)
			return err
		})
	}
	err = g.Wait()
	r := result{Wall: time.Since(began), Turns: turns.Load()}
	for _, n := range answers {
		r.Answers += n
	}
	return r, err
}

// counted counts round trips, as package hosts does.
type counted struct {
	net.Conn
	asked atomic.Bool
	turns *atomic.Int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 && c.asked.Swap(false) {
		c.turns.Add(1)
	}
	return n, err
}

func (c *counted) Write(p []byte) (int, error) {
	c.asked.Store(true)
	return c.Conn.Write(p)
}

// askBare runs the exec on one host and counts the answers in its output.
func askBare(config *ssh.ClientConfig, address string, sent hosts.Exec, turns *atomic.Int64) (int, error) {
	raw, err := net.Dial("tcp", address)
	if err != nil {
		return 0, err
	}
	defer raw.Close()
	conn, channels, requests, err := ssh.NewClientConn(&counted{Conn: raw, turns: turns}, address, config)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", address, err)
	}
	client := ssh.NewClient(conn, channels, requests)
	defer client.Close()
	session, err := client.NewSession()
	if err != nil {
		return 0, fmt.Errorf("%s: %w", address, err)
	}
	var out, errs bytes.Buffer
	session.Stdin, session.Stdout, session.Stderr = strings.NewReader(sent.Stdin), &out, &errs
	err = session.Run(sent.Line)
	var exit *ssh.ExitError
	if err != nil && !errors.As(err, &exit) {
		return 0, fmt.Errorf("%s: %w", address, err)
	}
	mark, _, _ := strings.Cut(sent.Stdin, "\n")
	return strings.Count(out.String(), "\n"+mark+" end "), nil
}
