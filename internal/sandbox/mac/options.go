package mac

import (
	"strconv"
	"strings"
)

// options are the options of a command line by letter; one without a value has "".
type options map[byte]string

func (o options) has(letter byte) bool { _, ok := o[letter]; return ok }

// options takes the command line apart as getopt(3) does: spec lists the letters, each followed by
// a colon when it takes a value. An option that the simulation lacks ends the tool with status.
func (p *proc) options(spec string) (o options, operands []string, status int, ok bool) {
	o, args := options{}, p.args()
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		word := args[0]
		args = args[1:]
		if word == "--" {
			break
		}
		for i := 1; i < len(word); i++ {
			at := strings.IndexByte(spec, word[i])
			switch {
			case at < 0 || word[i] == ':':
				return nil, nil, p.unmodelled(word), false
			case at+1 == len(spec) || spec[at+1] != ':':
				o[word[i]] = ""
				continue
			case i+1 < len(word):
				o[word[i]] = word[i+1:]
			case len(args) == 0:
				return nil, nil, p.fail(exitUsage, "option requires an argument -- %c", word[i]), false
			default:
				o[word[i]], args = args[0], args[1:]
			}
			break
		}
	}
	return o, args, 0, true
}

func parseOctal(text string) (uint64, bool) {
	n, err := strconv.ParseUint(text, 8, 12)
	return n, err == nil
}

// usage fails for a command line that the real tool would not take either.
func (p *proc) usage(text string) int {
	_, _ = p.stderr.Write([]byte("usage: " + text + "\n"))
	return exitUsage
}
