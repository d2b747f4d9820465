package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"

	"golang.org/x/sys/unix"
)

// onTerminal runs a command whose standard output is a terminal of a width, and returns what it
// prints there. Its progress goes to standard error and is dropped; its exit code does not count.
func onTerminal(columns int, command []string) (string, error) {
	if len(command) == 0 {
		return "", errors.New("usage: picture [-columns N] [-title TEXT] COMMAND [ARGUMENT...]")
	}
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return "", err
	}
	defer ours.Close()
	number, err := unix.IoctlGetInt(int(ours.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(ours.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(int(ours.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 60, Col: uint16(columns)})
	}
	if err != nil {
		return "", err
	}
	theirs, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return "", err
	}
	run := exec.Command(command[0], command[1:]...)
	run.Stdout = theirs
	run.Env = append(os.Environ(), "TERM=xterm-256color", "COLORTERM=", "NO_COLOR=", "FORCE_COLOR=1")
	err = run.Start()
	theirs.Close()
	if err != nil {
		return "", err
	}
	text, _ := io.ReadAll(ours) // ends with an error once the other side is closed
	var exit *exec.ExitError
	if err := run.Wait(); err != nil && !errors.As(err, &exit) {
		return "", err
	}
	return string(text), nil
}
