package mac

import (
	"context"
	"runtime"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"
)

// Tools for builtins of the shell. No command line can name them, because their names contain a slash.
const (
	ownRefuse  = "/builtin/refuse"
	ownEcho    = "/builtin/echo"
	ownPwd     = "/builtin/pwd"
	ownUmask   = "/builtin/umask"
	ownCommand = "/builtin/command -v"
	ownType    = "/builtin/type"
	ownHash    = "/builtin/hash"
	ownNumber  = "/builtin/test -eq"
)

const (
	checkEvery = 64     // calls between two checks of the depth
	maxFrames  = 20_000 // of Go, about a thousand levels of the shell
)

// call runs before every simple command, also before builtins and functions. It replaces the builtins
// that would read the real machine.
func (sh *shell) call(ctx context.Context, args []string) ([]string, error) {
	if sh.proc.session.calls.Add(1)%checkEvery == 0 {
		var frame [1]uintptr
		if runtime.Callers(maxFrames, frame[:]) > 0 {
			return nil, errTooDeep
		}
	}
	if args[0] == "read" {
		return sh.readLine(ctx, interp.HandlerCtx(ctx), args), nil
	}
	return sh.takeOver(interp.HandlerCtx(ctx), args), nil
}

func (sh *shell) takeOver(hc interp.HandlerContext, args []string) []string {
	switch args[0] {
	case "command":
		return sh.command(hc, args)
	case "type":
		return lookups(ownType, args[1:])
	case "hash":
		return append([]string{ownHash}, args[1:]...)
	case "umask":
		return sh.umask(args)
	case "pwd":
		return append([]string{ownPwd}, args[1:]...)
	case "echo":
		if sh.kind != "bash" {
			return append([]string{ownEcho}, args[1:]...)
		}
	case "test", "[", "[[":
		for _, word := range []string{"-O", "-G", "-ef"} {
			if slices.Contains(args[1:], word) {
				return []string{ownRefuse, args[0] + " " + word}
			}
		}
		if word, bad := notNumber(args); bad && args[0] != "[[" {
			return []string{ownNumber, args[0], word}
		}
	case "printf":
		return printfWords(args)
	case "eval", "trap":
		return sh.checked(args)
	case ".", "source":
		if len(args) > 1 && !strings.Contains(args[1], "/") {
			// A name without a slash would be looked up along PATH on the real disk.
			return []string{ownRefuse, args[0] + " without a path"}
		}
	}
	return args
}

// command is the builtin of this name.
func (sh *shell) command(hc interp.HandlerContext, args []string) []string {
	switch {
	case len(args) == 1:
		return args
	case args[1] == "-v" || args[1] == "-V":
		return lookups(ownCommand, args[2:])
	case strings.HasPrefix(args[1], "-"):
		return []string{ownRefuse, "command " + args[1]}
	}
	return append([]string{"command"}, sh.takeOver(hc, args[1:])...)
}

// lookups resolves names. Only the interpreter knows the functions, so it is queried first.
func lookups(own string, names []string) []string {
	if len(names) == 1 && syntax.ValidName(names[0]) {
		found := "printf '%s\\n' " + names[0]
		if own == ownType {
			found = "printf '%s\\n' '" + names[0] + " is a function'"
		}
		return []string{"eval", "if declare -f " + names[0] + " >/dev/null; then " + found + "; else '" + own + "' " + names[0] + "; fi"}
	}
	return append([]string{own}, names...)
}

// umask sets the umask as a variable of this shell, or shows it.
func (sh *shell) umask(args []string) []string {
	if len(args) == 1 {
		return []string{ownUmask}
	}
	if mask, ok := parseOctal(args[1]); ok && len(args) == 2 && mask <= 0o777 {
		return []string{"eval", umaskName + "=" + args[1]}
	}
	return []string{ownRefuse, strings.Join(args, " ")}
}

// checked refuses text that is run later and contains what is not modelled.
func (sh *shell) checked(args []string) []string {
	text := strings.Join(args[1:], " ")
	if args[0] == "trap" {
		if len(args) < 3 {
			return args
		}
		text = args[1]
	}
	file, err := syntax.NewParser().Parse(strings.NewReader(text), "")
	if err == nil {
		err = modelled(file)
	}
	if err != nil && strings.HasPrefix(err.Error(), "not modelled") {
		return []string{ownRefuse, err.Error()}
	}
	return args
}
