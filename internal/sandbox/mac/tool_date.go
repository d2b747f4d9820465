package mac

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

func date(p *proc) int {
	o, args, status, ok := p.options("ur:")
	if !ok {
		return status
	}
	now := p.now()
	if o.has('r') {
		seconds, err := strconv.ParseInt(o['r'], 10, 64)
		if err != nil {
			return p.unmodelled("-r " + o['r'])
		}
		now = time.Unix(seconds, 0)
	}
	if o.has('u') {
		now = now.UTC()
	}
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

// strftime fills in a format; a letter that it does not know is given back.
func strftime(t time.Time, format string) (text, unknown string) {
	layouts := map[byte]string{
		'Y': "2006", 'm': "01", 'd': "02", 'H': "15", 'M': "04", 'S': "05", 'y': "06", 'I': "03", 'p': "PM", 'j': "002",
		'a': "Mon", 'A': "Monday", 'b': "Jan", 'B': "January", 'h': "Jan", 'e': "_2", 'Z': "MST", 'z': "-0700",
		'F': "2006-01-02", 'T': "15:04:05", 'R': "15:04", 'D': "01/02/06", 'c': "Mon Jan _2 15:04:05 2006",
	}
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
