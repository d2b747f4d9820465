package hosts

import (
	"embed"
	"fmt"
	"strconv"
	"strings"

	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/plan"
)

//go:embed scripts/*.sh plists/*.plist watchdog.pl
var files embed.FS

// DefaultPrologue precedes every script, so that bare tool names mean the system's own tools
// whatever the login shell's files set.
const DefaultPrologue = "PATH=/usr/bin:/bin:/usr/sbin:/sbin; LC_ALL=C; export PATH LC_ALL\n"

// ScriptText returns the exact text that a host's /bin/sh gets for a command, without its
// arguments, which are sent as data.
func ScriptText(c plan.Command) string { return DefaultPrologue + c.Script }

// bootstrap runs a script as root if passwordless sudo works, otherwise as the login user. $1
// is the script, its arguments follow. stdin carries only data: dash reads ahead and would run
// data that follows a script. sudo's stdin is /dev/null so that it does not consume the data.
const bootstrap = `[ "$(id -u)" = 0 ] || ! sudo -n true </dev/null 2>/dev/null || exec sudo -n /bin/sh -c "$@"; exec /bin/sh -c "$@"`

// maxScript is the maximum length of a command line in bytes; a Mac accepts a few times as much.
const maxScript = 100_000

// question is one script of an exchange.
type question struct {
	id string
	plan.Command
	input secret.Value // the script's standard input; zero: none
}

// commandLine returns the exec string of an exchange, after the fence, if any. It is the same for
// all hosts; values are sent on stdin, see data.
func commandLine(fence, prologue string, questions []question) (string, error) {
	words := []string{strings.TrimSpace(file("watchdog.pl")), prologue}
	for _, q := range questions {
		if q.As != plan.Root && q.As != plan.Login {
			return "", fmt.Errorf("%s: unknown user %q", q.id, q.As)
		}
		piped := "0"
		if !q.input.IsZero() {
			piped = "1"
		}
		words = append(words, q.id, string(q.As), strconv.Itoa(len(q.Args)), piped, q.Script)
	}
	// perl replaces the shell.
	line := scriptLine(prologue+fence+`exec perl -e "$@"`, words...)
	if len(line) > maxScript {
		return "", fmt.Errorf("the script of %d probes has %d bytes, more than %d", len(questions), len(line), maxScript)
	}
	return line, nil
}

// scriptLine returns the exec string of a script and its arguments.
func scriptLine(script string, args ...string) string {
	words := append([]string{"/bin/sh", "-c", quote(bootstrap), "sh", quote(script), "sh"}, make([]string, len(args))...)
	for i, arg := range args {
		words[6+i] = quote(arg)
	}
	return strings.Join(words, " ")
}

// data returns the stdin of an exchange: the mark, the login user, the time limit of a probe in
// seconds, and every argument preceded by its length.
func data(mark, user string, limit int, questions []question) (string, error) {
	var b strings.Builder
	if strings.ContainsAny(user, "\n\x00") {
		return "", fmt.Errorf("the login user %q contains a line break", user)
	}
	fmt.Fprintf(&b, "%s\n%s\n%d\n", mark, user, limit)
	for _, q := range questions {
		for _, arg := range q.Args {
			if strings.ContainsRune(arg, 0) {
				return "", fmt.Errorf("an argument of %s contains a NUL byte", q.Name)
			}
			b.WriteString(strconv.Itoa(len(arg)) + "\n" + arg)
		}
		if input := q.input.Reveal(); input != "" {
			if strings.ContainsRune(input, 0) {
				return "", fmt.Errorf("the input of %s contains a NUL byte", q.Name)
			}
			b.WriteString(strconv.Itoa(len(input)) + "\n" + input)
		}
	}
	return b.String(), nil
}

// quote quotes a text for zsh, which runs the exec string, and for sh. It quotes a single quote
// with double quotes, because mvdan.cc/sh keeps the backslash of \' in assignments.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'"'"'`) + "'" }

// file returns an embedded file.
func file(name string) string {
	text, err := files.ReadFile(name)
	if err != nil {
		// A programming error: the name is a constant and the file is embedded.
		panic(fmt.Sprintf("%s is not embedded: %v", name, err))
	}
	return string(text)
}

// own returns one of this package's scripts as a command.
func own(name string, as plan.User, args ...string) plan.Command {
	return plan.Command{Name: name, Script: file("scripts/" + name + ".sh"), As: as, Args: args}
}
