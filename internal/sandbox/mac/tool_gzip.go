package mac

import (
	"compress/gzip"
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
)

// gzipTool unpacks; packing is not modelled.
func gzipTool(p *proc) int {
	o, names, status, ok := p.options("dcfkt")
	switch {
	case !ok:
		return status
	case !o.has('d') && !o.has('t') && p.name() != "gunzip":
		return p.unmodelled("packing")
	}
	if len(names) == 0 {
		names = []string{"-"}
	}
	for _, name := range names {
		if err := p.gunzip(o, name); err != nil {
			status = p.fail(exitFailed, "%s: %s", strings.Replace(name, "-", "(stdin)", 1), gzipWords(err))
		}
	}
	return status
}

// gzipWords are gzip's messages for a file that is not an archive.
func gzipWords(err error) string {
	switch {
	case errors.Is(err, gzip.ErrHeader):
		return "not in gzip format"
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "unexpected end of file"
	case errors.Is(err, gzip.ErrChecksum):
		return "crc error"
	}
	return why(err)
}

// gunzip unpacks one file, next to it unless -c is given, and then removes the packed one.
func (p *proc) gunzip(o options, name string) error {
	in, err := p.open(name)
	if err != nil {
		return err
	}
	defer in.Close() // it is only read
	text, err := gzip.NewReader(in)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return err
	}
	if o.has('t') {
		_, err = io.Copy(io.Discard, text)
		return err
	}
	plain, cut := strings.CutSuffix(name, ".gz")
	if name == "-" || o.has('c') {
		_, err = io.Copy(p.stdout, text)
		return err
	}
	if !cut {
		return errors.New("unknown suffix -- ignored")
	}
	return p.gunzipBeside(text, name, plain, o.has('k'), o.has('f'))
}

func (p *proc) gunzipBeside(text io.Reader, packed, plain string, keep, over bool) error {
	err := p.visit(func(v *visit) error {
		if _, err := v.find(p.user, p.dir, plain, true); err == nil && !over {
			return syscall.EEXIST
		}
		return nil
	})
	if err != nil {
		return err
	}
	out, err := p.create(plain, os.O_TRUNC)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, text)
	if err = errors.Join(err, out.Close()); err != nil || keep {
		return err
	}
	return p.visit(func(v *visit) error {
		n, err := v.find(p.user, p.dir, packed, false)
		if err != nil {
			return err
		}
		return v.remove(p.user, n)
	})
}
