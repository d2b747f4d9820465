package mac

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
)

// tarCall is a command line of bsdtar, which unpacks and lists.
type tarCall struct {
	*proc
	list, extract, zipped, loud bool
	archive, folder             string
	status                      int
}

func tarTool(p *proc) int {
	c := tarCall{proc: p}
	if status, ok := c.parse(); !ok {
		return status
	}
	if c.list == c.extract {
		return c.fail(exitFailed, "Must specify one of -c, -r, -t, -u, -x")
	}
	if c.folder != "" && !c.isFolder(c.folder) {
		return c.fail(exitFailed, "could not chdir to '%s'", c.folder)
	}
	if err := c.read(); err != nil {
		_, _ = c.stderr.Write([]byte("tar: Error opening archive: " + err.Error() + "\n"))
		return exitFailed
	}
	if c.status != 0 {
		_, _ = c.stderr.Write([]byte("tar: Error exit delayed from previous errors.\n"))
	}
	return c.status
}

// parse reads the letters, with a hyphen or, in the first word, without.
func (c *tarCall) parse() (status int, ok bool) {
	o, args := options{'f': "-"}, c.args()
	for first := true; len(args) > 0; first = false {
		word := args[0]
		args = args[1:]
		if !strings.HasPrefix(word, "-") && !first || strings.HasPrefix(word, "--") || word == "-" {
			if word == "--no-same-owner" || word == "--no-mac-metadata" || word == "--no-xattrs" {
				continue
			}
			return c.unmodelled(word), false
		}
		left, wants, ok := o.take("txzvompf:C:", strings.TrimPrefix(word, "-"), args)
		switch {
		case wants != 0:
			return c.fail(exitFailed, "Option -%c requires an argument", wants), false
		case !ok:
			return c.unmodelled(word), false
		}
		args = left
	}
	c.list, c.extract, c.zipped, c.loud = o.has('t'), o.has('x'), o.has('z'), o.has('v')
	c.archive, c.folder = o['f'], o['C']
	return 0, true
}

// read reads the archive. It detects compression itself, as bsdtar does.
func (c *tarCall) read() error {
	file, err := c.open(c.archive)
	if err != nil {
		return archiveFault("Failed to open '" + c.archive + "': " + why(err))
	}
	defer file.Close() // it is only read
	text, err := unpacked(file)
	if err != nil {
		return archiveFault("Unrecognized archive format")
	}
	for entries := 0; ; entries++ {
		head, err := text.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil && entries == 0:
			return archiveFault("Unrecognized archive format")
		case err != nil:
			return archiveFault("Truncated input file (needed 512 bytes, only 0 available)")
		case c.list:
			c.printf("%s\n", head.Name)
		default:
			if c.loud {
				_, _ = c.stderr.Write([]byte("x " + head.Name + "\n"))
			}
			if err := c.unpack(head, text); err != nil {
				c.status = exitFailed
				_, _ = c.stderr.Write([]byte(head.Name + ": " + why(err) + "\n"))
			}
		}
	}
}

// unpacked reads the first two bytes of an archive, which show whether it is compressed.
func unpacked(file io.Reader) (*tar.Reader, error) {
	first := make([]byte, 2)
	n, err := io.ReadFull(file, first)
	if err != nil {
		return nil, err
	}
	whole := io.MultiReader(strings.NewReader(string(first[:n])), file)
	if string(first) != "\x1f\x8b" {
		return tar.NewReader(whole), nil
	}
	zipped, err := gzip.NewReader(whole)
	if err != nil {
		return nil, err
	}
	return tar.NewReader(zipped), nil
}

// unpack writes one entry. A file replaces the previous one: its inode is new.
func (c *tarCall) unpack(head *tar.Header, text io.Reader) error {
	name := strings.TrimSuffix(head.Name, "/")
	for part := range strings.SplitSeq(name, "/") {
		if part == ".." {
			return archiveFault("Path contains '..'")
		}
	}
	base := path.Join(c.dir, c.folder)
	if path.IsAbs(c.folder) {
		base = c.folder
	}
	target := path.Join(base, strings.TrimLeft(name, "/"))
	err := c.visit(func(v *visit) error {
		if err := v.throughLink(c.user, base, strings.TrimLeft(name, "/")); err != nil {
			return err
		}
		return c.clear(v, head, target)
	})
	if err != nil || head.Typeflag != tar.TypeReg {
		return err
	}
	out, err := c.create(target, os.O_TRUNC)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, text)
	if err = errors.Join(err, out.Close()); err != nil {
		return err
	}
	return c.visit(func(v *visit) error {
		n, err := v.find(c.user, "/", target, false)
		if err == nil {
			err = v.chmod(c.user, n, func(o owner) owner { o.Mode = fs.FileMode(head.Mode) & 0o777 &^ c.umask; return o })
		}
		return err
	})
}

// throughLink refuses an entry below a link, which would be written outside the target.
func (v *visit) throughLink(who user, base, name string) error {
	parts := strings.Split(name, "/")
	for i := range parts[:len(parts)-1] {
		behind := strings.Join(parts[:i+1], "/")
		if n, err := v.find(who, "/", path.Join(base, behind), false); err == nil && n.link() {
			return archiveFault("Cannot extract through symlink " + behind)
		}
	}
	return nil
}

// clear creates the folder of an entry and removes what is at its path; it keeps folders, and replaces
// links.
func (c *tarCall) clear(v *visit, head *tar.Header, target string) error {
	folder := path.Dir(target)
	if head.Typeflag == tar.TypeDir {
		folder = target
	}
	if err := v.mkdirAll(c.proc, folder, 0o777&^c.umask); err != nil || head.Typeflag == tar.TypeDir {
		return err
	}
	n, err := v.resolve(c.user, "/", target, false)
	if err == nil && n.exists() {
		err = v.remove(c.user, n)
		n.info = nil
	}
	switch {
	case err != nil || head.Typeflag == tar.TypeReg:
		return err
	case head.Typeflag == tar.TypeSymlink:
		return v.symlink(c.proc, head.Linkname, n)
	}
	return errors.New("not modelled: an entry of this kind")
}

// isFolder reports whether a name leads to a folder.
func (p *proc) isFolder(name string) (yes bool) {
	_ = p.visit(func(v *visit) error {
		n, err := v.find(p.user, p.dir, name, true)
		yes = err == nil && n.folder()
		return nil
	})
	return yes
}

// archiveFault is bsdtar's message about an archive.
type archiveFault string

// Error returns the text.
func (f archiveFault) Error() string { return string(f) }
