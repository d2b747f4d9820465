package mac

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

func date(p *proc) int {
	o, args, status, ok := p.options("ujr:f:")
	if !ok {
		return status
	}
	now, zone := p.shown(), time.Local
	if o.has('u') {
		zone = time.UTC
	}
	switch {
	case o.has('r'):
		seconds, err := strconv.ParseInt(o['r'], 10, 64)
		if err != nil {
			return p.unmodelled("-r " + o['r'])
		}
		now = time.Unix(seconds, 0)
	case o.has('f'):
		if !o.has('j') || len(args) == 0 {
			return p.unmodelled("-f without -j and a date") // it would set the clock
		}
		if now, ok = strptime(o['f'], args[0], zone); !ok {
			p.complain("Failed conversion of ``%s'' using format ``%s''", args[0], o['f'])
			return p.fail(exitFailed, "illegal time format")
		}
		args = args[1:]
	}
	now = now.In(zone)
	format := "%a %b %e %H:%M:%S %Z %Y"
	if len(args) > 0 {
		if format, ok = strings.CutPrefix(args[0], "+"); !ok || len(args) > 1 {
			return p.unmodelled(args[0])
		}
	}
	text, unknown := strftime(now, format)
	if unknown != "" {
		return p.unmodelled(unknown)
	}
	p.printf("%s\n", text)
	return 0
}

// layouts are the letters of a format in Go's terms.
func layouts() map[byte]string {
	return map[byte]string{
		'Y': "2006", 'm': "01", 'd': "02", 'H': "15", 'M': "04", 'S': "05", 'y': "06", 'I': "03", 'p': "PM", 'j': "002",
		'a': "Mon", 'A': "Monday", 'b': "Jan", 'B': "January", 'h': "Jan", 'e': "_2", 'Z': "MST", 'z': "-0700",
		'F': "2006-01-02", 'T': "15:04:05", 'R': "15:04", 'D': "01/02/06", 'c': "Mon Jan _2 15:04:05 2006",
	}
}

// strptime reads a date in a format. White space matches any other white space.
func strptime(format, text string, zone *time.Location) (time.Time, bool) {
	var layout strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			layout.WriteByte(format[i])
			continue
		}
		i++
		letter := layouts()[format[i]]
		if format[i] == 'd' || format[i] == 'e' {
			letter = "2"
		}
		if letter == "" {
			return time.Time{}, false
		}
		layout.WriteString(letter)
	}
	one := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	t, err := time.ParseInLocation(one(layout.String()), one(text), zone)
	return t, err == nil
}

// strftime fills in a format; it returns an unknown letter.
func strftime(t time.Time, format string) (text, unknown string) {
	layouts := layouts()
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		switch c := format[i]; c {
		case 's':
			b.WriteString(strconv.FormatInt(t.Unix(), 10))
		case 'n':
			b.WriteByte('\n')
		case 't':
			b.WriteByte('\t')
		case '%':
			b.WriteByte('%')
		case 'u':
			fmt.Fprint(&b, (int(t.Weekday())+6)%7+1)
		case 'w':
			fmt.Fprint(&b, int(t.Weekday()))
		default:
			layout, ok := layouts[c]
			if !ok {
				return "", "%" + string(c)
			}
			b.WriteString(t.Format(layout))
		}
	}
	return b.String(), ""
}
