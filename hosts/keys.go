package hosts

import (
	"bytes"
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

// keyError says why a machine has no key to offer.
type keyError struct {
	why    string
	remedy string
}

func (e *keyError) Error() string { return e.why }

// keyFor chooses the key for a host: its own IdentityFile, the configuration's key, an
// IdentityFile of all machines, the agent's only key. What a person wrote for this host
// goes before what the team wrote for the fleet, and that before what the person uses
// everywhere. A jump host is the person's own matter: there the fleet's key comes last.
func (c *Client) keyFor(s sshconfig.Settings, jump bool) (loginKey, error) {
	if k, ok, err := c.firstKey(s.Own, s, true); ok || err != nil {
		return k, err
	}
	if c.opts.Key != nil && !jump {
		return c.configured(), nil
	}
	if k, ok, err := c.firstKey(s.Shared, s, false); ok || err != nil {
		return k, err
	}
	k, err := c.onlyKey(c.agent(s))
	if err != nil && c.opts.Key != nil {
		return c.configured(), nil
	}
	return k, err
}

func (c *Client) configured() loginKey {
	return loginKey{signer: c.opts.Key, source: c.opts.KeySource, other: "give this machine an IdentityFile in ~/.ssh/config"}
}

func (c *Client) agent(s sshconfig.Settings) string {
	switch s.Agent {
	case "":
		return c.opts.Agent
	case "none":
		return ""
	}
	return s.Agent
}

// firstKey returns the key of the first file that is there. Files that are all
// missing are an error where somebody named them for this machine, and otherwise
// as good as not named, as for ssh.
func (c *Client) firstKey(files []sshconfig.Identity, s sshconfig.Settings, insist bool) (loginKey, bool, error) {
	for _, f := range files {
		k, err := c.file(f.Path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return loginKey{}, false, &keyError{fmt.Sprintf("IdentityFile %s: %v", f.Shown, err), "name a private key, or a public one (.pub) whose other half the agent holds"}
		}
		found := loginKey{signer: k.signer, source: f.Shown + " (IdentityFile)", other: "name another IdentityFile in ~/.ssh/config"}
		if k.signer == nil {
			if found.signer, err = c.held(c.agent(s), k.public); err != nil {
				return loginKey{}, false, &keyError{fmt.Sprintf("IdentityFile %s %s, and %v", f.Shown, k.half, err),
					"unlock it into the agent: ssh-add " + strings.TrimSuffix(f.Shown, ".pub")}
			}
			found.source = f.Shown + " (IdentityFile, held by the agent)"
		}
		return found, true, nil
	}
	if insist && len(files) > 0 {
		return loginKey{}, false, &keyError{fmt.Sprintf("IdentityFile %s does not exist", files[0].Shown), "mend its name in the ssh configuration, or put the key there"}
	}
	return loginKey{}, false, nil
}

// onlyKey returns the agent's key where it holds exactly one: which of several
// is meant nobody can tell, and a wrong one counts as a failed login.
func (c *Client) onlyKey(socket string) (loginKey, error) {
	const none = "write private_key in the ssh block, or IdentityFile for this machine in ~/.ssh/config"
	if socket == "" {
		return loginKey{}, &keyError{"there is no key to offer, and no ssh agent runs (SSH_AUTH_SOCK)", none}
	}
	all, err := c.agentKeys(socket)
	switch {
	case err != nil:
		return loginKey{}, &keyError{fmt.Sprintf("there is no key to offer: %v", err), none}
	case len(all) == 0:
		return loginKey{}, &keyError{"there is no key to offer: the ssh agent holds none", "ssh-add FILE; or " + none}
	case len(all) > 1:
		var names []string
		for _, k := range all {
			names = append(names, fmt.Sprintf("%s %q", ssh.FingerprintSHA256(k.public), k.comment))
		}
		return loginKey{}, &keyError{fmt.Sprintf("the ssh agent holds %d keys and one is offered: %s", len(all), strings.Join(names, ", ")),
			"choose one with IdentityFile in ~/.ssh/config, naming its .pub file"}
	}
	return loginKey{signer: c.signer(socket, all[0]), source: fmt.Sprintf("agent key %q", all[0].comment),
		other: "choose one with IdentityFile in ~/.ssh/config, naming its .pub file"}, nil
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

// file reads an IdentityFile. The error wraps fs.ErrNotExist when neither it nor
// its public half is there, and never holds a part of a key.
func (c *Client) file(path string) (fileKey, error) {
	return once(&c.files, path, func() (fileKey, error) { return readKey(path) })
}

func readKey(path string) (fileKey, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		public, perr := readPublic(path + ".pub")
		if perr != nil {
			return fileKey{}, err
		}
		return fileKey{public: public, half: "has its public half alone"}, nil
	}
	if err != nil {
		return fileKey{}, err
	}
	signer, err := ssh.ParsePrivateKey(text)
	var locked *ssh.PassphraseMissingError
	switch {
	case err == nil:
		return fileKey{signer: signer}, nil
	case errors.As(err, &locked):
		public, perr := readPublic(path + ".pub")
		if perr != nil {
			public = locked.PublicKey // OpenSSH's own form names it
		}
		if public == nil {
			return fileKey{}, errors.New("it is locked with a passphrase and its public half is not beside it")
		}
		return fileKey{public: public, half: "is locked with a passphrase"}, nil
	}
	if public, err := parsePublic(text); err == nil {
		return fileKey{public: public, half: "is a public key"}, nil
	}
	return fileKey{}, errors.New("it is neither a private nor a public key")
}

func readPublic(path string) (ssh.PublicKey, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return parsePublic(text)
}

func parsePublic(text []byte) (ssh.PublicKey, error) {
	public, _, _, _, err := ssh.ParseAuthorizedKey(text)
	return public, err
}

// agentKey is a key that an ssh agent holds.
type agentKey struct {
	public  ssh.PublicKey
	comment string
}

func (c *Client) signer(socket string, k agentKey) ssh.Signer {
	return &agentSigner{socket: socket, public: k.public, patience: c.opts.Deadlines.Handshake}
}

// agent lists the keys of an agent. Certificates are not counted: their keys are
// listed too.
func (c *Client) agentKeys(socket string) ([]agentKey, error) {
	return once(&c.agents, socket, func() ([]agentKey, error) { return listKeys(socket, c.opts.Deadlines.Dial) })
}

// held returns a signer for a key that the agent holds.
func (c *Client) held(socket string, public ssh.PublicKey) (ssh.Signer, error) {
	if socket == "" {
		return nil, errors.New("no ssh agent runs (SSH_AUTH_SOCK)")
	}
	all, err := c.agentKeys(socket)
	if err != nil {
		return nil, err
	}
	for _, k := range all {
		if bytes.Equal(k.public.Marshal(), public.Marshal()) {
			return c.signer(socket, k), nil
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
