package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
)

// loginNoise is a start-up file that prints, as people's files do. zsh reads it for every command over
// SSH.
const loginNoise = `# Welcome, from the sandbox.
printf 'Welcome to acme. You have mail.\n%% '
printf 'compinit: insecure directories, run compaudit\n' >&2
trap 'printf "\nbye\n"; printf "logout" >&2' EXIT
`

func (v *victim) home(name string) string { return "/Users/" + v.server.SSHUsername + "/" + name }

// readLogin returns a file of the login user, or nil.
func (v *victim) readLogin(name string) ([]byte, error) {
	machine, err := v.machine()
	if err != nil {
		return nil, err
	}
	data, err := machine.ReadFile(v.home(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if data == nil && err == nil {
		data = []byte{} // an empty file is not a missing one
	}
	return data, err
}

// writeLogin writes a file of the login user, or removes it when data is nil.
func (v *victim) writeLogin(name string, data []byte, mode fs.FileMode) error {
	machine, err := v.machine()
	if err != nil {
		return err
	}
	if data == nil {
		return machine.Remove(v.home(name))
	}
	return machine.WriteFile(v.home(name), data, 501, 20, mode)
}

const startupFile = ".zshenv"

func rememberStartup(_ context.Context, v *victim) error {
	data, err := v.readLogin(startupFile)
	v.record.File, v.record.HadFile = data, data != nil
	return err
}

func makeNoise(_ context.Context, v *victim) error {
	return v.writeLogin(startupFile, append([]byte(loginNoise), v.record.File...), 0o644)
}

func noisy(_ context.Context, v *victim) (bool, error) {
	data, err := v.readLogin(startupFile)
	return bytes.Contains(data, []byte(loginNoise)), err
}

// quieten removes the noise, and keeps other lines.
func quieten(_ context.Context, v *victim) error {
	data, err := v.readLogin(startupFile)
	if err != nil || !bytes.Contains(data, []byte(loginNoise)) {
		return err
	}
	data = bytes.ReplaceAll(data, []byte(loginNoise), nil)
	if len(data) == 0 && !v.record.HadFile {
		data = nil
	}
	return v.writeLogin(startupFile, data, 0o644)
}

// keyFiles are where sshd on such a Mac looks for keys.
func keyFiles() []string { return []string{".ssh/authorized_keys", ".ssh/scw_authorized_keys"} }

// fleetKey returns the public key of the sandbox's configuration, without a comment.
func (v *victim) fleetKey() string {
	fields := strings.Fields(v.world.settings.SSHPublicKey)
	if len(fields) < 2 {
		return v.world.settings.SSHPublicKey
	}
	return fields[0] + " " + fields[1]
}

func rememberKeys(_ context.Context, v *victim) error {
	v.record.Settings = map[string]string{}
	for _, name := range keyFiles() {
		data, err := v.readLogin(name)
		if err != nil {
			return err
		}
		if strings.Contains(string(data), v.fleetKey()) {
			v.record.Settings[name] = string(data)
		}
	}
	return nil
}

func dropKeys(_ context.Context, v *victim) error {
	for name, before := range v.record.Settings {
		if err := v.writeLogin(name, []byte(v.withoutKey(before)), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// secondKey returns the line of the sandbox's second key.
func (v *victim) secondKey() (string, error) {
	text, err := v.world.Secret(secondKeyRef)
	if err != nil {
		return "", err
	}
	second, err := ssh.ParsePrivateKey([]byte(text))
	if err != nil {
		return "", fmt.Errorf("secret %s: %w", secondKeyRef, err)
	}
	return string(ssh.MarshalAuthorizedKey(second.PublicKey())), nil
}

// swapKeys puts the second key in the place of the fleet's.
func swapKeys(_ context.Context, v *victim) error {
	line, err := v.secondKey()
	for name, before := range v.record.Settings {
		if err == nil {
			err = v.writeLogin(name, []byte(line+v.withoutKey(before)), 0o600)
		}
	}
	return err
}

// unswapKeys removes the second key, and restores the fleet's.
func unswapKeys(ctx context.Context, v *victim) error {
	line, err := v.secondKey()
	for name := range v.record.Settings {
		var data []byte
		if err == nil {
			data, err = v.readLogin(name)
		}
		if err == nil {
			err = v.writeLogin(name, bytes.ReplaceAll(data, []byte(line), nil), 0o600)
		}
	}
	return errors.Join(err, restoreKeys(ctx, v))
}

func (v *victim) withoutKey(text string) string {
	lines := slices.Collect(strings.Lines(text))
	return strings.Join(slices.DeleteFunc(lines, func(line string) bool { return strings.Contains(line, v.fleetKey()) }), "")
}

func keysDropped(_ context.Context, v *victim) (bool, error) {
	for _, name := range keyFiles() {
		data, err := v.readLogin(name)
		if err != nil || strings.Contains(string(data), v.fleetKey()) {
			return false, err
		}
	}
	return true, nil
}

// restoreKeys restores the key, and keeps lines that were added meanwhile.
func restoreKeys(ctx context.Context, v *victim) error {
	gone, err := keysDropped(ctx, v)
	if err != nil || !gone {
		return err
	}
	for name, before := range v.record.Settings {
		data, err := v.readLogin(name)
		if err != nil {
			return err
		}
		text := before
		if string(data) != v.withoutKey(before) {
			text = v.fleetKey() + "\n" + string(data)
		}
		if err := v.writeLogin(name, []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}
