package mac

import (
	"path"
	"strconv"
	"strings"
)

// parse reads the command line. An unknown option ends the tool loudly.
func (c *curlCall) parse(args []string) (status int, ok bool) {
	o := options{}
	for len(args) > 0 {
		word := args[0]
		args = args[1:]
		if short, known := curlWords()[word]; known {
			word = short
		}
		if word == "--url" && len(args) > 0 {
			word, args = args[0], args[1:]
		}
		switch {
		case !strings.HasPrefix(word, "-"):
			c.address = word
			continue
		case strings.HasPrefix(word, "--"):
			used, ok := c.long(word, args)
			if !ok {
				return c.unmodelled(word), false
			}
			args = args[used:]
			continue
		}
		if args, _, ok = o.take("o:C:w:m:Y:y:A:fsSIOLq", word[1:], args); !ok {
			return c.unmodelled(word), false
		}
	}
	c.fail, c.silent, c.errors, c.head, c.folds = o.has('f'), o.has('s'), o.has('S'), o.has('I'), o.has('O')
	c.output, c.write, c.maxTime, c.speedTime, c.resume = o['o'], o['w'], o['m'], o['y'], o.has('C')
	if c.resume && o['C'] != "-" {
		return c.unmodelled("-C"), false
	}
	if o.has('Y') {
		n, err := strconv.Atoi(o['Y'])
		if err != nil {
			return c.unmodelled("-Y"), false
		}
		c.speed = n
	}
	if c.output == "" && c.folds {
		c.output = path.Base(c.address)
	}
	return 0, true
}

// long reads an option that has no letter.
func (c *curlCall) long(word string, next []string) (used int, ok bool) {
	switch word {
	case "--retry-all-errors":
		c.again = true
		return 0, true
	case "--tlsv1.2", "--tlsv1.3", "--create-dirs", "--no-progress-meter", "--retry-connrefused", "--globoff":
		return 0, true
	case "--connect-timeout", "--retry-delay", "--retry-max-time", "--proto", "--proto-redir", "--max-redirs", "--max-filesize", "--retry":
		if len(next) == 0 {
			return 0, false
		}
		if word == "--retry" {
			c.retries, _ = strconv.Atoi(next[0])
		}
		return 1, true
	}
	return 0, false
}
