package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/hosts"
	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/internal/wholefile"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/providers/kubernetes"
	"github.com/macfleet/macfleet/providers/scaleway"
)

// What init cluster says of the hosts' SSH key.
var (
	codeSSHKeyLost = plan.NewCode("ssh-key-lost", plan.NotDrift, "the Secret of the hosts' SSH key is gone, and there are hosts that trust that key",
		"macfleet init cluster --ssh-key FILE with a copy of the key; without a copy: macfleet init cluster --new-ssh-key")
	codeSSHKeyUnread = plan.NewCode("ssh-key-unread", plan.NotDrift,
		"the Secret of the hosts' SSH key is gone, and macfleet could not find out whether hosts trust that key",
		"macfleet init cluster --ssh-key FILE with the hosts' key; if there are no hosts yet: macfleet init cluster --new-ssh-key")
	codeSSHKeyUnusable = plan.NewCode("ssh-key-unusable", plan.NotDrift, "the Secret of the hosts' SSH key holds no key that macfleet can use",
		"macfleet init cluster --ssh-key FILE with the hosts' key")
	codeSSHKeyThere = plan.NewCode("ssh-key-there", plan.NotDrift, "a new SSH key was requested, but the Secret holds a usable one",
		"leave out --new-ssh-key; to change to another key, let the hosts trust it first, then: macfleet init cluster --ssh-key FILE")
)

// keyState is what the Secret of the hosts' SSH key holds, and what it will hold.
type keyState struct {
	ref         secret.Ref
	at          kubernetes.SSHKey
	text        string // what the Secret holds; empty: it is missing
	line        string // its public half, "type base64"; empty: it is no key
	fingerprint string
	unusable    error // why it is no key

	next     string       // fingerprint of the key that it gets; empty: it stays as it is
	fresh    bool         // that key was made by this run, so no host trusts it
	trusting []plan.Trace // hosts that trust another key
}

// checkExport refuses a file that exists: an older copy may be the only one of its key.
func checkExport(name string) error {
	_, err := os.Lstat(name)
	return refuse(name != "" && err == nil, "--export-ssh-key %s: %w, and a key is never overwritten; name another file", name, fs.ErrExist)
}

// preparation says which SSH key the cluster is to keep: the one of ssh.private_key, where
// that is a Secret of macfleet's namespace. A Secret elsewhere is its owner's.
func (s *session) preparation(ctx context.Context, o InitClusterOptions) (p kubernetes.PrepareOptions, k keyState, err error) {
	ref := s.config.SSH.PrivateKey
	if ref.Scheme != secret.Kubernetes || ref.Parts()[0] != s.config.Kubernetes.Namespace {
		for _, f := range []struct {
			name  string
			given bool
		}{{"ssh-key", o.SSHKey != ""}, {"new-ssh-key", o.NewSSHKey}, {"export-ssh-key", o.ExportKey != ""}} {
			err = errors.Join(err, refuse(f.given, "--%s: ssh.private_key is not a Secret of the namespace %[2]s (secret(\"k8s://%[2]s/NAME/KEY\")), so init cluster keeps no key",
				f.name, s.config.Kubernetes.Namespace))
		}
		return p, k, err
	}
	k = keyState{ref: ref, at: kubernetes.SSHKey{Secret: ref.Parts()[1], Key: ref.Parts()[2]}}
	if err := s.readKey(ctx, &k); err != nil {
		return p, k, err
	}
	if o.SSHKey != "" {
		err = s.giveKey(&k, o.SSHKey)
	} else {
		err = s.makeKey(ctx, &k, o.NewSSHKey)
	}
	p.SSH = k.at
	return p, k, err
}

// readKey reads what the Secret holds. That it cannot be read says nothing about whether it
// exists.
func (s *session) readKey(ctx context.Context, k *keyState) error {
	text, err := s.kubernetes.Secret(ctx, s.config.Kubernetes.Namespace, k.at.Secret, k.at.Key)
	switch {
	case kubernetes.Missing(err):
		return nil
	case err != nil:
		return fmt.Errorf("%s: whether it holds the hosts' key cannot be read: %w", k.ref, err)
	}
	s.env.secrets.Learn(text)
	k.text = text
	k.line, k.fingerprint, k.unusable = hosts.PublicKey(text)
	return nil
}

// giveKey makes the key of a file the hosts' key, in the place of whatever the Secret holds.
func (s *session) giveKey(k *keyState, file string) error {
	content, err := wholefile.Read(s.env.stop, file, largestText)
	if err != nil {
		return fmt.Errorf("--ssh-key: %w", err)
	}
	s.env.secrets.Learn(string(content))
	line, fingerprint, err := hosts.PublicKey(string(content))
	if err != nil {
		return fmt.Errorf("--ssh-key %s: %w", file, err)
	}
	if k.line == line {
		return k.set(k.text) // the same key, in whatever form
	}
	k.next, k.at.Replaces = fingerprint, k.text
	switch {
	case k.unusable != nil:
		k.at.Why = fmt.Sprintf("it holds no usable key; it gets %s", fingerprint)
	case k.line != "":
		k.at.Why = fmt.Sprintf("it holds %s; it gets %s", k.fingerprint, fingerprint)
	default:
		k.at.Why = fmt.Sprintf("it holds no key; it gets %s", fingerprint)
	}
	return k.set(string(content))
}

// makeKey leaves a usable key alone, and makes a new one where there is none and no host
// can trust an older one, or where a person insists.
func (s *session) makeKey(ctx context.Context, k *keyState, insists bool) error {
	switch {
	case k.line != "" && insists:
		return codeSSHKeyThere.Trouble(fmt.Sprintf("%s holds the key %s, which hosts may trust", k.ref, k.fingerprint))
	case k.line != "":
		return k.set(k.text)
	case k.unusable != nil && !insists:
		return codeSSHKeyUnusable.Trouble(fmt.Sprintf("%s cannot be used: %v", k.ref, k.unusable))
	}
	var unread error
	if k.trusting, unread = s.traces(ctx); ctx.Err() != nil {
		return context.Cause(ctx)
	}
	switch {
	case insists && unread != nil:
		s.env.warn(fmt.Sprintf("more hosts than those named may trust the lost key: %v", unread))
	case insists:
	case len(k.trusting) > 0:
		return codeSSHKeyLost.Trouble(fmt.Sprintf("%s is missing, and %s a key that this would not be: %s. "+
			"With a new key macfleet is locked out of them", k.ref, trusts(len(k.trusting)), traced(k.trusting)))
	case unread != nil:
		return codeSSHKeyUnread.Trouble(fmt.Sprintf("%s is missing, and whether hosts trust an older key is not known: %v", k.ref, unread))
	}
	value, err := hosts.NewPrivateKey(s.config.Owner.String())
	if err != nil {
		return err
	}
	s.env.secrets.Learn(value.Reveal())
	_, k.next, err = hosts.PublicKey(value.Reveal())
	k.fresh, k.at.Replaces, k.at.Value = true, k.text, value
	if k.unusable != nil {
		k.at.Why = "it holds no usable key; it gets a new one, " + k.next
	} else {
		k.at.Why = "it holds no key; it gets a new one, " + k.next
	}
	return err
}

func (k *keyState) set(text string) (err error) {
	k.at.Value, err = secret.New(text)
	return err
}

func trusts(n int) string {
	if n == 1 {
		return "1 host trusts"
	}
	return fmt.Sprintf("%d hosts trust", n)
}

// mostTraced is how many hosts are named in a sentence.
const mostTraced = 8

func traced(all []plan.Trace) string {
	var names []string
	for _, t := range all[:min(len(all), mostTraced)] {
		names = append(names, fmt.Sprintf("%s (known by %s)", t.Host, strings.Join(t.By, ", ")))
	}
	if more := len(all) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

// traces looks for hosts that an earlier macfleet has set up, wherever they leave a trace. The
// error says what could not be read: there may be more then.
func (s *session) traces(ctx context.Context) ([]plan.Trace, error) {
	var t plan.Traces
	var unread [4]error
	t.Nodes, unread[0] = s.kubernetes.Nodes(ctx)
	t.Identities, _, unread[1] = s.kubernetes.Identities(ctx)
	pins, err := s.pins(ctx).All()
	t.Pins, _ = plan.WithoutReleased(pins)
	unread[2] = err
	servers, err := s.servers()
	switch {
	case errors.Is(err, scaleway.ErrNoCredentials):
		s.env.warn("servers of this configuration were not listed: there are no Scaleway credentials here")
	case err != nil:
		unread[3] = err
	default:
		t.Servers, unread[3] = servers.List(ctx)
	}
	return t.Hosts(s.config), errors.Join(slices.DeleteFunc(unread[:], func(err error) bool { return err == nil })...)
}

// sayKeyPlan prints before the question what another key means.
func (s *session) sayKeyPlan(k keyState) {
	if !k.fresh || len(k.trusting) == 0 {
		return
	}
	s.env.warn(fmt.Sprintf("%s the lost key and will refuse macfleet until they have the new one: %s", trusts(len(k.trusting)), traced(k.trusting)))
	s.env.warn(fmt.Sprintf("to get in again, add the new public key, which is printed at the end, to ~/.ssh/authorized_keys of %s on each of them: "+
		"by a login with another key, or over VNC. Reinstalling a host works too, once the Scaleway project has the new key", s.config.SSH.User))
}

// sayKey prints the key that the cluster now has, and who else must have it.
func (s *session) sayKey(ctx context.Context, k keyState, o InitClusterOptions) error {
	if k.next == "" {
		return nil
	}
	// It prints what the cluster has, and not what was sent: another run may have been first.
	has := k
	if err := s.readKey(ctx, &has); err != nil {
		return err
	}
	if has.line == "" || !k.fresh && has.fingerprint != k.next {
		return fmt.Errorf("%s does not hold the key %s after it was written; apply needs it. Run the command again", k.ref, k.next)
	}
	t := s.env.outText()
	t.Say(fmt.Sprintf("%s now holds the hosts' key %s. Its public half:", k.ref, has.fingerprint))
	t.Print("\n" + has.line + " " + s.config.Owner.String() + "\n\n")
	t.Say("Add it to the Scaleway project before servers are ordered: a server gets the project's keys at its first boot only. " +
		"On existing servers, add the line to ~/.ssh/authorized_keys of " + s.config.SSH.User + ", or reinstall them.")
	if k.fresh && o.ExportKey == "" {
		t.Say("This key exists only in the cluster. Keep a copy in a safe place: without one, a lost Secret or cluster locks macfleet out of every host. " +
			"macfleet init cluster --export-ssh-key FILE writes one.")
	}
	return nil
}

// exportKey writes a copy of the hosts' key that only its owner can read.
func (s *session) exportKey(ctx context.Context, k keyState, file string) error {
	if file == "" {
		return nil
	}
	if err := s.readKey(ctx, &k); err != nil {
		return fmt.Errorf("--export-ssh-key: %w", err)
	}
	if k.line == "" {
		return fmt.Errorf("--export-ssh-key: %s holds no usable key, so nothing was written", k.ref)
	}
	if err := wholefile.Create(file, 0o600, wholefile.Text(k.text)); err != nil {
		return fmt.Errorf("--export-ssh-key: %w; the cluster has the key, so run the command again with another file", err)
	}
	s.env.outText().Say(fmt.Sprintf("Wrote %s, the hosts' private key %s. Anyone who has this file can log in to every host: keep it where your other secrets are. "+
		"macfleet init cluster --ssh-key FILE stores it in the cluster again.", file, k.fingerprint))
	return nil
}
