package mac

import (
	"bytes"
	"cmp"
	"io"
	"slices"
	"strconv"
	"strings"
)

// lines returns the lines of all inputs without their line breaks.
func (p *proc) lines(names []string, failed int) (lines []string, status int) {
	status = p.inputs(names, failed, func(_ string, r io.Reader) {
		data, _ := io.ReadAll(r)
		for line := range strings.Lines(string(data)) {
			lines = append(lines, strings.TrimSuffix(line, "\n"))
		}
	})
	return lines, status
}

func (p *proc) printLines(lines []string) {
	var b bytes.Buffer
	for _, line := range lines {
		b.WriteString(line + "\n")
	}
	_, _ = p.stdout.Write(b.Bytes())
}

func sortTool(p *proc) int {
	o, names, status, ok := p.options("urn")
	if !ok {
		return status
	}
	lines, status := p.lines(names, exitUsage)
	order := strings.Compare
	if o.has('n') {
		order = func(a, b string) int { return cmp.Or(cmp.Compare(number(a), number(b)), strings.Compare(a, b)) }
	}
	slices.SortStableFunc(lines, order)
	if o.has('r') {
		slices.Reverse(lines)
	}
	if o.has('u') {
		lines = slices.Compact(lines)
	}
	p.printLines(lines)
	return status
}

// number returns the number at the start of a line, as sort -n reads it, or 0.
func number(line string) float64 {
	line = strings.TrimLeft(line, " \t")
	end := 0
	for end < len(line) && (line[end] >= '0' && line[end] <= '9' || line[end] == '.' || end == 0 && line[end] == '-') {
		end++
	}
	n, _ := strconv.ParseFloat(line[:end], 64)
	return n
}

func uniq(p *proc) int {
	o, names, status, ok := p.options("cdu")
	switch {
	case !ok:
		return status
	case len(names) > 1:
		return p.unmodelled(names[1])
	}
	lines, status := p.lines(names, exitFailed)
	for i := 0; i < len(lines); {
		n := 1
		for i+n < len(lines) && lines[i+n] == lines[i] {
			n++
		}
		if !(o.has('d') && n == 1 || o.has('u') && n > 1) {
			if o.has('c') {
				p.printf("%4d ", n)
			}
			p.printf("%s\n", lines[i])
		}
		i += n
	}
	return status
}

func cut(p *proc) int {
	o, names, status, ok := p.options("d:f:c:s")
	if !ok {
		return status
	}
	list := o['f'] + o['c']
	if o.has('f') == o.has('c') || list == "" {
		return p.usage("cut -c list [file ...]\n       cut -f list [-s] [-d delim] [file ...]")
	}
	delimiter := "\t"
	if o.has('d') {
		delimiter = o['d']
	}
	if len(delimiter) != 1 {
		return p.fail(exitFailed, "bad delimiter")
	}
	picked, ok := picks(list)
	if !ok {
		return p.fail(exitFailed, "[-cf] list: illegal list value")
	}
	lines, status := p.lines(names, exitFailed)
	for _, line := range lines {
		parts, glue := strings.Split(line, delimiter), delimiter
		if o.has('c') {
			parts, glue = strings.Split(line, ""), ""
		} else if len(parts) == 1 {
			if !o.has('s') {
				p.printf("%s\n", line)
			}
			continue
		}
		var kept []string
		for i, part := range parts {
			if picked(i + 1) {
				kept = append(kept, part)
			}
		}
		p.printf("%s\n", strings.Join(kept, glue))
	}
	return status
}

// picks reads a list such as 1,3-5,7-.
func picks(list string) (func(int) bool, bool) {
	var spans [][2]int
	for span := range strings.SplitSeq(list, ",") {
		first, last, ranged := strings.Cut(span, "-")
		from, err1 := strconv.Atoi(cmp.Or(first, "1"))
		to, err2 := strconv.Atoi(cmp.Or(last, "1000000000"))
		if !ranged {
			to, err2 = from, err1
		}
		if err1 != nil || err2 != nil || from < 1 || span == "-" {
			return nil, false
		}
		spans = append(spans, [2]int{from, to})
	}
	return func(n int) bool {
		return slices.ContainsFunc(spans, func(s [2]int) bool { return s[0] <= n && n <= s[1] })
	}, true
}

func tr(p *proc) int {
	o, sets, status, ok := p.options("cCds")
	if !ok {
		return status
	}
	if len(sets) == 0 || len(sets) > 2 || len(sets) == 1 && !o.has('d') && !o.has('s') {
		return p.usage("tr [-Ccsu] string1 string2\n       tr [-Ccu] -d string1\n       tr [-Ccu] -s string1")
	}
	from, to := characters(sets[0]), ""
	if len(sets) == 2 {
		to = characters(sets[1])
	}
	inverse := o.has('c') || o.has('C')
	data, err := io.ReadAll(p.input())
	if err != nil {
		return p.fail(exitFailed, "%s", why(err))
	}
	squeezed := to
	if to == "" {
		squeezed = from
	}
	var out []byte
	for _, c := range data {
		at := strings.IndexByte(from, c)
		in := at >= 0 != inverse
		switch {
		case in && o.has('d'):
			continue
		case in && to != "":
			if inverse || at >= len(to) {
				at = len(to) - 1
			}
			c = to[at]
		}
		if o.has('s') && len(out) > 0 && out[len(out)-1] == c && strings.IndexByte(squeezed, c) >= 0 != (inverse && to == "") {
			continue
		}
		out = append(out, c)
	}
	_, _ = p.stdout.Write(out)
	return 0
}

// characters expands a set of tr: escapes, ranges and classes.
func characters(set string) string {
	for class, spelt := range map[string]string{
		"[:upper:]": "A-Z", "[:lower:]": "a-z", "[:digit:]": "0-9", "[:alpha:]": "A-Za-z", "[:alnum:]": "0-9A-Za-z",
		"[:space:]": "\t-\r ", "[:xdigit:]": "0-9A-Fa-f", "[:cntrl:]": "\x00-\x1f\x7f",
	} {
		set = strings.ReplaceAll(set, class, spelt)
	}
	set = unescape(octal(set))
	var out []byte
	for i := 0; i < len(set); i++ {
		if i+2 < len(set) && set[i+1] == '-' && set[i+2] >= set[i] {
			for c := int(set[i]); c <= int(set[i+2]); c++ {
				out = append(out, byte(c))
			}
			i += 2
			continue
		}
		out = append(out, set[i])
	}
	return string(out)
}

// octal expands escapes with up to three octal digits.
func octal(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		end := i + 1
		for end < len(text) && end < i+4 && text[end] >= '0' && text[end] <= '7' {
			end++
		}
		switch n, err := strconv.ParseUint(text[i+1:end], 8, 8); {
		case text[i] != '\\' || i+1 == len(text):
			b.WriteByte(text[i])
		case err == nil:
			b.WriteByte(byte(n))
			i = end - 1
		default: // another escape, whose letter must not start one
			b.WriteString(text[i : i+2])
			i++
		}
	}
	return b.String()
}
