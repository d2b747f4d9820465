package hosts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/plan"
)

var (
	codeNewKeyRefused = plan.NewCode("new-key-refused", plan.Critical, "the host lists the fleet's new SSH key and still refuses it",
		"check the login user's ~/.ssh on the host: only that user may write to it, and sshd_config must read authorized_keys")
	codePreviousKeyNeeded = plan.NewCode("previous-key-needed", plan.Critical, "the host refused the new SSH key after the previous one was removed, so the previous one was restored",
		"check sshd_config and ~/.ssh on the host, then apply again")
)

// offer says which of the fleet's keys a login offers.
type offer int

const (
	anyKey      offer = iota // the configuration's key, then the previous one
	currentKey               // only the configuration's
	previousKey              // only the previous one
)

// signers returns the keys that a login offers, the first one first. used receives the key that signed last: a client
// signs only for a key that the server accepts, so after a login this is the accepted one.
func (k loginKey) signers(o offer, used *ssh.PublicKey) []ssh.Signer {
	var out []ssh.Signer
	if o != previousKey || k.previous == nil {
		out = append(out, noting{k.signer, used})
	}
	if o != currentKey && k.previous != nil {
		out = append(out, noting{k.previous, used})
	}
	return out
}

// offered names what a login offers, for messages.
func (k loginKey) offered(o offer) string {
	if o == previousKey && k.previous != nil {
		return ssh.FingerprintSHA256(k.previous.PublicKey()) + " (previous_private_key)"
	}
	text := fmt.Sprintf("%s (%s)", k.fingerprint(), k.source)
	if o == anyKey && k.previous != nil {
		text += " and the previous one " + ssh.FingerprintSHA256(k.previous.PublicKey())
	}
	return text
}

// noting is a signer that notes its key when it signs.
type noting struct {
	ssh.Signer
	used *ssh.PublicKey
}

// Sign signs with the default algorithm of the key's type.
func (n noting) Sign(random io.Reader, data []byte) (*ssh.Signature, error) {
	*n.used = n.PublicKey()
	return n.Signer.Sign(random, data)
}

// SignWithAlgorithm signs; without it, RSA keys would be limited to SHA-1, which sshd refuses.
func (n noting) SignWithAlgorithm(random io.Reader, data []byte, algorithm string) (*ssh.Signature, error) {
	*n.used = n.PublicKey()
	if all, is := n.Signer.(ssh.AlgorithmSigner); is {
		return all.SignWithAlgorithm(random, data, algorithm)
	}
	return n.Signer.Sign(random, data)
}

// keysProbe is the probe for the fleet's keys in the files that sshd reads.
const keysProbe = "host.keys"

// rotating returns the probes that only a rotation of the key needs.
func (c *Client) rotating() []question {
	if c.opts.Key == nil || c.opts.Previous == nil {
		return nil
	}
	return []question{{id: keysProbe, Command: own("keys-look", plan.Login, keyText(c.opts.Key.PublicKey()), keyText(c.opts.Previous.PublicKey()))}}
}

// enterKeys notes which key the host accepted, and which of the fleet's it lists.
func (c *Conn) enterKeys(seen *plan.HostSeen) {
	if c.used != nil {
		seen.LoginKey = ssh.FingerprintSHA256(c.used)
	}
	if _, asked := seen.Facts[keysProbe]; !asked {
		return
	}
	o := c.client.opts
	prints := map[string]string{"current": ssh.FingerprintSHA256(o.Key.PublicKey()), "previous": ssh.FingerprintSHA256(o.Previous.PublicKey())}
	seen.Lists = fromText(seen.Facts[keysProbe], func(text string) ([]string, error) {
		out := []string{}
		for line := range strings.Lines(text) {
			print, known := prints[strings.TrimSuffix(line, "\n")]
			if !known {
				return nil, fmt.Errorf("unexpected line %q", line)
			}
			out = append(out, print)
		}
		return out, nil
	})
	delete(seen.Facts, keysProbe)
}

// loginWith opens another connection to the host that offers only the configuration's key.
func (c *Conn) loginWith(ctx context.Context, o offer) (*Conn, error) {
	t := c.same()
	t.offer = o
	return c.client.along(ctx, t, c.via)
}

// AuthorizeKey adds the configuration's public key to the login user's authorized keys, and verifies
// it by a login that offers no other key. The connection is replaced by that login. The host keeps the
// previous key.
func (c *Conn) AuthorizeKey(ctx context.Context, comment string) error {
	if c.client.opts.Key == nil {
		return errors.New("the configuration has no private_key")
	}
	public := keyText(c.client.opts.Key.PublicKey())
	if _, err := c.Run(ctx, own("key-add", plan.Login, public, oneWord(comment)), secret.Value{}); err != nil {
		return err
	}
	fresh, err := c.loginWith(ctx, currentKey)
	if e := (*Error)(nil); errors.As(err, &e) && e.Code == codeKeyNotInstalled {
		return c.target.fails(codeNewKeyRefused, Authorising, fmt.Errorf("the host lists the key %s and refuses it", ssh.FingerprintSHA256(c.client.opts.Key.PublicKey())))
	}
	if err != nil {
		return err
	}
	c.client.turns.prefer(ctx, c.target.id(), anyKey)
	c.become(fresh)
	return nil
}

// RetireKey removes the previous public key from the login user's authorized keys. It logs in with only
// the configuration's key first, removes over that connection, and logs in once more: if that fails,
// it restores the previous key over the connection that is still open.
func (c *Conn) RetireKey(ctx context.Context) error {
	o := c.client.opts
	if o.Key == nil || o.Previous == nil {
		return errors.New("the configuration has no previous_private_key")
	}
	current, previous := keyText(o.Key.PublicKey()), keyText(o.Previous.PublicKey())
	first, err := c.loginWith(ctx, currentKey)
	if err != nil {
		return err
	}
	defer func() { c.become(first) }()
	if _, err := first.Run(ctx, own("key-drop", plan.Login, current, previous), secret.Value{}); err != nil {
		return err
	}
	again, err := first.loginWith(ctx, currentKey)
	if err == nil {
		again.Close()
		return nil
	}
	if e := (*Error)(nil); !errors.As(err, &e) || e.Code != codeKeyNotInstalled {
		return err // the host was not reached; it lists the key that logged in a moment ago
	}
	if _, rerr := first.Run(ctx, own("key-add", plan.Login, previous, "restored-by-macfleet"), secret.Value{}); rerr != nil {
		return fmt.Errorf("%w; restoring the previous key failed: %w", err, rerr)
	}
	return c.target.fails(codePreviousKeyNeeded, Authorising, err)
}
