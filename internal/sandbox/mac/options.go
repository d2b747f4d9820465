package mac

import (
	"strconv"
	"strings"
)

// options are the options of a command line by letter; one without a value has "".
type options map[byte]string

func (o options) has(letter byte) bool { _, ok := o[letter]; return ok }

// options parses a command line as getopt(3) does: spec lists the letters, each followed by a colon if
// it takes a value. An option that the simulation lacks ends the tool with status.
func (p *proc) options(spec string) (o options, operands []string, status int, ok bool) {
	o, args := options{}, p.args()
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		word := args[0]
		args = args[1:]
		if word == "--" {
			break
		}
		left, wants, ok := o.take(spec, word[1:], args)
		switch {
		case wants != 0:
			return nil, nil, p.fail(exitUsage, "option requires an argument -- %c", wants), false
		case !ok:
			return nil, nil, p.unmodelled(word), false
		}
		args = left
	}
	return o, args, 0, true
}

// take reads the letters of one word, and returns the words after it and after the last letter's
// value. It fails for a letter that spec lacks.
func (o options) take(spec, letters string, args []string) (left []string, wants byte, ok bool) {
	for i := range len(letters) {
		letter := letters[i]
		at := strings.IndexByte(spec, letter)
		switch {
		case at < 0 || letter == ':':
			return nil, 0, false
		case at+1 == len(spec) || spec[at+1] != ':':
			o[letter] = ""
			continue
		case i+1 < len(letters):
			o[letter] = letters[i+1:]
		case len(args) == 0:
			return nil, letter, false
		default:
			o[letter], args = args[0], args[1:]
		}
		return args, 0, true
	}
	return args, 0, true
}

func parseOctal(text string) (uint64, bool) {
	n, err := strconv.ParseUint(text, 8, 12)
	return n, err == nil
}

// usage fails for a command line that the real tool would also refuse.
func (p *proc) usage(text string) int {
	_, _ = p.stderr.Write([]byte("usage: " + text + "\n"))
	return exitUsage
}
