package mac

import (
	"archive/zip"
	"bytes"
	"io"
	"os"
	"path"
	"strings"
)

// unzip unpacks an archive: -q, -o and -d FOLDER are modelled.
func unzip(p *proc) int {
	args, folder, archive := p.args(), p.dir, ""
	for i := 0; i < len(args); i++ {
		switch a := args[i]; {
		case a == "-d" && i+1 < len(args):
			i++
			folder = p.absolute(args[i])
		case a == "-q", a == "-o", a == "-qo", a == "-oq":
		case strings.HasPrefix(a, "-") || archive != "":
			return p.unmodelled(a)
		default:
			archive = a
		}
	}
	const exitNoArchive = 9
	in, err := p.open(archive)
	if err != nil {
		return p.fail(exitNoArchive, "cannot find or open %s, %s.zip or %s.ZIP.", archive, archive, archive)
	}
	defer in.Close() // it is only read
	data, err := io.ReadAll(in)
	if err != nil {
		return p.fail(exitNoArchive, "%s", why(err))
	}
	all, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		p.printf("[%s]\n  End-of-central-directory signature not found.\n", archive)
		return exitNoArchive
	}
	for _, f := range all.File {
		if err := p.unzipFile(folder, f); err != nil {
			return p.fail(exitFailed, "cannot create %s: %s", path.Join(folder, f.Name), why(err))
		}
	}
	return 0
}

func (p *proc) unzipFile(folder string, f *zip.File) error {
	from, err := f.Open()
	if err != nil {
		return err
	}
	defer from.Close() // it is only read
	data, err := io.ReadAll(from)
	if err != nil {
		return err
	}
	to := path.Join(folder, path.Clean("/"+f.Name))
	return p.visit(func(v *visit) error {
		if strings.HasSuffix(f.Name, "/") {
			return v.mkdirAll(p, to, 0o755)
		}
		return v.writeAs(p, to, data, os.O_TRUNC, f.Mode().Perm())
	})
}
