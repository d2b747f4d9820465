package mac

import (
	"cmp"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"
)

func statTool(p *proc) int {
	o, names, status, ok := p.options("f:Ln")
	switch {
	case !ok:
		return status
	case !o.has('f') || len(names) == 0:
		return p.unmodelled("stat without -f FORMAT and a file")
	}
	end := "\n"
	if o.has('n') {
		end = ""
	}
	for _, name := range names {
		var n node
		err := p.visit(func(v *visit) (err error) {
			n, err = v.find(p.user, p.dir, name, o.has('L'))
			return err
		})
		if err != nil {
			status = p.fail(exitFailed, "%s: stat: %s", name, why(err))
			continue
		}
		text, unknown := statFormat(p.session, n, name, o['f'])
		if unknown != "" {
			return p.unmodelled("-f " + unknown)
		}
		p.printf("%s%s", text, end)
	}
	return status
}

// statFormat fills in a format; it returns an unknown letter.
func statFormat(s *session, n node, name, format string) (text, unknown string) {
	values := statValues(s, n, name)
	var b strings.Builder
	for {
		before, rest, ok := strings.Cut(format, "%")
		b.WriteString(before)
		if !ok {
			return b.String(), ""
		}
		end := strings.IndexAny(rest, "ugpzmaciNTYn%tlHd")
		// HT and similar forms are a prefix with a letter.
		for end >= 0 && end+1 < len(rest) && rest[end] == 'H' {
			end++
		}
		if end < 0 {
			return "", "%" + rest
		}
		value, known := values[rest[:end+1]]
		if !known {
			return "", "%" + rest[:end+1]
		}
		b.WriteString(value)
		format = rest[end+1:]
	}
}

func statValues(s *session, n node, name string) map[string]string {
	info := n.stat()
	record := systemRecord(n.info)
	kind, bits := kindOf(info.Mode())
	changed := s.changedAt(n)
	low := fmt.Sprintf("%o", uint32(modeBits(info.Mode()))&0o777)
	return map[string]string{
		"Su": s.userName(n.owner.UID), "Sg": groupName(n.owner.GID), "u": fmt.Sprint(n.owner.UID), "g": fmt.Sprint(n.owner.GID),
		"Lp": low, "OLp": low, "p": fmt.Sprintf("%o", bits|uint32(modeBits(info.Mode()))), "Op": fmt.Sprintf("%o", bits|uint32(modeBits(info.Mode()))),
		"OMp": fmt.Sprintf("%o", uint32(modeBits(info.Mode()))>>9), "Mp": fmt.Sprintf("%o", uint32(modeBits(info.Mode()))>>9),
		"Sp": modeText(info.Mode()), "z": fmt.Sprint(info.Size()),
		"m": fmt.Sprint(info.ModTime().Unix()), "Sm": info.ModTime().Format("Jan _2 15:04:05 2006"),
		"c": fmt.Sprint(changed.Unix()), "Sc": changed.Format("Jan _2 15:04:05 2006"), "i": fmt.Sprint(n.number()), "l": fmt.Sprint(record.Nlink), "N": name, "HT": kind,
		"T": kindSign(info.Mode()), "n": "\n", "t": "\t", "%": "%", "Y": "",
	}
}

func modeBits(mode fs.FileMode) fs.FileMode {
	bits := mode.Perm()
	if mode&fs.ModeSticky != 0 {
		bits |= sticky
	}
	if mode&fs.ModeSetuid != 0 {
		bits |= 0o4000
	}
	if mode&fs.ModeSetgid != 0 {
		bits |= 0o2000
	}
	return bits
}

func kindOf(mode fs.FileMode) (string, uint32) {
	switch {
	case mode.IsDir():
		return "Directory", 0o40000
	case mode&fs.ModeSymlink != 0:
		return "Symbolic Link", 0o120000
	case mode&fs.ModeCharDevice != 0:
		return "Character Device", 0o020000
	case mode.IsRegular():
		return "Regular File", 0o100000
	}
	return "???", 0
}

func kindSign(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "/"
	case mode&fs.ModeSymlink != 0:
		return "@"
	case mode.IsRegular() && mode&0o111 != 0:
		return "*"
	}
	return ""
}

// modeText formats a mode as ls does.
func modeText(mode fs.FileMode) string {
	text := []byte("-rwxrwxrwx")
	switch {
	case mode.IsDir():
		text[0] = 'd'
	case mode&fs.ModeSymlink != 0:
		text[0] = 'l'
	case mode&fs.ModeCharDevice != 0:
		text[0] = 'c'
	}
	for i := range 9 {
		if mode&(1<<(8-i)) == 0 {
			text[i+1] = '-'
		}
	}
	if mode&fs.ModeSticky != 0 {
		if text[9] = 'T'; mode&1 != 0 {
			text[9] = 't'
		}
	}
	return string(text)
}

func ls(p *proc) int {
	o, names, status, ok := p.options("1aldAin")
	if !ok {
		return status
	}
	if len(names) == 0 {
		names = []string{"."}
	}
	if o.has('n') {
		o['l'] = ""
	}
	names = slices.Clone(names)
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(p.rank(o, a), p.rank(o, b)), strings.Compare(a, b))
	})
	// The list is printed after the disk is unlocked, since its reader may be slow.
	var text capture
	p, screen := p.printing(&text), p
	for i, name := range names {
		err := screen.visit(func(v *visit) error {
			n, err := v.find(p.user, p.dir, name, !o.has('l') && !o.has('d') || strings.HasSuffix(name, "/"))
			if err != nil {
				return err
			}
			if o.has('d') || !n.folder() {
				p.list(v, o, name, n)
				return nil
			}
			children, err := v.list(p.user, n)
			if err != nil {
				return err
			}
			p.listFolder(v, o, n, children, i, len(names), name)
			return nil
		})
		if err != nil {
			status = p.fail(exitFailed, "%s: %s", name, why(err))
		}
	}
	screen.printf("%s", text.bytes())
	return status
}

// rank orders the operands of ls: what is not a folder comes first.
func (p *proc) rank(o options, name string) int {
	rank := 0
	err := p.visit(func(v *visit) error {
		n, err := v.find(p.user, p.dir, name, !o.has('l'))
		if err == nil && n.folder() && !o.has('d') {
			rank = 1
		}
		return err
	})
	if err != nil {
		return -1 // an error is reported before everything else
	}
	return rank
}

// printing returns the same process with another standard output.
func (p *proc) printing(to io.Writer) *proc {
	q := *p
	q.stdout = to
	return &q
}

func (p *proc) listFolder(v *visit, o options, folder node, children []node, index, of int, name string) {
	if of > 1 {
		if index > 0 {
			p.printf("\n")
		}
		p.printf("%s:\n", name)
	}
	if o.has('l') {
		p.printf("total %d\n", 8*len(children))
	}
	if o.has('a') {
		p.list(v, o, ".", folder)
		p.list(v, o, "..", folder)
	}
	for _, child := range children {
		base := child.path[strings.LastIndexByte(child.path, '/')+1:]
		if !strings.HasPrefix(base, ".") || o.has('a') || o.has('A') {
			p.list(v, o, base, child)
		}
	}
}

func (p *proc) list(v *visit, o options, name string, n node) {
	if o.has('i') {
		p.printf("%d ", n.number())
	}
	if !o.has('l') {
		p.printf("%s\n", name)
		return
	}
	info := n.stat()
	user, group := v.session.userName(n.owner.UID), groupName(n.owner.GID)
	if o.has('n') {
		user, group = strconv.Itoa(n.owner.UID), strconv.Itoa(n.owner.GID)
	}
	when := info.ModTime().Format("Jan _2 15:04")
	if v.session.shown().Sub(info.ModTime()).Abs() > 182*24*time.Hour {
		when = info.ModTime().Format("Jan _2  2006")
	}
	target := ""
	if n.link() {
		if text, err := v.readlink(n); err == nil {
			target = " -> " + text
		}
	}
	p.printf("%s  %d %s  %s  %d %s %s%s\n", modeText(info.Mode()), systemRecord(n.info).Nlink, user, group, info.Size(), when, name, target)
}
