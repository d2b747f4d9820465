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

// Programs that are no scripts are texts here, with lines that say what they are:
//
//	version=2.32.1       what the program says of itself
//	program=tart         which program it is, wherever it lies
//	amfi                 its signature is valid, and macOS kills it all the same
//	resources=none       its bundle's resources were never sealed: codesign finds the bundle invalid, and it runs
//	tampered             its bytes are not those that were signed
//	team=ABCDE12345      the team that has signed it; without it, it is signed ad hoc
//	signature=adhoc      somebody has signed it again on the machine
//
// One that begins with the word unsigned was never signed; every other one is.
const (
	unsignedMark  = "unsigned"
	tamperedLine  = "tampered"
	amfiLine      = "amfi"
	unsealedLine  = "resources=none"
	signatureLine = "signature=adhoc"
	// SampleLine is the first line of what the sandbox's own downloads hold.
	SampleLine = "macfleet sandbox sample"
)

// seal is what a program's signature is worth.
type seal int

const (
	sealed seal = iota
	unsealed
	brokenSeal
)

// codeLine finds what tells a program from a text.
var codeLine = regexp.MustCompile(`(?m)^(version=|program=|team=|signature=|tampered$|` + SampleLine + `$)`)

// codeHead is how much of a program is read, from its beginning and from its end.
const codeHead = 256 << 10

// isCode reports whether the first bytes of a file are those of a program and no script.
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

// sealOf judges a program by its bytes alone.
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

// codeValue returns what a program says of itself under a key, or "".
func codeValue(head []byte, key string) string {
	for one := range bytes.Lines(head) {
		if value, ok := strings.CutPrefix(strings.TrimRight(string(one), "\r\n"), key+"="); ok {
			return value
		}
	}
	return ""
}

// code reads what is read of a program.
func (v *visit) code(n node) ([]byte, error) {
	file, err := v.session.root.Open(relative(n.path))
	if err != nil {
		return nil, err
	}
	defer file.Close() // only read from
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

// vouched is what the kernel keeps of a program that was executed. It keeps it by inode and never
// looks again: bytes that change in place no longer fit, and the next process of them is killed.
type vouched struct {
	Stamp string `json:"stamp"` // size and time of the last change
	Sum   string `json:"sum"`
}

var vouchedRecord = inMemory("signatures")

// mayRun asks the kernel whether a program may be executed. What is no program is none of its
// concern.
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

func inodeOf(n node) string { return strconv.FormatUint(systemRecord(n.info).Ino, 10) }

func (v *visit) sum(n node) (string, error) {
	file, err := v.session.root.Open(relative(n.path))
	if err != nil {
		return "", err
	}
	defer file.Close() // only read from
	hash := sha256.New()
	_, err = io.Copy(hash, file)
	return hex.EncodeToString(hash.Sum(nil)), err
}

// released forgets what the kernel keeps of a file whose last name goes away: the real disk gives
// its inode's number to another file, which APFS never does.
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
		_ = v.keep(vouchedRecord, known) // a program too many is killed at worst
	}
}

// BreakSignature lets the kernel believe that other bytes were executed from a file's inode before:
// as after a program was overwritten in place, the bytes on the disk are whole, codesign finds them
// valid, and every new process of them is killed. The name is an absolute path on the machine.
func (m *Machine) BreakSignature(name string) error {
	err := m.revouch(name, func(known map[string]vouched, inode string) { known[inode] = vouched{Sum: "other bytes"} })
	if err != nil {
		return fmt.Errorf("break the signature of %s on the machine: %w", name, err)
	}
	return nil
}

// revouch changes what the kernel keeps of a file.
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

// isTart and isKubelet tell the two programs that are modelled from all others.
func isTart(name string, head []byte) bool {
	return strings.HasSuffix(name, tartInBundle) || codeValue(head, "program") == "tart"
}

func isKubelet(name string, head []byte) bool {
	return path.Base(name) == "tart-kubelet" || codeValue(head, "program") == "tart-kubelet"
}

// TrustSignature lets the kernel forget what it keeps of a file: its next process is judged by the
// bytes that exist. The name is an absolute path on the machine.
func (m *Machine) TrustSignature(name string) error {
	err := m.revouch(name, func(known map[string]vouched, inode string) { delete(known, inode) })
	if err != nil {
		return fmt.Errorf("forget the signature of %s on the machine: %w", name, err)
	}
	return nil
}
