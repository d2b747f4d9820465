package hosts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
)

// limit is the deadline that ends a conversation.
type limit int

const (
	none limit = iota // it ends by itself
	byHandshake
	bySilence
	byExchange
)

// deadlines returns deadlines of which only this one can be reached.
func (l limit) deadlines() Deadlines {
	return impatient(func(d *Deadlines) {
		switch l {
		case byHandshake:
			d.Handshake = 150 * time.Millisecond
		case bySilence:
			d.Silence = time.Second
		case byExchange:
			d.Exchange, d.Change = 200*time.Millisecond, time.Millisecond
		}
	})
}

// stranger is a kind of peer that does not answer as a healthy host does.
type stranger struct {
	name  string
	serve func(testing.TB) func(net.Conn) // called once a connection
	pin   bool                            // another host key than its own is pinned
	code  string                          // "": it answers nevertheless
	phase Phase
	by    limit
	text  string // a part of the error where no deadline ends it
	alone bool   // what ends it depends on deadlines that a fleet does not have
}

// says returns a part of the error's text: it names the deadline.
func (s stranger) says(d Deadlines, run bool) string {
	switch s.by {
	case byHandshake:
		return fmt.Sprintf("login timed out after %s", d.Handshake)
	case bySilence:
		return fmt.Sprintf("no data from the host for %s", d.Silence)
	case byExchange:
		all := d.Exchange
		if run {
			all += d.Change
		}
		return fmt.Sprintf("the command timed out after %s", all)
	}
	return s.text
}

// as returns peers that are given by a plain handler.
func as(handle func(net.Conn)) func(testing.TB) func(net.Conn) {
	return func(testing.TB) func(net.Conn) { return handle }
}

// sshd returns peers that are small SSH servers.
func sshd(make func() *server) func(testing.TB) func(net.Conn) {
	return func(t testing.TB) func(net.Conn) {
		s := make()
		s.key = newKey(t)
		return s.handle
	}
}

func say(text string) func(net.Conn) {
	return func(c net.Conn) {
		_, _ = io.WriteString(c, text)
		untilClosed(c)
	}
}

func hangUp(text string) func(net.Conn) { return func(c net.Conn) { _, _ = io.WriteString(c, text) } }

// muteAfter returns a healthy server that goes silent in its handshake.
func muteAfter(writes int32) func(testing.TB) func(net.Conn) {
	return func(t testing.TB) func(net.Conn) {
		return mutedAfter(writes, (&server{key: newKey(t), hang: true}).handle)
	}
}

// greeter returns a server that sends login banners while it checks the key.
func greeter(banners func(send func(string) error) (admit bool)) func(testing.TB) func(net.Conn) {
	return sshd(func() *server {
		return &server{command: inDash, config: func(c *ssh.ServerConfig) {
			var send func(string) error
			c.PreAuthConnCallback = func(conn ssh.ServerPreAuthConn) { send = conn.SendAuthBanner }
			c.PublicKeyCallback = func(ssh.ConnMetadata, ssh.PublicKey) (*ssh.Permissions, error) {
				if !banners(send) {
					return nil, errors.New("refused")
				}
				return nil, nil
			}
		}}
	})
}

// inDash runs a command for real.
func inDash(ch ssh.Channel, command string) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "dash", "-c", command)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = ch, ch, ch.Stderr()
	_ = cmd.Run()
	exit(ch, uint32(max(0, cmd.ProcessState.ExitCode())))
}

// noisily runs a command for real and prints noise on both streams before and
// after it.
func noisily(size int) func(ssh.Channel, string) {
	return func(ch ssh.Channel, command string) {
		noise := strings.Repeat("Welcome to acme\n% ", size/18+1)
		_, _ = io.WriteString(ch, noise)
		_, _ = io.WriteString(ch.Stderr(), noise)
		inDash(talkative{ch, noise}, command)
	}
}

// talkative prints noise instead of hanging up.
type talkative struct {
	ssh.Channel
	noise string
}

func (c talkative) SendRequest(name string, reply bool, payload []byte) (bool, error) {
	_, _ = io.WriteString(c.Channel, c.noise)
	_, _ = io.WriteString(c.Stderr(), c.noise)
	return c.Channel.SendRequest(name, reply, payload)
}

// printing returns a command that prints a text, with its mark, and ends.
func printing(text string, code uint32) func(ssh.Channel, string) {
	return func(ch ssh.Channel, _ string) {
		_, _ = io.WriteString(ch, strings.ReplaceAll(text, "MARK", markOf(ch)))
		exit(ch, code)
	}
}

// firstWords prints the beginning of an answer.
func firstWords(ch ssh.Channel) { _, _ = io.WriteString(ch, "\n"+markOf(ch)+" host 0\n\nhalf a li") }

// flooding returns a command that prints for ever.
func flooding(to func(ssh.Channel) io.Writer) func(ssh.Channel, string) {
	return func(ch ssh.Channel, _ string) {
		block := bytes.Repeat([]byte("acme"), 8192)
		for {
			if _, err := to(ch).Write(block); err != nil {
				return
			}
		}
	}
}

// forever writes a text again and again, until the client has gone.
func forever(text string) func(net.Conn) {
	return func(c net.Conn) {
		for {
			if _, err := io.WriteString(c, text); err != nil {
				return
			}
		}
	}
}

const version = "SSH-2.0-acme\r\n"

// strangers is the one table of peers that a fleet meets sooner or later.
func strangers() []stranger {
	var all []stranger
	all = append(all, beforeLogin()...)
	all = append(all, atLogin()...)
	all = append(all, inCommand()...)
	return append(all, alive()...)
}

// beforeLogin are peers that never come as far as a login.
func beforeLogin() []stranger {
	rows := []stranger{
		{name: "silent before its version", serve: as(untilClosed), by: byHandshake},
		{name: "silent before its version, until the deadline of silence", serve: as(untilClosed), by: bySilence, alone: true},
		{name: "half a version", serve: as(say("SSH-2.0-ac")), by: byHandshake},
		{name: "silent after its version", serve: muteAfter(1), by: byHandshake},
		{name: "silent after its version, until the deadline of silence", serve: muteAfter(1), by: bySilence, alone: true},
		{name: "silent after its key exchange init", serve: muteAfter(2), by: byHandshake},
		{name: "silent after its key exchange reply", serve: muteAfter(3), by: byHandshake},
		{name: "an old protocol", serve: as(say("SSH-1.5-acme\r\n")), by: byHandshake},
		// What sshd does to newcomers while too many logins are under way.
		{name: "hangs up at once", serve: as(hangUp("")), text: "the host closed the connection"},
		{name: "hangs up with a word", serve: as(hangUp("Exceeded MaxStartups\r\n")), text: "the host closed the connection"},
		{name: "hangs up after its version", serve: as(hangUp(version)), text: "the host closed the connection"},
		{name: "another protocol", serve: as(say("HTTP/1.1 400 Bad Request\r\n\r\n" + strings.Repeat("acme ", 100))), text: "overflow reading version string"},
		{name: "an endless line instead of a version", serve: as(forever(strings.Repeat("acme", 8192))), text: "overflow reading version string"},
		{name: "endless lines before its version", serve: as(forever(strings.Repeat("acme acme acme acme acme acme\r\n", 1024))), text: "overflow reading version string"},
		{name: "rubbish after its version", serve: as(say(version + strings.Repeat("\xff", 64))), text: "packet"},
	}
	for i := range rows {
		rows[i].code, rows[i].phase = "no-ssh-answer", Handshaking
	}
	return rows
}

// atLogin are peers that refuse every login.
func atLogin() []stranger {
	return []stranger{
		{name: "another host key", serve: sshd(func() *server { return &server{} }), pin: true, code: "wrong-host-key", phase: HostKey, text: "the host shows SHA256:"},
		{name: "silent in the login", serve: muteAfter(6), by: byHandshake, code: "no-ssh-answer", phase: Handshaking},
		{name: "refuses the key", serve: sshd(func() *server { return &server{refuse: true} }), code: "key-not-installed", phase: Authorising, text: "tried once, not again"},
		{name: "an endless login banner", by: byHandshake, code: "no-ssh-answer", phase: Handshaking,
			serve: greeter(func(send func(string) error) bool {
				for send(strings.Repeat("acme", 8192)) == nil {
					time.Sleep(10 * time.Millisecond) // it has as much time as the deadline, which in a fleet is long
				}
				return false
			})},
		// Not for ever: golang.org/x/crypto/ssh v0.58 leaves its reader behind when
		// more than 16 messages follow a refusal. Its socket is closed anyway.
		{name: "refuses the key and keeps talking", code: "key-not-installed", phase: Authorising, text: "tried once, not again",
			serve: greeter(func(send func(string) error) bool {
				for range 4 {
					_ = send(strings.Repeat("acme", 50_000)) // a client that has gone shows at the end
				}
				return false
			})},
	}
}

// inCommand are peers that let us in and then do not answer.
func inCommand() []stranger {
	rows := []stranger{
		{name: "silent after the login", by: bySilence,
			serve: sshd(func() *server { return &server{silent: true, channel: func(ssh.NewChannel) {}} })},
		{name: "opens no session, but lives", by: byExchange, serve: sshd(func() *server { return &server{channel: func(ssh.NewChannel) {}} })},
		{name: "silent in a command, but lives", by: byExchange, serve: sshd(func() *server { return &server{hang: true} })},
		{name: "silent in a command", by: bySilence, serve: sshd(func() *server { return &server{hang: true, silent: true} })},
		{name: "silent in its output, but lives", by: byExchange, serve: sshd(func() *server { return &server{hang: true, begin: firstWords} })},
		{name: "silent in its output", by: bySilence, serve: sshd(func() *server { return &server{hang: true, silent: true, begin: firstWords} })},
		{name: "half-open in a command", by: bySilence, serve: halfOpen},
		{name: "floods stdout", serve: sshd(func() *server { return &server{command: flooding(func(ch ssh.Channel) io.Writer { return ch })} }), text: "printed more than 4194304 bytes"},
		{name: "floods stderr", serve: sshd(func() *server {
			return &server{command: flooding(func(ch ssh.Channel) io.Writer { return ch.Stderr() })}
		}), text: "printed more than 4194304 bytes"},
		{name: "a login shell that prints too much", serve: sshd(func() *server { return &server{command: noisily(maxOutput)} }), text: "printed more than 4194304 bytes"},
		{name: "more sessions than allowed", serve: refusing("open failed"), text: "open failed"},
		{name: "an ugly refusal", serve: refusing("\x1b[2J\r\n" + strings.Repeat("acme\x07", 20_000)), text: "acme"},
		{name: "refuses the command", serve: sshd(func() *server { return &server{} }), text: "the host refused to run a command"},
		{name: "hangs up in a command", serve: hangingUp, text: "the host closed the connection"},
		{name: "rubbish on the wire", serve: garbling, text: "packet"},
		{name: "no exit status", serve: sshd(func() *server { return &server{command: func(ch ssh.Channel, _ string) { firstWords(ch) }} }), text: "without an exit status"},
		{name: "a login shell that ends at once", serve: sshd(func() *server { return &server{command: printing("", 0)} }), text: "did not start macfleet's script"},
		{name: "no login shell", serve: sshd(func() *server {
			return &server{command: printing("This account is currently not available.\n", 1)}
		}), text: `"This account is currently not available.\n"`},
		{name: "ends before the last mark", serve: sshd(func() *server { return &server{command: printing("\nMARK host 0\n", 91)} }), text: "the answer was truncated"},
		{name: "rubbish instead of frames", serve: sshd(func() *server {
			return &server{command: printing(strings.Repeat("MARK begin\nMARK end\x00\xff\n\nMARK host", 1000), 0)}
		}), text: "did not start macfleet's script"},
		{name: "dies by a signal", serve: sshd(func() *server { return &server{command: killed} }), text: "the answer was truncated"},
	}
	for i := range rows {
		rows[i].code, rows[i].phase = "connection-lost", Talking
	}
	return rows
}

// alive are peers that are strange and answer anyway.
func alive() []stranger {
	return []stranger{
		{name: "very slow", serve: func(t testing.TB) func(net.Conn) {
			r := newRelay()
			r.piece, r.pause = 64, 2*time.Millisecond
			return r.inFrontOf((&server{key: newKey(t), command: inDash}).handle)
		}},
		{name: "a long text before its version", serve: func(t testing.TB) func(net.Conn) {
			s := &server{key: newKey(t), command: inDash}
			return func(c net.Conn) {
				_, _ = io.WriteString(c, strings.Repeat("Welcome to acme\r\n", 1000))
				s.handle(c)
			}
		}},
		{name: "a login banner of 10 MB", serve: greeter(func(send func(string) error) bool {
			for range 50 {
				if send(strings.Repeat("acme", 50_000)) != nil {
					return false
				}
			}
			return true
		})},
		{name: "a login shell that prints a lot", serve: sshd(func() *server { return &server{command: noisily(1 << 20)} })},
	}
}

// refusing returns a server that opens no session and says why.
func refusing(why string) func(testing.TB) func(net.Conn) {
	return sshd(func() *server { return &server{channel: func(n ssh.NewChannel) { _ = n.Reject(ssh.Prohibited, why) }} })
}

// halfOpen vanishes once a command has started.
func halfOpen(t testing.TB) func(net.Conn) {
	r := newRelay()
	vanish := sync.OnceFunc(func() { close(r.gone) })
	return r.inFrontOf((&server{key: newKey(t), hang: true, begin: func(ssh.Channel) { vanish() }}).handle)
}

// hangingUp closes the connection in the middle of a command's output.
func hangingUp(t testing.TB) func(net.Conn) {
	return func(c net.Conn) {
		(&server{key: newKey(t), hang: true, begin: func(ch ssh.Channel) { firstWords(ch); _ = c.Close() }}).handle(c)
	}
}

// garbling sends rubbish instead of packets once a command has started.
func garbling(t testing.TB) func(net.Conn) {
	return func(c net.Conn) {
		g := &garbled{Conn: c}
		(&server{key: newKey(t), hang: true, begin: func(ch ssh.Channel) { g.on.Store(true); firstWords(ch) }}).handle(g)
	}
}

// killed ends a command by a signal.
func killed(ch ssh.Channel, _ string) {
	_, _ = io.WriteString(ch, "\n"+markOf(ch)+" host 0\n")
	_, _ = ch.SendRequest("exit-signal", false, ssh.Marshal(struct {
		Signal     string
		Core       bool
		Text, Lang string
	}{Signal: "KILL"}))
}
