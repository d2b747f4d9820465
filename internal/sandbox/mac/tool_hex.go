package mac

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// bytesOf reads all inputs, or at most a number of their bytes.
func (p *proc) bytesOf(names []string, count string) (data []byte, status int) {
	status = p.inputs(names, exitFailed, func(_ string, r io.Reader) {
		more, _ := io.ReadAll(r)
		data = append(data, more...)
	})
	if count == "" {
		return data, status
	}
	n, err := strconv.Atoi(count)
	if err != nil || n < 0 {
		return nil, p.fail(exitFailed, "%s: illegal value", count)
	}
	return data[:min(n, len(data))], status
}

// od prints bytes in hexadecimal in BSD's form: four columns a byte, the last line filled up.
func od(p *proc) int {
	o, names, status, ok := p.options("A:vt:N:")
	switch {
	case !ok:
		return status
	case o['A'] != "n" || o['t'] != "x1" || !o.has('v'):
		return p.unmodelled("od without -An -v -tx1")
	}
	data, status := p.bytesOf(names, o['N'])
	var b strings.Builder
	for len(data) > 0 {
		line := data[:min(16, len(data))]
		data = data[len(line):]
		b.WriteString("         ")
		for _, c := range line {
			fmt.Fprintf(&b, "  %02x", c)
		}
		b.WriteString(strings.Repeat("    ", 16-len(line)) + "\n")
	}
	p.printf("%s", b.String())
	return status
}

// xxd prints bytes in plain hexadecimal, thirty a line, or reads them back.
func xxd(p *proc) int {
	o, names, status, ok := p.options("prc:l:")
	switch {
	case !ok:
		return status
	case !o.has('p') || len(names) > 1:
		return p.unmodelled("xxd without -p, or with an output file")
	}
	data, status := p.bytesOf(names, o['l'])
	if status != 0 {
		return exitUsage
	}
	if o.has('r') {
		data, err := hex.DecodeString(string(bytes.Join(bytes.Fields(data), nil)))
		if err != nil {
			return p.unmodelled("-r with what is not plain hexadecimal")
		}
		_, _ = p.stdout.Write(data)
		return 0
	}
	columns := 30
	if o.has('c') {
		n, err := strconv.Atoi(o['c'])
		if err != nil || n < 1 || n > 256 {
			return p.fail(exitFailed, "invalid number of columns (max. 256).")
		}
		columns = n
	}
	for len(data) > 0 {
		line := data[:min(columns, len(data))]
		data = data[len(line):]
		p.printf("%x\n", line)
	}
	return 0
}
