package mac

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// Programs that are not scripts are texts here, with lines that describe them:
//
//	version=2.32.1       the version that the program reports
//	program=tart         which program it is, at any path
//	amfi                 its signature is valid, but macOS kills it anyway
//	resources=none       its bundle's resources were never sealed: codesign finds the bundle invalid, but it runs
//	tampered             its bytes are not those that were signed
//	team=ABCDE12345      the team that signed it; without it, it is signed ad hoc
//	signature=adhoc      someone has signed it again on the machine
//
// A program that starts with the word unsigned was never signed; all others are signed.
const (
	unsignedMark  = "unsigned"
	tamperedLine  = "tampered"
	amfiLine      = "amfi"
	unsealedLine  = "resources=none"
	signatureLine = "signature=adhoc"
	// SampleLine is the first line of the sandbox's own downloads.
	SampleLine = "macfleet sandbox sample"
)

// seal is the state of a program's signature.
type seal int

const (
	sealed seal = iota
	unsealed
	brokenSeal
)

// codeLine matches a line that only a program has.
var codeLine = regexp.MustCompile(`(?m)^(version=|program=|team=|signature=|tampered$|` + SampleLine + `$)`)

// codeHead is how much of a program is read, from its start and from its end.
const codeHead = 256 << 10

// isCode reports whether the first bytes of a file are those of a program and not of a script.
func isCode(name string, head []byte) bool {
	first, _, _ := bytes.Cut(head, []byte("\n"))
	switch {
	case bytes.HasPrefix(head, []byte("#!")):
		return false
	case bytes.IndexByte(first, 0) >= 0, bytes.HasPrefix(head, []byte(unsignedMark)), codeLine.Match(head):
		return true
	}
	return isTart(name, head) || isKubelet(name, head)
}

// sealOf judges a program by its bytes.
func sealOf(head []byte) seal {
	switch {
	case bytes.HasPrefix(head, []byte("#!")), bytes.HasPrefix(head, []byte(unsignedMark)):
		return unsealed
	case hasLine(head, tamperedLine):
		return brokenSeal
	}
	return sealed
}

func hasLine(text []byte, line string) bool {
	for one := range bytes.Lines(text) {
		if string(bytes.TrimRight(one, "\r\n")) == line {
			return true
		}
	}
	return false
}

// codeValue returns the value that a program reports under a key, or "".
func codeValue(head []byte, key string) string {
	for one := range bytes.Lines(head) {
		if value, ok := strings.CutPrefix(strings.TrimRight(string(one), "\r\n"), key+"="); ok {
			return value
		}
	}
	return ""
}

// code reads the first and last bytes of a program.
func (v *visit) code(n node) ([]byte, error) {
	v.sawContent(n.path)
	file, err := v.session.root.Open(relative(n.path))
	if err != nil {
		return nil, err
	}
	defer file.Close() // it is only read
	head, err := io.ReadAll(io.LimitReader(file, codeHead))
	if err != nil || n.info.Size() <= codeHead {
		return head, err
	}
	if _, err := file.Seek(max(codeHead, n.info.Size()-codeHead), io.SeekStart); err != nil {
		return nil, err
	}
	tail, err := io.ReadAll(file)
	return append(head, tail...), err
}

// vouched is the kernel's record of a program that was executed. The kernel keeps it by inode and
// never checks again: if bytes change in place, the next process is killed.
type vouched struct {
	Stamp string `json:"stamp"` // size and time of the last change
	Sum   string `json:"sum"`
}

var vouchedRecord = inMemory("signatures")

// mayRun asks the kernel whether a program may be executed. Other files are ignored.
func (v *visit) mayRun(n node) (bool, error) {
	head, err := v.code(n)
	if err != nil || !isCode(n.path, head) {
		return err == nil, err
	}
	if sealOf(head) != sealed || hasLine(head, amfiLine) {
		return false, nil
	}
	known := map[string]vouched{}
	if err := v.recall(vouchedRecord, &known); err != nil {
		return false, err
	}
	inode := inodeOf(n)
	present := vouched{Stamp: fmt.Sprintf("%d %d", n.info.Size(), n.info.ModTime().UnixNano())}
	before, ok := known[inode]
	if ok && before.Stamp == present.Stamp {
		return true, nil
	}
	if present.Sum, err = v.sum(n); err != nil {
		return false, err
	}
	if ok && before.Sum != present.Sum {
		return false, nil
	}
	known[inode] = present
	return true, v.keep(vouchedRecord, known)
}

func inodeOf(n node) string { return strconv.FormatUint(n.number(), 10) }

func (v *visit) sum(n node) (string, error) {
	v.sawContent(n.path)
	file, err := v.session.root.Open(relative(n.path))
	if err != nil {
		return "", err
	}
	defer file.Close() // it is only read
	hash := sha256.New()
	_, err = io.Copy(hash, file)
	return hex.EncodeToString(hash.Sum(nil)), err
}

// released removes the kernel's record of a file whose last name is removed: the real disk reuses its
// inode number, which APFS never does.
func (v *visit) released(n node) {
	if !n.plain() || systemRecord(n.info).Nlink > 1 {
		return
	}
	if data, err := v.session.machine.remembers(vouchedRecord); data == nil || err != nil {
		return
	}
	known := map[string]vouched{}
	if v.recall(vouchedRecord, &known) != nil {
		return
	}
	if _, ok := known[inodeOf(n)]; ok {
		delete(known, inodeOf(n))
		_ = v.keep(vouchedRecord, known) // at worst, one program too many is killed
	}
}

// BreakSignature makes the kernel's record of a file that of other bytes, as after a program was
// overwritten in place: the bytes on the disk are complete, codesign finds them valid, and every new
// process of them is killed. The name is an absolute path on the machine.
func (m *Machine) BreakSignature(name string) error {
	err := m.revouch(name, func(known map[string]vouched, inode string) { known[inode] = vouched{Sum: "other bytes"} })
	if err != nil {
		return fmt.Errorf("break the signature of %s on the machine: %w", name, err)
	}
	return nil
}

// revouch changes the kernel's record of a file.
func (m *Machine) revouch(name string, change func(known map[string]vouched, inode string)) error {
	return m.asRoot(func(v *visit, p *proc) error {
		n, err := v.find(p.user, "/", name, true)
		if err != nil {
			return err
		}
		known := map[string]vouched{}
		if err := v.recall(vouchedRecord, &known); err != nil {
			return err
		}
		change(known, inodeOf(n))
		return v.keep(vouchedRecord, known)
	})
}

// SignatureBroken reports whether the kernel would kill a new process of a file.
func (m *Machine) SignatureBroken(name string) (killed bool, err error) {
	err = m.asRoot(func(v *visit, p *proc) error {
		n, err := v.find(p.user, "/", name, true)
		if err != nil {
			return err
		}
		fits, err := v.mayRun(n)
		killed = !fits
		return err
	})
	if err != nil {
		return false, fmt.Errorf("look at the signature of %s on the machine: %w", name, err)
	}
	return killed, nil
}

// isTart and isKubelet detect the two programs that are modelled.
func isTart(name string, head []byte) bool {
	return strings.HasSuffix(name, tartInBundle) || codeValue(head, "program") == "tart"
}

func isKubelet(name string, head []byte) bool {
	return path.Base(name) == "tart-kubelet" || codeValue(head, "program") == "tart-kubelet"
}

// TrustSignature removes the kernel's record of a file: its next process is judged by the present
// bytes. The name is an absolute path on the machine.
func (m *Machine) TrustSignature(name string) error {
	err := m.revouch(name, func(known map[string]vouched, inode string) { delete(known, inode) })
	if err != nil {
		return fmt.Errorf("forget the signature of %s on the machine: %w", name, err)
	}
	return nil
}
