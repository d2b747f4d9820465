package mac

import (
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/interp"
)

func succeed(*proc) int  { return 0 }
func failTool(*proc) int { return exitFailed }

// refuse reports a feature of the shell that the simulation lacks.
func refuse(p *proc) int {
	return p.shellFail(exitUnmodelled, "option not modelled: %s", strings.TrimPrefix(p.argv[1], "not modelled: "))
}

// notNumber finds an operand of a numeric comparison that is not a number; the interpreter treats it
// as 0, and every real shell refuses it.
func notNumber(args []string) (word string, bad bool) {
	for i := 2; i+1 < len(args); i++ {
		switch args[i] {
		case "-eq", "-ne", "-lt", "-le", "-gt", "-ge":
		default:
			continue
		}
		if args[i-1] == "=" || args[i-1] == "!=" || args[i+1] == "]" {
			continue // the word is compared as a text
		}
		for _, word := range []string{args[i-1], args[i+1]} {
			if _, err := strconv.ParseInt(strings.TrimSpace(word), 10, 64); err != nil {
				return word, true
			}
		}
	}
	return "", false
}

func complainNumber(p *proc) int {
	return p.shellFail(exitUsage, "%s: %s: integer expression expected", p.argv[1], p.argv[2])
}

// printfWords returns printf's command line for the interpreter: it does not support "--", and it
// reads an octal escape of %b without the leading 0.
func printfWords(args []string) []string {
	words := slices.Clone(args)
	if len(words) > 1 && words[1] == "--" {
		words = slices.Delete(words, 1, 2)
	}
	if len(words) < 2 || !strings.Contains(words[1], "%b") {
		return words
	}
	for i, word := range words[2:] {
		plain := withoutZero(word)
		if plain != word && strings.Count(strings.ReplaceAll(words[1], "%%", ""), "%") > 1 {
			return []string{ownRefuse, "printf %b with another conversion"}
		}
		words[i+2] = plain
	}
	return words
}

// withoutZero turns every \0nnn into
// nn.
func withoutZero(word string) string {
	var b strings.Builder
	for i := 0; i < len(word); i++ {
		b.WriteByte(word[i])
		if word[i] != '\\' || i+1 == len(word) {
			continue
		}
		i++
		if digits := word[i+1:]; word[i] != '0' || len(digits) < 3 || strings.Trim(digits[:3], "01234567") != "" {
			b.WriteByte(word[i])
		}
	}
	return b.String()
}

// asBuiltin runs a builtin of the shell as the program of the same name.
func asBuiltin(p *proc) int {
	return runShell(p.child(append([]string{"/bin/bash", "-c", quote(p.name()) + ` "$@"`, p.name()}, p.args()...)))
}

// shellEcho is echo of macOS's sh: no options, and escapes are always read.
func shellEcho(p *proc) int {
	text, end := strings.Join(p.args(), " "), "\n"
	if before, _, ok := strings.Cut(text, `\c`); ok {
		text, end = before, ""
	}
	p.printf("%s%s", unescape(text), end)
	return 0
}

func unescape(text string) string {
	return strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\t`, "\t", `\r`, "\r", `\a`, "\a", `\b`, "\b", `\f`, "\f", `\v`, "\v").Replace(text)
}

// echoProgram is /bin/echo: -n, and no escapes.
func echoProgram(p *proc) int {
	args, end := p.args(), "\n"
	if len(args) > 0 && args[0] == "-n" {
		args, end = args[1:], ""
	}
	p.printf("%s%s", strings.Join(args, " "), end)
	return 0
}

func pwd(p *proc) int {
	dir := p.dir
	for _, arg := range p.args() {
		switch arg {
		case "-L":
			dir = p.dir
		case "-P":
			err := p.visit(func(v *visit) error {
				n, err := v.find(p.user, p.dir, ".", true)
				dir = n.path
				return err
			})
			if err != nil {
				return p.fail(exitFailed, "%s", why(err))
			}
		default:
			return p.unmodelled(arg)
		}
	}
	p.printf("%s\n", dir)
	return 0
}

func showUmask(p *proc) int {
	p.printf("%04o\n", uint32(p.umask))
	return 0
}

// commandV prints what each name would run.
func commandV(p *proc) int {
	status := 0
	for _, name := range p.args() {
		if interp.IsBuiltin(name) {
			p.printf("%s\n", name)
		} else if found, err := p.look(name); err != nil {
			status = exitFailed
		} else if strings.Contains(name, "/") {
			p.printf("%s\n", name)
		} else {
			p.printf("%s\n", found.path())
		}
	}
	return status
}

func typeOf(p *proc) int {
	status := 0
	for _, name := range p.args() {
		if strings.HasPrefix(name, "-") {
			return p.unmodelled(name)
		}
		if interp.IsBuiltin(name) {
			p.printf("%s is a shell builtin\n", name)
		} else if found, err := p.look(name); err == nil {
			p.printf("%s is %s\n", name, found.path())
		} else {
			status = p.shellFail(exitFailed, "type: %s: not found", name)
		}
	}
	return status
}

// hash caches nothing, but checks whether a command exists.
func hash(p *proc) int {
	status := 0
	for _, name := range p.args() {
		if name == "-r" || interp.IsBuiltin(name) {
			continue
		}
		if _, err := p.look(name); err != nil {
			status = p.shellFail(exitFailed, "hash: %s: not found", name)
		}
	}
	return status
}
