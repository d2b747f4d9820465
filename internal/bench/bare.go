package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sync/errgroup"

	"github.com/macfleet/macfleet/hosts"
)

// observeBare is the least that a Go program does for the same questions: it opens the same
// connections, checks the host key, runs the same command line with the same stdin on as many hosts at
// once, and reads the output. It has no deadlines, parses no answers and makes no plan.
func observeBare(ctx context.Context, f *sshFleet) (result, error) {
	sent, err := f.Tools.exec(f.User, probesOf(f.User, spec()))
	if err != nil {
		return result{}, err
	}
	return observeWith(ctx, f, sent)
}

// observeWith sends the same command to every host and counts the answers.
func observeWith(ctx context.Context, f *sshFleet, sent hosts.Exec) (result, error) {
	mark, _, _ := strings.Cut(sent.Stdin, "\n")
	answers := make([]int, f.Hosts)
	began := time.Now()
	err := f.each(ctx, func(_ context.Context, i int) error {
		out, err := f.run(sent.Line, strings.NewReader(sent.Stdin))
		answers[i] = strings.Count(out, "\n"+mark+" end ")
		return err
	})
	r := result{Wall: time.Since(began)}
	for _, n := range answers {
		r.Answers += n
	}
	return r, err
}

// each calls a function for every host, with the fleet's parallelism.
func (f *sshFleet) each(ctx context.Context, do func(ctx context.Context, i int) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(max(1, f.Parallelism))
	for i := range f.Hosts {
		g.Go(func() error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return do(ctx, i)
		})
	}
	return g.Wait()
}

// run runs a command line over a separate connection. An exit code other than 0 is an answer, not an
// error.
func (f *sshFleet) run(line string, stdin io.Reader) (string, error) {
	signer, err := ssh.ParsePrivateKey([]byte(f.Key))
	if err != nil {
		return "", err
	}
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(f.HostKey))
	if err != nil {
		return "", err
	}
	client, err := ssh.Dial("tcp", f.Address, &ssh.ClientConfig{User: f.User, Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)},
		HostKeyCallback: ssh.FixedHostKey(key), HostKeyAlgorithms: []string{key.Type()}})
	if err != nil {
		return "", fmt.Errorf("%s: %w", f.Address, err)
	}
	defer client.Close()
	session, err := client.NewSession()
	if err != nil {
		return "", fmt.Errorf("%s: %w", f.Address, err)
	}
	var out bytes.Buffer
	session.Stdin, session.Stdout, session.Stderr = stdin, &out, io.Discard
	err = session.Run(line)
	var exit *ssh.ExitError
	if err != nil && !errors.As(err, &exit) {
		return "", fmt.Errorf("%s: %w", f.Address, err)
	}
	return out.String(), nil
}
