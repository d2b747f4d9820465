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
)

// loginKey is the one key that is offered to a machine, and where it comes from.
type loginKey struct {
	signer ssh.Signer
	source string // "secret k8s://…", "~/.ssh/id_acme (IdentityFile)", `agent key "…"`
	other  string // how another is chosen
}

// fingerprint names the key in a message.
func (k loginKey) fingerprint() string { return ssh.FingerprintSHA256(k.signer.PublicKey()) }

// keyless says why there is no key to offer.
func (t Target) keyless(remedy, format string, args ...any) *Error {
	e := t.fails(codeNoKey, Authorising, fmt.Errorf(format, args...), remedy)
	e.final = true
	return e
}

// keyFor chooses the key for a host: its own IdentityFile, the configuration's key, an
// IdentityFile of all machines, the agent's only key. What a person wrote for this host
// goes before what the team wrote for the fleet, and that before what the person uses
// everywhere. A jump host is the person's own matter: there the fleet's key comes last.
func (c *Client) keyFor(t Target, s sshconfig.Settings, jump bool) (loginKey, *Error) {
	fleets := loginKey{signer: c.opts.Key, source: c.opts.KeySource, other: "give this machine an IdentityFile in ~/.ssh/config"}
	if k, err := c.firstKey(t, s, s.Own); k.signer != nil || err != nil {
		return k, err
	}
	if len(s.Own) > 0 { // somebody named it for this machine
		return loginKey{}, t.keyless("mend its name in the ssh configuration, or put the key there", "IdentityFile %s does not exist", s.Own[0].Shown)
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

// firstKey returns the key of the first file that is there, and none where all are missing.
func (c *Client) firstKey(t Target, s sshconfig.Settings, files []sshconfig.Identity) (loginKey, *Error) {
	for _, f := range files {
		k, err := once(&c.files, f.Path, func() (fileKey, error) { return readKey(f.Path) })
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return loginKey{}, t.keyless("name a private key, or a public one (.pub) whose other half the agent holds", "IdentityFile %s: %w", f.Shown, err)
		}
		found := loginKey{signer: k.signer, source: f.Shown + " (IdentityFile)", other: "name another IdentityFile in ~/.ssh/config"}
		if k.signer == nil {
			if found.signer, err = c.held(s, k.public); err != nil {
				return loginKey{}, t.keyless("unlock it into the agent: ssh-add "+strings.TrimSuffix(f.Shown, ".pub"), "IdentityFile %s %s, and %w", f.Shown, k.half, err)
			}
			found.source = f.Shown + " (IdentityFile, held by the agent)"
		}
		return found, nil
	}
	return loginKey{}, nil
}

// onlyKey returns the agent's key where it holds exactly one: which of several
// is meant nobody can tell, and a wrong one counts as a failed login.
func (c *Client) onlyKey(t Target, s sshconfig.Settings) (loginKey, *Error) {
	const none = "write private_key in the ssh block, or IdentityFile for this machine in ~/.ssh/config"
	const choose = "choose one with IdentityFile in ~/.ssh/config, naming its .pub file"
	all, err := c.agentKeys(s)
	switch {
	case err != nil:
		return loginKey{}, t.keyless(none, "there is no key to offer, and %w", err)
	case len(all) == 0:
		return loginKey{}, t.keyless("ssh-add FILE; or "+none, "there is no key to offer: the ssh agent holds none")
	case len(all) > 1:
		var names []string
		for _, k := range all {
			names = append(names, fmt.Sprintf("%s %q", ssh.FingerprintSHA256(k.public), k.comment))
		}
		return loginKey{}, t.keyless(choose, "the ssh agent holds %d keys and one is offered: %s", len(all), strings.Join(names, ", "))
	}
	return loginKey{signer: all[0], source: fmt.Sprintf("agent key %q", all[0].comment), other: choose}, nil
}

// once returns what do returned the first time for a key.
func once[V any](all *sync.Map, key string, do func() (V, error)) (V, error) {
	found, _ := all.LoadOrStore(key, sync.OnceValues(do))
	return found.(func() (V, error))()
}

// fileKey is what an IdentityFile holds.
type fileKey struct {
	signer ssh.Signer    // nil: the private half is not to be had here
	public ssh.PublicKey // set when signer is nil
	half   string        // why signer is nil
}

// readKey reads an IdentityFile. The error wraps fs.ErrNotExist when neither it nor
// its public half is there, and never holds a part of a key.
func readKey(path string) (fileKey, error) {
	var beside ssh.PublicKey
	if text, err := regular(path + ".pub"); err == nil {
		beside, _ = parseKey(string(text)) // one that cannot be read is as good as none
	}
	text, err := regular(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && beside != nil:
		return fileKey{public: beside, half: "has its public half alone"}, nil
	case err != nil:
		return fileKey{}, err
	}
	signer, err := ssh.ParsePrivateKey(text)
	if err == nil {
		return fileKey{signer: signer}, nil
	}
	if locked := (*ssh.PassphraseMissingError)(nil); errors.As(err, &locked) {
		if beside == nil {
			beside = locked.PublicKey // OpenSSH's own form names it
		}
		if beside == nil {
			return fileKey{}, errors.New("it is locked with a passphrase and its public half is not beside it")
		}
		return fileKey{public: beside, half: "is locked with a passphrase"}, nil
	}
	if public, err := parseKey(string(text)); err == nil {
		return fileKey{public: public, half: "is a public key"}, nil
	}
	return fileKey{}, errors.New("it is neither a private nor a public key")
}

// regular reads a regular file. A pipe without a writer would keep its reader waiting for ever.
func regular(path string) ([]byte, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "read", Path: path, Err: errors.New("not a regular file")}
	}
	return os.ReadFile(path)
}

// agentKeys lists the keys of the agent that a machine's settings name. Certificates are
// not counted: their keys are listed too.
func (c *Client) agentKeys(s sshconfig.Settings) ([]*agentKey, error) {
	socket := cmp.Or(s.Agent, c.opts.Agent)
	if socket == "" || socket == "none" {
		return nil, errors.New("no ssh agent runs (SSH_AUTH_SOCK)")
	}
	return once(&c.agents, socket, func() (out []*agentKey, err error) {
		err = withAgent(socket, c.opts.Deadlines.Dial, func(a agent.ExtendedAgent) error {
			listed, err := a.List()
			for _, k := range listed {
				public, perr := ssh.ParsePublicKey(k.Blob) // a kind that is not known could not be offered either
				if perr == nil && !strings.Contains(public.Type(), "-cert-") {
					out = append(out, &agentKey{socket: socket, public: public, comment: k.Comment, patience: c.opts.Deadlines.Handshake})
				}
			}
			return err
		})
		return out, err
	})
}

// held returns a signer for a key that the agent holds.
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

// agentKey is a key that an ssh agent holds, and lets it sign.
type agentKey struct {
	socket   string
	public   ssh.PublicKey
	comment  string
	patience time.Duration
}

// signError says that an agent did not sign with a key that it holds.
type signError struct{ error }

// PublicKey returns the public half.
func (k *agentKey) PublicKey() ssh.PublicKey { return k.public }

// Sign signs with the usual algorithm of the key's type.
func (k *agentKey) Sign(random io.Reader, data []byte) (*ssh.Signature, error) {
	return k.SignWithAlgorithm(random, data, "")
}

// SignWithAlgorithm signs; of RSA keys the algorithm names the hash.
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

// NewPrivateKey makes an Ed25519 key in OpenSSH's form, without a passphrase.
func NewPrivateKey(comment string) (secret.Value, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return secret.Value{}, fmt.Errorf("make an SSH key: %w", err)
	}
	block, err := ssh.MarshalPrivateKey(private, comment)
	if err != nil {
		return secret.Value{}, fmt.Errorf("make an SSH key: %w", err)
	}
	return secret.New(string(pem.EncodeToMemory(block)))
}

// PublicKey returns the public half of a private key, "type base64", and its
// SHA256 fingerprint. The error never holds a part of the key.
func PublicKey(pem string) (line, fingerprint string, err error) {
	key, err := ParsePrivateKey(pem)
	if err != nil {
		return "", "", err
	}
	return keyText(key.PublicKey()), ssh.FingerprintSHA256(key.PublicKey()), nil
}
