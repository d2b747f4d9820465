package main

import (
	"os"
	"path/filepath"
)

// tools stand for macOS's own. They say what a converged Mac says but for its
// names; macfleet and the bare program run the same ones.
var tools = map[string]string{
	"sw_vers":  `echo 26.3`,
	"ioreg":    `echo '    "IOPlatformSerialNumber" = "C07ACME00001"'`,
	"scutil":   `echo mac-mini`,
	"pmset":    `printf 'AC Power:\n autorestart 1\n disksleep 0\n sleep 0\n displaysleep 0\n womp 1\n'`,
	"defaults": `echo 0`,
	"dscl":     `echo 'AuthenticationAuthority: ;ShadowHash;HASHLIST:<SALTED-SHA512-PBKDF2>'`,
}

func writeTools(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, text := range tools {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			return err
		}
	}
	return nil
}

// prologue stands in front of every script, instead of the one for real Macs.
func (f *sshFleet) prologue() string {
	return "PATH=" + f.Tools + ":/usr/bin:/bin:/usr/sbin:/sbin; LC_ALL=C; export PATH LC_ALL\n"
}
