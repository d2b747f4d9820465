package sandbox

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"

	"github.com/macfleet/macfleet/internal/sandbox/cloud"
	"github.com/macfleet/macfleet/internal/sandbox/kube"
	"github.com/macfleet/macfleet/internal/sandbox/store"
)

// unfinished is the prefix of worlds that are being created, next to their final folder.
const unfinished = ".macfleet-sandbox-new-"

// create creates a new world. It is renamed when it is complete, so that neither a failure nor a
// second process leaves or sees half of one.
func create(dir string, seed Seed) error {
	seed, err := seed.complete()
	if err != nil {
		return err
	}
	if resolved, err := filepath.EvalSymlinks(dir); err == nil {
		dir = resolved // the rename must replace the folder, not a link to it
	}
	if err := vacant(dir); err != nil {
		return err
	}
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return fmt.Errorf("create the sandbox in %s: %w; fix: choose a writable folder with --sandbox=DIR", dir, err)
	}
	sweep(parent)
	temp, err := os.MkdirTemp(parent, unfinished+"*")
	if err != nil {
		return fmt.Errorf("create the sandbox in %s: %w; fix: choose a writable folder with --sandbox=DIR", dir, err)
	}
	err = fill(temp, seed)
	if err == nil {
		// Unlike os.Rename, the system call replaces an empty folder.
		err = unix.Rename(temp, dir)
	}
	if err == nil {
		return nil
	}
	err = errors.Join(err, os.RemoveAll(temp))
	if Exists(dir) {
		return nil // another process was faster: its world is equivalent
	}
	return fmt.Errorf("create the sandbox in %s: %w", dir, err)
}

// vacant reports whether a world may be created in dir: it is missing or empty.
func vacant(dir string) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("create the sandbox in %s: %w; fix: choose another folder with --sandbox=DIR", dir, err)
	case len(entries) > 0 && !Exists(dir):
		return fmt.Errorf("create the sandbox: %s is not empty and not a sandbox (it contains %s); fix: choose another folder with --sandbox=DIR",
			dir, entries[0].Name())
	}
	return nil
}

// sweep removes old leftovers of killed processes. Failures are harmless.
func sweep(parent string) {
	left, _ := filepath.Glob(filepath.Join(parent, unfinished+"*"))
	for _, path := range left {
		if info, err := os.Stat(path); err == nil && time.Since(info.ModTime()) > time.Hour {
			_ = os.RemoveAll(path)
		}
	}
}

// fill writes a complete world into an empty folder.
func fill(dir string, seed Seed) error {
	if err := os.WriteFile(filepath.Join(dir, ignoreFile), []byte("*\n"), 0o600); err != nil {
		return err
	}
	for _, folder := range []string{macsFolder, incidentsFolder} {
		if err := os.Mkdir(filepath.Join(dir, folder), 0o700); err != nil {
			return err
		}
	}
	servers, err := population(seed)
	if err != nil {
		return err
	}
	if err := cloud.Create(filepath.Join(dir, cloudFolder), servers); err != nil {
		return err
	}
	private, public, err := newKey()
	if err != nil {
		return err
	}
	second, _, err := newKey()
	if err != nil {
		return err
	}
	cluster := kube.Seed{ClusterUID: seed.ClusterUID, CreatedAt: firstOrder()}
	secrets := map[string]string{secondKeyRef: second}
	if strings.HasPrefix(seed.SSHKeyRef, kubernetesScheme) {
		namespace, name, key, err := splitKubernetes(seed.SSHKeyRef)
		if err != nil {
			return err
		}
		cluster.Secret = &kube.Secret{Namespace: namespace, Name: name, Key: key, Value: private}
	} else {
		secrets[seed.SSHKeyRef] = private
	}
	if err := kube.Create(filepath.Join(dir, kubeFolder), cluster); err != nil {
		return err
	}
	return errors.Join(
		store.WriteJSON(filepath.Join(dir, secretsFile), secrets),
		store.WriteJSON(filepath.Join(dir, factoryFile), factories(servers)),
		store.WriteJSON(filepath.Join(dir, settingsFile), newSettings(seed, public)),
	)
}

// newKey creates the key that opens every Mac of the world: the private half in OpenSSH's format, the
// public one as a line of authorized_keys.
func newKey() (private, public string, err error) {
	open, secret, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return "", "", fmt.Errorf("create the fleet's SSH key: %w", err)
	}
	block, err := ssh.MarshalPrivateKey(secret, "macfleet sandbox")
	if err != nil {
		return "", "", fmt.Errorf("create the fleet's SSH key: %w", err)
	}
	line, err := ssh.NewPublicKey(open)
	if err != nil {
		return "", "", fmt.Errorf("create the fleet's SSH key: %w", err)
	}
	return string(pem.EncodeToMemory(block)), strings.TrimSpace(string(ssh.MarshalAuthorizedKey(line))), nil
}
