package app

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/macfleet/macfleet/internal/view"
)

// errTwoJSON ends a command that was to write JSON twice.
var errTwoJSON = errors.New("--json and --json-into exclude each other: with --json-into standard output is text")

// openStream lets a program follow the command, in lines of JSON: on standard output,
// which then is no person's any more, or in a file, beside the text. A pipe will do.
func (env *Env) openStream(onOut bool, file string) error {
	switch {
	case onOut:
		env.mute = true
		env.stream = view.NewStream(&env.output, time.Now)
	case file != "":
		f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
		if err != nil {
			return fmt.Errorf("--json-into: %w", err)
		}
		env.into.to, env.into.name = f, file
		env.stream = view.NewStream(&env.into, time.Now)
	}
	return env.into.lost("--json-into: write to " + file)
}

// warn says what does not end the command: to a person, and to programs that read a
// stream.
func (env *Env) warn(text string) {
	text = env.secrets.Scrub(text)
	if env.stream != nil {
		env.stream.Diagnostics([]view.Diagnostic{{Severity: "warning", Summary: text}})
	}
	if !env.mute {
		env.errText().Warn(text)
	}
}

// say tells a person, or a program, what is waited for.
func (env *Env) say(line string) {
	if env.stream != nil {
		env.stream.Waiting(line)
	}
	if !env.mute {
		env.errText().Say(line)
	}
}
