package mac

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"
)

// formerKeyFile is the host key before a rotation.
const formerKeyFile = hostKeyFile + ".former"

func newHostKey() ([]byte, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("create a host key: %w", err)
	}
	block, err := ssh.MarshalPrivateKey(key, "")
	if err != nil {
		return nil, fmt.Errorf("create a host key: %w", err)
	}
	return pem.EncodeToMemory(block), nil
}

func (m *Machine) hostKey() (ssh.Signer, error) {
	data, err := os.ReadFile(filepath.Join(m.dir, hostKeyFile))
	if err != nil {
		return nil, err
	}
	signer, err := ssh.ParsePrivateKey(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", hostKeyFile, err)
	}
	return signer, nil
}

// RotateHostKey replaces the machine's SSH host key, as a reinstallation does. The first key is kept
// for RestoreHostKey, also after several calls.
func (m *Machine) RotateHostKey() error {
	err := m.withKeys(func(key, former string) error {
		fresh, err := newHostKey()
		if err != nil {
			return err
		}
		if _, err := os.Lstat(former); errors.Is(err, fs.ErrNotExist) {
			if err := os.Link(key, former); err != nil {
				return err
			}
		}
		return replaceFile(key, fresh)
	})
	if err != nil {
		return fmt.Errorf("rotate the host key: %w", err)
	}
	return nil
}

// RestoreHostKey restores the host key before RotateHostKey. Without one it does nothing.
func (m *Machine) RestoreHostKey() error {
	err := m.withKeys(func(key, former string) error {
		err := os.Rename(former, key)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("restore the host key: %w", err)
	}
	return nil
}

func (m *Machine) withKeys(f func(key, former string) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	lock, err := os.OpenFile(filepath.Join(m.dir, lockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	// Closing the only descriptor releases the lock.
	defer func() { _ = lock.Close() }()
	if err := flock(lock, unix.LOCK_EX); err != nil {
		return err
	}
	return f(filepath.Join(m.dir, hostKeyFile), filepath.Join(m.dir, formerKeyFile))
}
