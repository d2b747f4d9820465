package mac

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode"
)

func cat(p *proc) int {
	_, names, status, ok := p.options("u")
	if !ok {
		return status
	}
	return p.inputs(names, exitFailed, func(_ string, r io.Reader) { _, _ = io.Copy(p.stdout, r) })
}

// dd copies exactly the given number of bytes and reads none ahead: the rest of a shared standard
// input belongs to the next reader.
func dd(p *proc) int {
	in, out, size, count := io.Reader(p.input()), p.stdout, int64(512), int64(-1)
	for _, arg := range p.args() {
		name, value, _ := strings.Cut(arg, "=")
		switch name {
		case "if":
			file, err := p.open(value)
			if err != nil {
				return p.fail(exitFailed, "%s: %s", value, why(err))
			}
			defer file.Close() // it is only read
			in = file
		case "of":
			file, err := p.create(value, os.O_TRUNC)
			if err != nil {
				return p.fail(exitFailed, "%s: %s", value, why(err))
			}
			defer file.Close() // errors of writes are checked
			out = file
		case "bs", "count":
			n, err := strconv.ParseInt(value, 10, 32)
			if err != nil || n < 0 || name == "bs" && n == 0 {
				return p.fail(exitFailed, "%s: illegal numeric value", arg)
			}
			if name == "bs" {
				size = n
			} else {
				count = n
			}
		default:
			return p.unmodelled(arg)
		}
	}
	return p.copyBlocks(in, out, size, count)
}

func (p *proc) copyBlocks(in io.Reader, out io.Writer, size, count int64) int {
	var whole, part, total int64
	var err error
	if size == 1 && count >= 0 {
		// Equivalent to single bytes, but in one read.
		whole, err = io.CopyN(out, in, count)
		total = whole
	} else {
		block := make([]byte, min(size, 64<<20))
		for whole+part != count && err == nil {
			var n int
			n, err = in.Read(block)
			if n == 0 {
				continue
			}
			if int64(n) == size {
				whole++
			} else {
				part++
			}
			total += int64(n)
			if _, failed := out.Write(block[:n]); failed != nil {
				err = failed
			}
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return p.fail(exitFailed, "%s", why(err))
	}
	_, _ = fmt.Fprintf(p.stderr, "%d+%d records in\n%d+%d records out\n%d bytes transferred in 0.000042 secs (%d bytes/sec)\n",
		whole, part, whole, part, total, total*23809)
	return 0
}

func head(p *proc) int {
	o, names, status, ok := p.options("n:c:")
	if !ok {
		return status
	}
	lines, bytes, status, ok := p.counts(o, 10)
	if !ok {
		return status
	}
	gap := ""
	return p.inputs(names, exitFailed, func(name string, r io.Reader) {
		if len(names) > 1 {
			p.printf("%s==> %s <==\n", gap, name)
			gap = "\n"
		}
		if o.has('c') {
			_, _ = io.CopyN(p.stdout, r, int64(bytes))
			return
		}
		in := bufio.NewReader(r)
		for range lines {
			line, err := in.ReadBytes('\n')
			_, _ = p.stdout.Write(line)
			if err != nil {
				return
			}
		}
	})
}

// counts reads the numbers of -n and -c.
func (p *proc) counts(o options, lines int) (n, c, status int, ok bool) {
	n = lines
	for letter, into := range map[byte]*int{'n': &n, 'c': &c} {
		if !o.has(letter) {
			continue
		}
		value, err := strconv.Atoi(o[letter])
		if err != nil || value < 0 {
			return 0, 0, p.fail(exitFailed, "illegal count -- %s", o[letter]), false
		}
		*into = value
	}
	return n, c, 0, true
}

func tail(p *proc) int {
	o, names, status, ok := p.options("n:c:")
	if !ok {
		return status
	}
	var from bool
	for letter, value := range o {
		if o[letter], ok = strings.CutPrefix(value, "+"); ok {
			from = true
		}
	}
	n, c, status, ok := p.counts(o, 10)
	if !ok {
		return status
	}
	return p.inputs(names, exitFailed, func(name string, r io.Reader) {
		data, _ := io.ReadAll(r)
		parts := bytes.SplitAfter(data, []byte("\n"))
		if len(parts[len(parts)-1]) == 0 {
			parts = parts[:len(parts)-1]
		}
		switch {
		case o.has('c') && from:
			data = data[min(max(c-1, 0), len(data)):]
		case o.has('c'):
			data = data[max(len(data)-c, 0):]
		case from:
			data = bytes.Join(parts[min(max(n-1, 0), len(parts)):], nil)
		default:
			data = bytes.Join(parts[max(len(parts)-n, 0):], nil)
		}
		_, _ = p.stdout.Write(data)
	})
}

func tee(p *proc) int {
	o, names, status, ok := p.options("a")
	if !ok {
		return status
	}
	flag := os.O_TRUNC
	if o.has('a') {
		flag = os.O_APPEND
	}
	outs := []io.Writer{p.stdout}
	for _, name := range names {
		file, err := p.create(name, flag)
		if err != nil {
			status = p.fail(exitFailed, "%s: %s", name, why(err))
			continue
		}
		defer file.Close() // errors of writes are checked
		outs = append(outs, file)
	}
	if _, err := io.Copy(io.MultiWriter(outs...), p.input()); err != nil {
		return p.fail(exitFailed, "%s", why(err))
	}
	return status
}

func wc(p *proc) int {
	o, names, status, ok := p.options("lwc")
	if !ok {
		return status
	}
	return p.inputs(names, exitFailed, func(name string, r io.Reader) {
		data, _ := io.ReadAll(r)
		counts := map[byte]int{'l': bytes.Count(data, []byte("\n")), 'w': len(bytes.FieldsFunc(data, unicode.IsSpace)), 'c': len(data)}
		for _, letter := range []byte("lwc") {
			if o.has(letter) || len(o) == 0 {
				p.printf(" %7d", counts[letter])
			}
		}
		if len(names) > 0 {
			p.printf(" %s", name)
		}
		p.printf("\n")
	})
}
