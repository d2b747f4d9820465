package mac

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/crypto/ssh"
)

// command serves one session channel, which runs at most one command. free is called before the client
// learns that the command has ended, since it may start the next one at once.
func (l *link) command(ctx context.Context, channel ssh.Channel, requests <-chan *ssh.Request, free func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	close(done) // nothing runs yet
	started := false
	for request := range requests {
		line, ok := execLine(request)
		if !ok || started {
			answer(request, false)
			continue
		}
		started, done = true, make(chan struct{})
		answer(request, true)
		l.log("exec")
		go func() {
			defer close(done)
			l.execute(ctx, channel, line, free)
		}()
	}
	// The client closed the channel, or the connection broke.
	if l.severed.Load() {
		<-done
	}
	cancel()
	<-done
	_ = channel.Close() // usually closed already
}

// execLine returns the command of an exec request. Terminals, shells, subsystems and environment
// variables are refused.
func execLine(request *ssh.Request) (string, bool) {
	var payload struct{ Command string }
	if request.Type != "exec" || ssh.Unmarshal(request.Payload, &payload) != nil {
		return "", false
	}
	return payload.Command, true
}

// answer answers a request. An error means that the connection is gone.
func answer(request *ssh.Request, ok bool) {
	if request.WantReply {
		_ = request.Reply(ok, nil)
	}
}

// execute runs a command line in the login shell and sends its exit status.
func (l *link) execute(ctx context.Context, channel ssh.Channel, line string, free func()) {
	defer channel.Close() // the client may have closed it first
	up := l.session.machine.power.up()
	err := l.session.settle(ctx)
	if err != nil {
		_, _ = fmt.Fprintf(channel.Stderr(), "sshd: %s\n", err)
	}
	if errors.Is(err, ErrDown) || l.session.outlived() {
		_ = l.cut() // the machine went down with it
		return
	}
	if err := l.session.severIfCut(); err != nil || l.severed.Load() {
		return // the rules were not loaded over this connection
	}
	faults := l.faults()
	faults.starting = l.starting
	l.beginning()
	if faults.CutOutput {
		l.executeHalf(ctx, channel, line, faults)
		return
	}
	stdout, stderr := newBatch(severable{channel, l}), newBatch(severable{channel.Stderr(), l})
	status, err := l.run(ctx, channel, line, faults, stdout, stderr)
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "sshd: %s\n", err)
		status = 255
	}
	stdout.end()
	stderr.end()
	if up.Err() != nil {
		_ = l.cut() // its exit status is unknown
		return
	}
	free()
	// Errors mean that the connection is gone.
	_ = channel.CloseWrite()
	_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{uint32(status)}))
}

// executeHalf runs a command line and breaks the connection in the middle of its output.
func (l *link) executeHalf(ctx context.Context, channel ssh.Channel, line string, faults Faults) {
	stdout := &capture{}
	// The client never sees its exit status.
	_, _ = l.run(ctx, channel, line, faults, stdout, io.Discard)
	text := stdout.bytes()
	_, _ = channel.Write(text[:len(text)/2])
	_ = l.cut()
}

func (l *link) run(ctx context.Context, stdin io.Reader, line string, faults Faults, stdout, stderr io.Writer) (status int, err error) {
	// The whole output is read first: all processes of the command share a file by offset, and a pipe
	// without a reader would stay open.
	file, err := spool(&interruptedInput{from: stdin, link: l})
	if err != nil {
		return 0, err
	}
	if file != nil {
		defer file.Close() // it is only read
	}
	who := l.session.loginUser()
	return l.session.start(ctx, who, []string{who.shell, "-c", line}, faults, file, stdout, stderr), nil
}

func (s *session) loginUser() user {
	who, _ := s.user(s.id.User)
	return who
}

// piped returns a pipe with a short text, without a file.
func piped(text []byte) (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	_, err = w.Write(text)
	if err = errors.Join(err, w.Close()); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// spool copies a whole stream to a pipe or a nameless file, so that processes can share it by its
// offset. It returns nil if the stream is empty.
func spool(stream io.Reader) (*os.File, error) {
	first := make([]byte, 4096) // every pipe holds as much
	n, err := io.ReadFull(stream, first)
	switch {
	case n == 0 && errors.Is(err, io.EOF):
		return nil, nil
	case errors.Is(err, io.ErrUnexpectedEOF):
		return piped(first[:n])
	case err != nil:
		return nil, err
	}
	file, err := os.CreateTemp("", "mac-stdin-")
	if err != nil {
		return nil, err
	}
	_, err = io.Copy(file, io.MultiReader(bytes.NewReader(first), stream))
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err = errors.Join(err, os.Remove(file.Name())); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}
