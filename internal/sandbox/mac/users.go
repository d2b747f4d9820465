package mac

import (
	"regexp"
	"slices"
	"strconv"
)

// Numbers of macOS's users and groups.
const (
	loginUID = 501
	wheel    = 0
	staff    = 20
	nobody   = 4294967294
)

// user is an account of the machine.
type user struct {
	name   string
	uid    int
	groups []int // the primary one first
	home   string
	shell  string
}

type group struct {
	name string
	gid  int
}

var userName = regexp.MustCompile(`^[a-z_][a-z0-9_-]{0,30}$`)

func validUser(name string) bool {
	return userName.MatchString(name) && name != "root" && name != "daemon" && name != "nobody"
}

func (s *session) users() []user {
	return []user{
		{"root", 0, []int{wheel, 1, 2, 3, 4, 5, 8, 9, 12, staff, 29, 61, 80}, "/var/root", "/bin/sh"},
		{s.id.User, loginUID, []int{staff, 12, 61, 80}, "/Users/" + s.id.User, "/bin/zsh"},
		{"daemon", 1, []int{1, 12, 61}, "/var/root", "/usr/bin/false"},
		{"nobody", nobody, []int{nobody, 12, 61}, "/var/empty", "/usr/bin/false"},
	}
}

func groups() []group {
	return []group{
		{"wheel", wheel}, {"daemon", 1}, {"kmem", 2}, {"sys", 3}, {"tty", 4}, {"operator", 5}, {"procview", 8},
		{"procmod", 9}, {"everyone", 12}, {"staff", staff}, {"certusers", 29}, {"localaccounts", 61},
		{"admin", 80}, {"nobody", nobody},
	}
}

func (s *session) user(name string) (user, bool) {
	all := s.users()
	if i := slices.IndexFunc(all, func(u user) bool { return u.name == name }); i >= 0 {
		return all[i], true
	}
	return user{}, false
}

// userName returns the name of a uid, or the number if it has none.
func (s *session) userName(uid int) string {
	for _, u := range s.users() {
		if u.uid == uid {
			return u.name
		}
	}
	return strconv.Itoa(uid)
}

func groupName(gid int) string {
	for _, g := range groups() {
		if g.gid == gid {
			return g.name
		}
	}
	return strconv.Itoa(gid)
}

// parseID reads the number of a user or a group.
func parseID(text string) (int, bool) {
	n, err := strconv.ParseUint(text, 10, 32)
	return int(n), err == nil
}

// uidOf reads a user by name or number.
func (s *session) uidOf(text string) (int, bool) {
	if u, ok := s.user(text); ok {
		return u.uid, true
	}
	return parseID(text)
}

func gidOf(text string) (int, bool) {
	for _, g := range groups() {
		if g.name == text {
			return g.gid, true
		}
	}
	return parseID(text)
}

// Permissions on a file, as bits of a mode.
const (
	toRead  access = 4
	toWrite access = 2
	toEnter access = 1 // also to execute
)

type access uint32

// may reports whether the user has all wanted permissions on a file of that owner. Root has them all,
// except for executing a file without an execute bit.
func (u user) may(o owner, folder bool, wanted access) bool {
	if u.uid == 0 {
		return folder || wanted&toEnter == 0 || o.Mode&0o111 != 0
	}
	bits := access(o.Mode)
	switch {
	case u.uid == o.UID:
		bits >>= 6
	case u.inGroup(o.GID):
		bits >>= 3
	}
	return bits&wanted == wanted
}

func (u user) inGroup(gid int) bool { return slices.Contains(u.groups, gid) }
