package mac

import (
	"io"
	"path"
)

const lectureSwitch = "sudo-lecture"

// lectured is where sudo records, by uid, who has entered a correct password before.
const lectured = "/private/var/db/sudo/lectured"

const lecture = `
WARNING: Improper use of the sudo command could lead to data loss
or the deletion of important system files. Please double-check your
typing when using sudo. Type "man sudo" for more information.

To proceed, enter your password, or type Ctrl-C to abort.

`

// lecture warns a user who has not entered a correct password before.
func (p *proc) lecture() {
	known := true
	err := p.visit(func(v *visit) error {
		if v.switched(lectureSwitch) == "never" {
			return nil
		}
		n, err := v.resolve(v.session.users()[0], "/", path.Join(lectured, p.user.name), true)
		known = err == nil && n.exists()
		return nil
	})
	if err == nil && !known {
		_, _ = io.WriteString(p.stderr, lecture)
	}
}

// rightPassword checks the password for sudo, and records the first correct one.
func (p *proc) rightPassword(password string) bool {
	right := false
	err := p.visit(func(v *visit) (err error) {
		if right, err = v.authenticate("sudo", p.user, password); err != nil || !right {
			return err
		}
		root := &proc{session: v.session, user: v.session.users()[0], dir: "/", umask: 0o077}
		if err := v.mkdirAll(root, lectured, 0o700); err != nil {
			return err
		}
		n, err := v.resolve(root.user, "/", path.Join(lectured, p.user.name), true)
		if err != nil || n.exists() {
			return err
		}
		return v.replace(n, nil, owner{Mode: 0o600})
	})
	if err != nil {
		p.complain("%s", why(err))
	}
	return right && err == nil
}
