package hosts

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

// agentKey is a key that an ssh agent holds.
type agentKey struct {
	public  ssh.PublicKey
	comment string
}

func (k agentKey) signer(socket string, d Deadlines) ssh.Signer {
	return &agentSigner{socket: socket, public: k.public, patience: d.Handshake}
}

// agent lists the keys of an agent. Certificates are not counted: their keys are
// listed too.
func (r *keyring) agent(socket string, d Deadlines) ([]agentKey, error) {
	r.mu.Lock()
	if r.agents == nil {
		r.agents = make(map[string]func() ([]agentKey, error))
	}
	list := r.agents[socket]
	if list == nil {
		list = sync.OnceValues(func() ([]agentKey, error) { return listKeys(socket, d.Dial) })
		r.agents[socket] = list
	}
	r.mu.Unlock()
	return list()
}

// held returns a signer for a key that the agent holds.
func (r *keyring) held(socket string, public ssh.PublicKey, d Deadlines) (ssh.Signer, error) {
	if socket == "" {
		return nil, errors.New("no ssh agent runs (SSH_AUTH_SOCK)")
	}
	all, err := r.agent(socket, d)
	if err != nil {
		return nil, err
	}
	for _, k := range all {
		if bytes.Equal(k.public.Marshal(), public.Marshal()) {
			return k.signer(socket, d), nil
		}
	}
	return nil, fmt.Errorf("the ssh agent does not hold %s", ssh.FingerprintSHA256(public))
}

func listKeys(socket string, patience time.Duration) ([]agentKey, error) {
	var listed []*agent.Key
	err := withAgent(socket, patience, func(a agent.ExtendedAgent) (err error) {
		listed, err = a.List()
		return err
	})
	if err != nil {
		return nil, err
	}
	var out []agentKey
	for _, k := range listed {
		public, err := ssh.ParsePublicKey(k.Blob)
		if err != nil || strings.Contains(public.Type(), "-cert-") {
			continue // a kind that could not be offered either
		}
		out = append(out, agentKey{public: public, comment: k.Comment})
	}
	return out, nil
}

// withAgent speaks to an agent on a connection of its own, for a limited time:
// it may wait for a person's finger.
func withAgent(socket string, patience time.Duration, do func(agent.ExtendedAgent) error) error {
	conn, err := net.DialTimeout("unix", socket, patience)
	if err == nil {
		defer conn.Close()
		if err = conn.SetDeadline(time.Now().Add(patience)); err == nil {
			err = do(agent.NewClient(conn))
		}
	}
	if err != nil {
		return fmt.Errorf("the ssh agent at %s does not do it: %w", socket, err)
	}
	return nil
}

// agentSigner lets an agent sign.
type agentSigner struct {
	socket   string
	public   ssh.PublicKey
	patience time.Duration
}

// signError says that an agent did not sign with a key that it holds.
type signError struct{ err error }

func (e *signError) Error() string { return e.err.Error() }
func (e *signError) Unwrap() error { return e.err }

// PublicKey returns the public half.
func (s *agentSigner) PublicKey() ssh.PublicKey { return s.public }

// Sign signs with the usual algorithm of the key's type.
func (s *agentSigner) Sign(random io.Reader, data []byte) (*ssh.Signature, error) {
	return s.SignWithAlgorithm(random, data, "")
}

// SignWithAlgorithm signs; of RSA keys the algorithm names the hash.
func (s *agentSigner) SignWithAlgorithm(_ io.Reader, data []byte, algorithm string) (*ssh.Signature, error) {
	var flags agent.SignatureFlags
	switch algorithm {
	case ssh.KeyAlgoRSASHA256:
		flags = agent.SignatureFlagRsaSha256
	case ssh.KeyAlgoRSASHA512:
		flags = agent.SignatureFlagRsaSha512
	}
	var signature *ssh.Signature
	err := withAgent(s.socket, s.patience, func(a agent.ExtendedAgent) (err error) {
		signature, err = a.SignWithFlags(s.public, data, flags)
		return err
	})
	if err != nil {
		return nil, &signError{err}
	}
	return signature, nil
}
