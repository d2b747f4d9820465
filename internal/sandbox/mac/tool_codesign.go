package mac

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"path"
	"strings"
	"syscall"
)

// codesignCall is a command line of codesign.
type codesignCall struct {
	*proc
	verify, display, sign, force bool
	rights                       bool // with --entitlements
	loud                         int
	files                        []string
}

// codesign verifies, shows and replaces signatures. It prints to the standard error.
func codesign(p *proc) int {
	c := codesignCall{proc: p}
	if status, ok := c.parse(); !ok {
		return status
	}
	if len(c.files) == 0 || !c.verify && !c.display && !c.sign {
		return p.usage("codesign -s identity [-fv*] [-o flags] [-r reqs] [-i ident] path ...")
	}
	status := 0
	for _, name := range c.files {
		status = max(status, c.one(name))
	}
	return status
}

func (c *codesignCall) parse() (status int, ok bool) {
	args := c.args()
	for len(args) > 0 {
		word := args[0]
		args = args[1:]
		value, given := "", false
		if before, after, cut := strings.Cut(word, "="); cut && strings.HasPrefix(word, "--") {
			word, value, given = before, after, true
		}
		switch word {
		case "--verify":
			c.verify = true
		case "--display", "-d":
			c.display = true
		case "--force", "-f":
			c.force = true
		case "--verbose":
			c.loud = max(1, len(value))
			if value != "" {
				c.loud = int(value[0] - '0')
			}
		case "--deep", "--strict":
		case "--entitlements":
			if !given && len(args) > 0 {
				value, args = args[0], args[1:]
			}
			if c.rights = true; value != "-" && value != ":-" {
				return c.unmodelled("entitlements from a file"), false
			}
		case "--sign", "-s":
			if !given && len(args) > 0 {
				value, args = args[0], args[1:]
			}
			if c.sign = true; value != "-" {
				return c.unmodelled("an identity other than -"), false
			}
		default:
			if !strings.HasPrefix(word, "-") {
				c.files = append(c.files, word)
				continue
			}
			if status, ok := c.letters(word); !ok {
				return status, false
			}
		}
	}
	return 0, true
}

// letters reads options such as -v, -vv, -dv and -fs-. The first v without another task means verify.
func (c *codesignCall) letters(word string) (status int, ok bool) {
	for i, letter := range word[1:] {
		switch letter {
		case 'v':
			c.loud++
		case 'd':
			c.display = true
		case 'f':
			c.force = true
		case 's':
			if c.sign = true; word[i+2:] != "-" {
				return c.unmodelled(word), false
			}
			return 0, true
		default:
			return c.unmodelled(word), false
		}
	}
	if !c.display && !c.sign && !c.verify {
		c.verify, c.loud = true, c.loud-1
	}
	return 0, true
}

// say prints to the standard error without the tool's name, as codesign does.
func (c *codesignCall) say(text string) { _, _ = c.stderr.Write([]byte(text + "\n")) }

// one does the requested task with one file.
func (c *codesignCall) one(name string) int {
	var n node
	var head []byte
	whole, open, system := true, false, false
	err := c.visit(func(v *visit) (err error) {
		if n, err = v.find(c.user, c.dir, name, true); err != nil {
			return err
		}
		if system = v.program(n); system {
			return nil
		}
		if n.folder() {
			open = !v.exists(n.path + "/Contents/_CodeSignature/CodeResources")
			whole = v.exists(n.path + "/Contents/Info.plist")
			if n, err = v.mainCode(c.user, n); err != nil {
				return err
			}
		}
		head, err = v.code(n)
		return err
	})
	switch {
	case err != nil:
		c.say(name + ": " + why(err))
		return exitFailed
	case system:
		head = []byte("program=" + path.Base(n.path))
	}
	switch {
	case c.sign:
		return c.resign(name, n, head, system)
	case sealOf(head) == unsealed:
		c.say(name + ": code object is not signed at all")
		return exitFailed
	case c.display:
		c.show(n, head)
		return 0
	}
	if open && sealOf(head) == sealed {
		c.say(name + ": invalid resource directory (directory or signature have been modified)")
		return exitFailed
	}
	return c.judge(name, head, whole)
}

// mainCode returns the program of a bundle.
func (v *visit) mainCode(who user, bundle node) (node, error) {
	name := strings.TrimSuffix(path.Base(bundle.path), ".app")
	return v.find(who, "/", bundle.path+"/Contents/MacOS/"+name, true)
}

func (v *visit) exists(name string) bool {
	_, err := v.find(v.session.users()[0], "/", name, true)
	return err == nil
}

func (c *codesignCall) judge(name string, head []byte, whole bool) int {
	switch {
	case sealOf(head) == brokenSeal:
		c.say(name + ": invalid signature (code or signature have been modified)\nIn architecture: arm64")
		return exitFailed
	case !whole:
		c.say(name + ": a sealed resource is missing or invalid")
		return exitFailed
	case c.loud > 0:
		c.say(name + ": valid on disk\n" + name + ": satisfies its Designated Requirement")
	}
	return 0
}

func (c *codesignCall) show(n node, head []byte) {
	c.say("Executable=" + n.path)
	if c.rights && isTart(n.path, head) && rights(head) {
		c.printf("[Dict]\n\t[Key] com.apple.security.virtualization\n\t[Value]\n\t\t[Bool] true\n")
	}
	if c.loud == 0 {
		return
	}
	sum := sha256.Sum256(head)
	full := hex.EncodeToString(sum[:])
	identifier := path.Base(n.path)
	if strings.HasSuffix(n.path, tartInBundle) {
		identifier = "com.github.cirruslabs.tart"
	}
	flags, signature := "0x20002(adhoc,linker-signed)", "Signature=adhoc"
	if hasLine(head, signatureLine) {
		flags = "0x2(adhoc)"
	}
	if team := teamOf(head); team != "" {
		flags, signature = "0x10000(runtime)", "Signature size=8979\nAuthority=Developer ID Application: Example ("+team+")"
	}
	c.say("Identifier=" + identifier + "\nFormat=Mach-O thin (arm64)\nCodeDirectory v=20400 size=520 flags=" + flags + " hashes=13+0 location=embedded")
	if c.loud >= 4 {
		c.say("Hash type=sha256 size=32\nCandidateCDHash sha256=" + full[:40] + "\nCandidateCDHashFull sha256=" + full +
			"\nHash choices=sha256\nCMSDigest=" + full + "\nCMSDigestType=2")
	}
	c.say("CDHash=" + full[:40] + "\n" + signature + "\nInfo.plist=not bound\nTeamIdentifier=" + cmp.Or(teamOf(head), "not set") + "\nSealed Resources=none\nInternal requirements=none")
}

// resign signs again: it writes a new file and renames it, so the inode changes.
func (c *codesignCall) resign(name string, n node, head []byte, system bool) int {
	signed := sealOf(head) != unsealed
	switch {
	case system:
		c.say(name + ": Operation not permitted")
		return exitFailed
	case signed && !c.force:
		c.say(name + ": is already signed")
		return exitFailed
	}
	err := c.visit(func(v *visit) error {
		if bytes.HasPrefix(head, []byte("#!")) {
			return syscall.ENOTSUP // a script's signature is stored next to its bytes
		}
		if err := v.writable(c.user, path.Dir(n.path)); err != nil {
			return err
		}
		text, err := v.read(c.proc, n.path)
		if err != nil {
			return err
		}
		return v.replace(n, signedAgain(text), n.owner)
	})
	if err != nil {
		c.say(name + ": " + why(err))
		return exitFailed
	}
	if signed {
		c.say(name + ": replacing existing signature")
	}
	return 0
}

// signedAgain returns a program with a signature from this machine: its bytes differ from those that
// were downloaded.
func signedAgain(text []byte) []byte {
	text = bytes.TrimLeft(bytes.TrimPrefix(text, []byte(unsignedMark)), "\n")
	var b bytes.Buffer
	for line := range bytes.Lines(text) {
		switch string(bytes.TrimRight(line, "\r\n")) {
		case tamperedLine, signatureLine:
		default:
			b.Write(line)
		}
	}
	if b.Len() > 0 && b.Bytes()[b.Len()-1] != '\n' {
		b.WriteByte('\n')
	}
	b.WriteString(signatureLine + "\n")
	return b.Bytes()
}
