package hosts

import (
	"bytes"
	"cmp"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/macfleet/macfleet/hosts/sshconfig"
	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/plan"
)

// loginKey is the key offered to a machine, and its source.
type loginKey struct {
	signer   ssh.Signer
	previous ssh.Signer // offered after signer; nil: none
	source   string     // "secret k8s://…", "~/.ssh/id_acme (IdentityFile)", `agent key "…"`
	other    string     // how to choose another key
}

// fingerprint identifies the key in messages.
func (k loginKey) fingerprint() string { return ssh.FingerprintSHA256(k.signer.PublicKey()) }

// keyless returns the error that there is no key to offer.
func (t Target) keyless(remedy, format string, args ...any) *Error {
	e := t.fails(codeNoKey, Authorising, fmt.Errorf(format, args...), remedy)
	e.final = true
	return e
}

// keyFor chooses the key for a host, in this order: the host's own IdentityFile, the
// configuration's key, an IdentityFile for all machines, the agent's only key. For a jump host,
// the configuration's key comes last.
func (c *Client) keyFor(t Target, s sshconfig.Settings, jump bool) (loginKey, *Error) {
	fleets := loginKey{signer: c.opts.Key, previous: c.opts.Previous, source: c.opts.KeySource, other: "set an IdentityFile for this machine in ~/.ssh/config"}
	if k, err := c.firstKey(t, s, s.Own); k.signer != nil || err != nil {
		return k, err
	}
	if len(s.Own) > 0 { // set for this machine
		return loginKey{}, t.keyless("correct the path in the ssh configuration, or create the key", "IdentityFile %s does not exist", s.Own[0].Shown)
	}
	if fleets.signer != nil && !jump {
		return fleets, nil
	}
	if k, err := c.firstKey(t, s, s.Shared); k.signer != nil || err != nil {
		return k, err
	}
	k, err := c.onlyKey(t, s)
	if err != nil && fleets.signer != nil {
		return fleets, nil
	}
	return k, err
}

// firstKey returns the key of the first existing file, or none.
func (c *Client) firstKey(t Target, s sshconfig.Settings, files []sshconfig.Identity) (loginKey, *Error) {
	for _, f := range files {
		k, err := once(&c.files, f.Path, func() (fileKey, error) { return readKey(f.Path) })
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return loginKey{}, t.keyless("use a private key, or a .pub file whose private key is in the ssh agent", "IdentityFile %s: %w", f.Shown, err)
		}
		found := loginKey{signer: k.signer, source: f.Shown + " (IdentityFile)", other: "name another IdentityFile in ~/.ssh/config"}
		if k.signer == nil {
			if found.signer, err = c.held(s, k.public); err != nil {
				return loginKey{}, t.keyless("add it to the ssh agent: ssh-add "+strings.TrimSuffix(f.Shown, ".pub"), "IdentityFile %s %s, and %w", f.Shown, k.half, err)
			}
			found.source = f.Shown + " (IdentityFile, held by the agent)"
		}
		return found, nil
	}
	return loginKey{}, nil
}

// onlyKey returns the agent's key if it holds exactly one. Trying several would count as failed
// logins.
func (c *Client) onlyKey(t Target, s sshconfig.Settings) (loginKey, *Error) {
	const none = "set private_key in the ssh block, or IdentityFile for this machine in ~/.ssh/config"
	const choose = "select one in ~/.ssh/config: IdentityFile with its .pub file"
	all, err := c.agentKeys(s)
	switch {
	case err != nil:
		return loginKey{}, t.keyless(none, "no SSH key to offer: %w", err)
	case len(all) == 0:
		return loginKey{}, t.keyless("ssh-add FILE; or "+none, "no SSH key to offer: the ssh agent is empty")
	case len(all) > 1:
		var names []string
		for _, k := range all {
			names = append(names, fmt.Sprintf("%s %q", ssh.FingerprintSHA256(k.public), k.comment))
		}
		return loginKey{}, t.keyless(choose, "the ssh agent holds %d keys, and macfleet offers only one: %s", len(all), strings.Join(names, ", "))
	}
	return loginKey{signer: all[0], source: fmt.Sprintf("agent key %q", all[0].comment), other: choose}, nil
}

// once calls do once per key and returns its result.
func once[V any](all *sync.Map, key string, do func() (V, error)) (V, error) {
	found, _ := all.LoadOrStore(key, sync.OnceValues(do))
	return found.(func() (V, error))()
}

// fileKey is the content of an IdentityFile.
type fileKey struct {
	signer ssh.Signer    // nil: no usable private key
	public ssh.PublicKey // set when signer is nil
	half   string        // why signer is nil
}

// readKey reads an IdentityFile. The error wraps fs.ErrNotExist if neither it nor its .pub file
// exists, and never contains a part of a key.
func readKey(path string) (fileKey, error) {
	var beside ssh.PublicKey
	if text, err := regular(path + ".pub"); err == nil {
		beside, _ = parseKey(string(text)) // nil if malformed
	}
	text, err := regular(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && beside != nil:
		return fileKey{public: beside, half: "has only a public key"}, nil
	case err != nil:
		return fileKey{}, err
	}
	signer, err := ssh.ParsePrivateKey(text)
	if err == nil {
		return fileKey{signer: signer}, nil
	}
	if locked := (*ssh.PassphraseMissingError)(nil); errors.As(err, &locked) {
		if beside == nil {
			beside = locked.PublicKey // OpenSSH's format includes it
		}
		if beside == nil {
			return fileKey{}, errors.New("it has a passphrase and no .pub file")
		}
		return fileKey{public: beside, half: "has a passphrase"}, nil
	}
	if public, err := parseKey(string(text)); err == nil {
		return fileKey{public: public, half: "is a public key"}, nil
	}
	return fileKey{}, errors.New("neither a private nor a public key")
}

// regular reads a regular file. Reading a pipe without a writer would block forever.
func regular(path string) ([]byte, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "read", Path: path, Err: errors.New("not a regular file")}
	}
	return os.ReadFile(path)
}

// agentKeys lists the keys of a machine's ssh agent, without certificates.
func (c *Client) agentKeys(s sshconfig.Settings) ([]*agentKey, error) {
	socket := cmp.Or(s.Agent, c.opts.Agent)
	if socket == "" || socket == "none" {
		return nil, errors.New("no ssh agent is running (SSH_AUTH_SOCK)")
	}
	return once(&c.agents, socket, func() (out []*agentKey, err error) {
		err = withAgent(socket, c.opts.Deadlines.Dial, func(a agent.ExtendedAgent) error {
			listed, err := a.List()
			for _, k := range listed {
				public, perr := ssh.ParsePublicKey(k.Blob) // unknown key types cannot be offered either
				if perr == nil && !strings.Contains(public.Type(), "-cert-") {
					out = append(out, &agentKey{socket: socket, public: public, comment: k.Comment, patience: c.opts.Deadlines.Handshake})
				}
			}
			return err
		})
		return out, err
	})
}

// held returns a signer for a key in the agent.
func (c *Client) held(s sshconfig.Settings, public ssh.PublicKey) (ssh.Signer, error) {
	all, err := c.agentKeys(s)
	if err != nil {
		return nil, err
	}
	for _, k := range all {
		if bytes.Equal(k.public.Marshal(), public.Marshal()) {
			return k, nil
		}
	}
	return nil, fmt.Errorf("the ssh agent does not hold %s", ssh.FingerprintSHA256(public))
}

// withAgent opens a connection to an agent for a limited time: it may wait for a touch.
func withAgent(socket string, patience time.Duration, do func(agent.ExtendedAgent) error) error {
	conn, err := net.DialTimeout("unix", socket, patience)
	if err == nil {
		defer conn.Close()
		if err = conn.SetDeadline(time.Now().Add(patience)); err == nil {
			err = do(agent.NewClient(conn))
		}
	}
	if err != nil {
		return fmt.Errorf("the ssh agent at %s failed: %w", socket, err)
	}
	return nil
}

// agentKey is a key in an ssh agent.
type agentKey struct {
	socket   string
	public   ssh.PublicKey
	comment  string
	patience time.Duration
}

// signError reports that an agent did not sign with one of its keys.
type signError struct{ error }

// PublicKey returns the public key.
func (k *agentKey) PublicKey() ssh.PublicKey { return k.public }

// Sign signs with the default algorithm of the key's type.
func (k *agentKey) Sign(random io.Reader, data []byte) (*ssh.Signature, error) {
	return k.SignWithAlgorithm(random, data, "")
}

// SignWithAlgorithm signs; for RSA keys the algorithm selects the hash.
func (k *agentKey) SignWithAlgorithm(_ io.Reader, data []byte, algorithm string) (signature *ssh.Signature, err error) {
	flags := map[string]agent.SignatureFlags{ssh.KeyAlgoRSASHA256: agent.SignatureFlagRsaSha256, ssh.KeyAlgoRSASHA512: agent.SignatureFlagRsaSha512}
	err = withAgent(k.socket, k.patience, func(a agent.ExtendedAgent) (err error) {
		signature, err = a.SignWithFlags(k.public, data, flags[algorithm])
		return err
	})
	if err != nil {
		return nil, signError{err}
	}
	return signature, nil
}

// NewPrivateKey generates an Ed25519 key in OpenSSH's format without a passphrase.
func NewPrivateKey(comment string) (secret.Value, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return secret.Value{}, fmt.Errorf("generate an SSH key: %w", err)
	}
	block, err := ssh.MarshalPrivateKey(private, comment)
	if err != nil {
		return secret.Value{}, fmt.Errorf("generate an SSH key: %w", err)
	}
	return secret.New(string(pem.EncodeToMemory(block)))
}

// PublicKey returns the public key of a private key, "type base64", and its SHA256 fingerprint.
// The error never contains a part of the key.
func PublicKey(pem string) (line, fingerprint string, err error) {
	key, err := ParsePrivateKey(pem)
	if err != nil {
		return "", "", err
	}
	return keyText(key.PublicKey()), ssh.FingerprintSHA256(key.PublicKey()), nil
}

// FleetKey returns the public half of a key.
func FleetKey(key ssh.Signer) plan.FleetKey {
	return plan.FleetKey{Public: keyText(key.PublicKey()), Fingerprint: ssh.FingerprintSHA256(key.PublicKey())}
}
