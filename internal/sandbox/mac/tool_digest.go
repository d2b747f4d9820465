package mac

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	gohash "hash"
	"io"
	"os"
)

func shasum(p *proc) int {
	o, names, status, ok := p.options("a:b")
	if !ok {
		return status
	}
	var kind func() gohash.Hash
	switch o['a'] {
	case "", "1":
		kind = sha1.New
	case "256":
		kind = sha256.New
	case "512":
		kind = sha512.New
	default:
		return p.unmodelled("-a " + o['a'])
	}
	return p.inputs(names, exitFailed, func(name string, r io.Reader) {
		sum := kind()
		_, _ = io.Copy(sum, r) // a hash accepts everything
		p.printf("%s  %s\n", hex.EncodeToString(sum.Sum(nil)), name)
	})
}

// openssl computes the SHA-256 of its input, and nothing else here.
func openssl(p *proc) int {
	if args := p.args(); len(args) != 3 || args[0] != "dgst" || args[1] != "-sha256" || args[2] != "-r" {
		return p.unmodelled("other uses than dgst -sha256 -r")
	}
	return p.inputs(nil, exitFailed, func(_ string, r io.Reader) {
		sum := sha256.New()
		_, _ = io.Copy(sum, r) // a hash accepts everything
		p.printf("%s *stdin\n", hex.EncodeToString(sum.Sum(nil)))
	})
}

func base64Tool(p *proc) int {
	argv := append([]string(nil), p.argv...)
	for i, arg := range argv {
		if arg == "--decode" {
			argv[i] = "-d"
		}
	}
	q := *p
	q.argv = argv
	o, names, status, ok := q.options("dDi:o:")
	if !ok {
		return status
	}
	if o.has('i') {
		names = []string{o['i']}
	}
	var data []byte
	if status := p.inputs(names, exitFailed, func(_ string, r io.Reader) { data, _ = io.ReadAll(r) }); status != 0 {
		return status
	}
	var out []byte
	if o.has('d') || o.has('D') {
		data = bytes.Join(bytes.Fields(data), nil)
		out = make([]byte, base64.StdEncoding.DecodedLen(len(data)))
		n, err := base64.StdEncoding.Decode(out, data)
		if err != nil {
			return p.fail(exitFailed, "stdin: (null): error decoding base64 input stream")
		}
		out = out[:n]
	} else {
		out = append([]byte(base64.StdEncoding.EncodeToString(data)), '\n')
	}
	sink := io.Writer(p.stdout)
	if o.has('o') {
		file, err := p.create(o['o'], os.O_TRUNC)
		if err != nil {
			return p.fail(exitFailed, "%s: %s", o['o'], why(err))
		}
		defer file.Close() // errors of writes are checked
		sink = file
	}
	if _, err := sink.Write(out); err != nil {
		return p.fail(exitFailed, "%s", why(err))
	}
	return 0
}

func cmpTool(p *proc) int {
	o, names, status, ok := p.options("s")
	switch {
	case !ok:
		return status
	case len(names) != 2:
		return p.usage("cmp [-s] file1 file2")
	}
	var data [2][]byte
	for i, name := range names {
		if status := p.inputs([]string{name}, exitUsage, func(_ string, r io.Reader) { data[i], _ = io.ReadAll(r) }); status != 0 {
			return status
		}
	}
	a, b := data[0], data[1]
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			if !o.has('s') {
				p.printf("%s %s differ: char %d, line %d\n", names[0], names[1], i+1, bytes.Count(a[:i], []byte("\n"))+1)
			}
			return exitFailed
		}
	}
	if len(a) == len(b) {
		return 0
	}
	if !o.has('s') {
		shorter := names[0]
		if len(b) < len(a) {
			shorter = names[1]
		}
		p.complain("EOF on %s", shorter)
	}
	return exitFailed
}
