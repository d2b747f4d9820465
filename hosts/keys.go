package hosts

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"

	"github.com/macfleet/macfleet/hosts/sshconfig"
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

// keyForHost chooses the key for a host: its own IdentityFile, the configuration's
// key, an IdentityFile of all machines, the agent's only key. What a person wrote
// for this host goes before what the team wrote for the fleet, and that before
// what the person uses everywhere.
func (c *Client) keyForHost(s sshconfig.Settings) (loginKey, error) {
	k, ok, err := c.firstKey(s.Own, s, true)
	if ok || err != nil {
		return k, err
	}
	if c.opts.Key != nil {
		return c.configured(), nil
	}
	if k, ok, err := c.firstKey(s.Shared, s, false); ok || err != nil {
		return k, err
	}
	return c.onlyKey(c.agent(s))
}

// keyForJump chooses the key for a jump host, which is the person's own matter: the
// fleet's key comes last.
func (c *Client) keyForJump(s sshconfig.Settings) (loginKey, error) {
	for _, of := range []struct {
		files    []sshconfig.Identity
		insisted bool
	}{{s.Own, true}, {s.Shared, false}} {
		if k, ok, err := c.firstKey(of.files, s, of.insisted); ok || err != nil {
			return k, err
		}
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
		k, err := c.keys.file(f.Path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return loginKey{}, false, &keyError{fmt.Sprintf("IdentityFile %s: %v", f.Shown, err), "name a private key, or a public one (.pub) whose other half the agent holds"}
		}
		found := loginKey{signer: k.signer, source: f.Shown + " (IdentityFile)", other: "name another IdentityFile in ~/.ssh/config"}
		if k.signer == nil {
			if found.signer, err = c.keys.held(c.agent(s), k.public, c.opts.Deadlines); err != nil {
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
	all, err := c.keys.agent(socket, c.opts.Deadlines)
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
	return loginKey{signer: all[0].signer(socket, c.opts.Deadlines), source: fmt.Sprintf("agent key %q", all[0].comment),
		other: "choose one with IdentityFile in ~/.ssh/config, naming its .pub file"}, nil
}

// keyring reads each file and asks each agent once.
type keyring struct {
	mu     sync.Mutex
	files  map[string]func() (fileKey, error)
	agents map[string]func() ([]agentKey, error)
}

// fileKey is what an IdentityFile holds.
type fileKey struct {
	signer ssh.Signer    // nil: the private half is not to be had here
	public ssh.PublicKey // set when signer is nil
	half   string        // why signer is nil
}

// file reads an IdentityFile. The error wraps fs.ErrNotExist when neither it nor
// its public half is there, and never holds a part of a key.
func (r *keyring) file(path string) (fileKey, error) {
	r.mu.Lock()
	if r.files == nil {
		r.files = make(map[string]func() (fileKey, error))
	}
	read := r.files[path]
	if read == nil {
		read = sync.OnceValues(func() (fileKey, error) { return readKey(path) })
		r.files[path] = read
	}
	r.mu.Unlock()
	return read()
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
