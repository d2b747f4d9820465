package mac

import (
	"path"
	"strconv"
	"strings"
)

// parse reads the command line. What it does not know ends the tool loudly.
func (c *curlCall) parse(args []string) (status int, ok bool) {
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
		used, ok := c.letters(word[1:], args)
		if !ok {
			return c.unmodelled(word), false
		}
		args = args[used:]
	}
	if c.output == "" && c.folds {
		c.output = path.Base(c.address)
	}
	return 0, true
}

// letters reads letters that may stand together, and gives how many of the next words belong to
// them.
func (c *curlCall) letters(letters string, next []string) (used int, ok bool) {
	for i, letter := range letters {
		if !strings.ContainsRune("oCwmYyA", letter) {
			switch letter {
			case 'f':
				c.fail = true
			case 's':
				c.silent = true
			case 'S':
				c.errors = true
			case 'I':
				c.head = true
			case 'O':
				c.folds = true
			case 'L', 'q':
			default:
				return 0, false
			}
			continue
		}
		value := letters[i+1:]
		if value == "" {
			if len(next) == 0 {
				return 0, false
			}
			value, used = next[0], 1
		}
		return used, c.value(letter, value)
	}
	return 0, true
}

func (c *curlCall) value(letter rune, value string) bool {
	switch letter {
	case 'o':
		c.output = value
	case 'C':
		c.resume = true
		return value == "-"
	case 'w':
		c.write = value
	case 'm':
		c.maxTime = value
	case 'Y':
		n, err := strconv.Atoi(value)
		c.speed = n
		return err == nil
	case 'y':
		c.speedTime = value
	}
	return true
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
