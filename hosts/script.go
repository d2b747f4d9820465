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

// DefaultPrologue stands in front of every script, so that bare tool names mean
// the system's own tools whatever the login shell's files say.
const DefaultPrologue = "PATH=/usr/bin:/bin:/usr/sbin:/sbin; LC_ALL=C; export PATH LC_ALL\n"

// ScriptText returns the exact text that a host's /bin/sh gets for a command.
// Its arguments are no part of it: they travel as data.
func ScriptText(c plan.Command) string { return DefaultPrologue + c.Script }

// bootstrap runs a script as root where root is to be had without a password,
// and as the login user elsewhere. The script is its $1, its arguments follow,
// and stdin is left for the data: dash reads ahead, so a script and its data on
// one stdin would run the data. The null device as sudo's stdin keeps it from
// eating the data.
const bootstrap = `[ "$(id -u)" = 0 ] || ! sudo -n true </dev/null 2>/dev/null || exec sudo -n /bin/sh -c "$@"; exec /bin/sh -c "$@"`

// maxScript is the longest command line that is sent, in bytes; a Mac takes a
// few times as much.
const maxScript = 100_000

// question is one script of an exchange with a host.
type question struct {
	id string
	plan.Command
	input secret.Value // what the script reads on its standard input; zero: nothing
}

// commandLine returns the exec string of an exchange, behind a fence if there is
// one: the same questions give the same text for every host. Values travel in
// stdin, see data.
func commandLine(fence, prologue string, questions []question) (string, error) {
	words := []string{strings.TrimSpace(file("watchdog.pl")), prologue}
	for _, q := range questions {
		if q.As != plan.Root && q.As != plan.Login {
			return "", fmt.Errorf("%s: nothing runs as user %q", q.id, q.As)
		}
		piped := "0"
		if !q.input.IsZero() {
			piped = "1"
		}
		words = append(words, q.id, string(q.As), strconv.Itoa(len(q.Args)), piped, q.Script)
	}
	// perl takes the shell's place.
	line := scriptLine(prologue+fence+`exec perl -e "$@"`, words...)
	if len(line) > maxScript {
		return "", fmt.Errorf("the script of %d questions is %d bytes, more than %d", len(questions), len(line), maxScript)
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

// data returns what goes to stdin of an exchange: the mark, the login user, the
// seconds each question may take, and every argument with its length in front.
func data(mark, user string, limit int, questions []question) (string, error) {
	var b strings.Builder
	if strings.ContainsAny(user, "\n\x00") {
		return "", fmt.Errorf("the login user %q holds a line break", user)
	}
	fmt.Fprintf(&b, "%s\n%s\n%d\n", mark, user, limit)
	for _, q := range questions {
		for _, arg := range q.Args {
			if strings.ContainsRune(arg, 0) {
				return "", fmt.Errorf("an argument of %s holds a NUL byte, which no argument can", q.Name)
			}
			b.WriteString(strconv.Itoa(len(arg)) + "\n" + arg)
		}
		if input := q.input.Reveal(); input != "" {
			if strings.ContainsRune(input, 0) {
				return "", fmt.Errorf("the input of %s holds a NUL byte, which no shell can carry", q.Name)
			}
			b.WriteString(strconv.Itoa(len(input)) + "\n" + input)
		}
	}
	return b.String(), nil
}

// quote makes one word of text for any shell: zsh, which runs the exec string,
// and sh. The usual \' between two quoted parts keeps its backslash in an
// assignment under mvdan.cc/sh, so a quote is quoted by the other kind.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'"'"'`) + "'" }

// file returns an embedded file.
func file(name string) string {
	text, err := files.ReadFile(name)
	if err != nil {
		// The name is a constant of this package and the file is embedded.
		panic(fmt.Sprintf("%s is not embedded: %v", name, err))
	}
	return string(text)
}

// own returns one of this package's scripts as a command.
func own(name string, as plan.User, args ...string) plan.Command {
	return plan.Command{Name: name, Script: file("scripts/" + name + ".sh"), As: as, Args: args}
}
