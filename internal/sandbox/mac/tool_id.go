package mac

import (
	"fmt"
	"strconv"
	"strings"
)

func whoami(p *proc) int {
	p.printf("%s\n", p.user.name)
	return 0
}

func groupsTool(p *proc) int {
	p.printf("%s\n", strings.Join(groupNames(p.user), " "))
	return 0
}

func groupNames(u user) []string {
	var names []string
	for _, gid := range u.groups {
		names = append(names, groupName(gid))
	}
	return names
}

func id(p *proc) int {
	o, operands, status, ok := p.options("ugGn")
	if !ok {
		return status
	}
	who := p.user
	if len(operands) > 0 {
		if who, ok = p.session.user(operands[0]); !ok {
			return p.fail(exitFailed, "%s: no such user", operands[0])
		}
	}
	named := func(n int, name string) string {
		if o.has('n') {
			return name
		}
		return strconv.Itoa(n)
	}
	switch {
	case o.has('u'):
		p.printf("%s\n", named(who.uid, who.name))
	case o.has('g'):
		p.printf("%s\n", named(who.groups[0], groupName(who.groups[0])))
	case o.has('G'):
		var all []string
		for _, gid := range who.groups {
			all = append(all, named(gid, groupName(gid)))
		}
		p.printf("%s\n", strings.Join(all, " "))
	case o.has('n'):
		return p.usage("id [user]")
	default:
		var all []string
		for _, gid := range who.groups {
			all = append(all, fmt.Sprintf("%d(%s)", gid, groupName(gid)))
		}
		p.printf("uid=%d(%s) gid=%s groups=%s\n", who.uid, who.name, all[0], strings.Join(all, ","))
	}
	return 0
}
