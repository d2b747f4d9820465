package sandbox

import (
	"context"
	"strings"

	"github.com/macfleet/macfleet/internal/sandbox/mac"
)

// sudoTroubles are the incidents of sudo and its password.
func sudoTroubles() []trouble {
	return []trouble{
		{
			Incident: Incident{"wrong-password", "someone changed the Mac's password; the provider reports the old one, and sudo asks for a password"},
			remember: rememberPassword, cause: changePassword, lasts: passwordChanged, cure: changePasswordBack,
		},
		{
			Incident: Incident{"password-not-disclosed", "the provider no longer reports the password, and sudo asks for one"},
			remember: rememberDisclosure, cause: disclose(concealed), lasts: disclosed(concealed), cure: discloseBack(concealed),
		},
		{
			Incident: Incident{"sealed-in-get", "the provider reports <sealed> instead of the password, and sudo asks for one"},
			remember: rememberDisclosure, cause: disclose(placeholders), lasts: disclosed(placeholders), cure: discloseBack(placeholders),
		},
		{
			Incident: Incident{"sudo-locked", "too many wrong passwords locked the account, so the correct one is refused too"},
			remember: nothing, cause: setLocked(true), lasts: accountLocked, cure: unlockAccount,
		},
		{
			Incident: Incident{"sudoers-broken", "the sudoers files for passwordless sudo have a syntax error"},
			remember: rememberToGarble, cause: garblePasses, lasts: passesGarbled, cure: restoreGarbled,
		},
	}
}

const sudoersFolder = "/etc/sudoers.d/"

// freePasses returns the files of sudoers.d that give a user passwordless sudo, by name.
func (v *victim) freePasses(ctx context.Context) (map[string]string, error) {
	machine, err := v.machine()
	if err != nil {
		return nil, err
	}
	listed, err := v.run(ctx, "ls -A "+sudoersFolder)
	if err != nil {
		return nil, err
	}
	passes := map[string]string{}
	for name := range strings.FieldsSeq(listed) {
		data, err := machine.ReadFile(sudoersFolder + name)
		if err == nil && strings.Contains(string(data), "NOPASSWD") { // a folder there is ignored
			passes[name] = string(data)
		}
	}
	return passes, nil
}

func (v *victim) writePass(name, text string) error {
	machine, err := v.machine()
	if err != nil {
		return err
	}
	return machine.WriteFile(sudoersFolder+name, []byte(text), 0, 0, 0o440)
}

// removePasses makes sudo ask for a password.
func (v *victim) removePasses() error {
	machine, err := v.machine()
	if err != nil {
		return err
	}
	for name := range v.record.Settings {
		if err := machine.Remove(sudoersFolder + name); err != nil {
			return err
		}
	}
	return nil
}

// passesGone reports whether sudo asks for a password and did not before.
func (v *victim) passesGone(ctx context.Context) (bool, error) {
	if len(v.record.Settings) == 0 {
		return false, nil
	}
	machine, err := v.machine()
	if err != nil {
		return false, err
	}
	result, err := machine.Run(ctx, v.server.SSHUsername, "sudo -n true")
	return result.Exit != 0, err
}

// restorePasses restores the files unless sudo works without a password.
func (v *victim) restorePasses(ctx context.Context) error {
	gone, err := v.passesGone(ctx)
	if err != nil || !gone {
		return err
	}
	for name, text := range v.record.Settings {
		if err := v.writePass(name, text); err != nil {
			return err
		}
	}
	return nil
}

// handPassword is the password that someone set.
func (v *victim) handPassword() string { return "by-hand-" + v.server.ID[:5] }

func rememberPassword(ctx context.Context, v *victim) error {
	passes, err := v.freePasses(ctx)
	if err != nil {
		return err
	}
	machine, err := v.machine()
	if err != nil {
		return err
	}
	password, err := machine.Password()
	v.record.Settings, v.record.File = passes, []byte(password)
	return err
}

func changePassword(_ context.Context, v *victim) error {
	machine, err := v.machine()
	if err != nil {
		return err
	}
	if err := machine.SetPassword(v.handPassword()); err != nil {
		return err
	}
	return v.removePasses()
}

func passwordChanged(ctx context.Context, v *victim) (bool, error) {
	machine, err := v.machine()
	if err != nil {
		return false, err
	}
	password, err := machine.Password()
	if err != nil || password == v.handPassword() {
		return err == nil, err
	}
	return v.passesGone(ctx)
}

func changePasswordBack(ctx context.Context, v *victim) error {
	machine, err := v.machine()
	if err != nil {
		return err
	}
	password, err := machine.Password()
	if err == nil && password == v.handPassword() {
		err = machine.SetPassword(string(v.record.File))
	}
	if err != nil {
		return err
	}
	return v.restorePasses(ctx)
}

func accountLocked(_ context.Context, v *victim) (bool, error) {
	machine, err := v.machine()
	if err != nil {
		return false, err
	}
	return machine.Locked()
}

func unlockAccount(ctx context.Context, v *victim) error {
	locked, err := accountLocked(ctx, v)
	if err != nil || !locked {
		return err
	}
	return setLocked(false)(ctx, v)
}

func setLocked(locked bool) func(context.Context, *victim) error {
	return onMac(func(machine *mac.Machine) error { return machine.SetLocked(locked) })
}

// rememberToGarble records the files for passwordless sudo; if there are none, it adds one.
func rememberToGarble(ctx context.Context, v *victim) error {
	passes, err := v.freePasses(ctx)
	if err != nil {
		return err
	}
	if v.record.HadFile = len(passes) > 0; !v.record.HadFile {
		user := v.server.SSHUsername
		passes = map[string]string{user + "-nopasswd": user + " ALL=(ALL) NOPASSWD: ALL\n"}
	}
	v.record.Settings = passes
	return nil
}

// garbled returns a policy after a careless edit: a word is repeated and the colon is missing.
func garbled(text string) string { return strings.ReplaceAll(text, "NOPASSWD", "NOPASSWD NOPASSWD") }

func garblePasses(_ context.Context, v *victim) error {
	for name, text := range v.record.Settings {
		if err := v.writePass(name, garbled(text)); err != nil {
			return err
		}
	}
	return nil
}

// garbledStill returns the files that are unchanged since.
func (v *victim) garbledStill(ctx context.Context) ([]string, error) {
	passes, err := v.freePasses(ctx)
	var still []string
	for name, before := range v.record.Settings {
		if passes[name] == garbled(before) {
			still = append(still, name)
		}
	}
	return still, err
}

func passesGarbled(ctx context.Context, v *victim) (bool, error) {
	still, err := v.garbledStill(ctx)
	return len(still) > 0, err
}

func restoreGarbled(ctx context.Context, v *victim) error {
	still, err := v.garbledStill(ctx)
	if err != nil {
		return err
	}
	machine, err := v.machine()
	if err != nil {
		return err
	}
	for _, name := range still {
		if v.record.HadFile {
			err = v.writePass(name, v.record.Settings[name])
		} else {
			err = machine.Remove(sudoersFolder + name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
