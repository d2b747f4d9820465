package pf

import "slices"

// LoadFile returns the text for one full load of the main ruleset that loses
// nothing: pf.conf without any form of the names, and the anchor points that are
// live alone, each in its section and behind the point that it follows live, as
// macOS adds them for virtual machines. anchor, where it is not "", is evaluated
// where Rewrite has its block. live lists the live points in order.
//
// Of the statements that load anchors it keeps those of macOS's own. Rules of
// the other anchors outlive the load by themselves, and on a live host loading
// them again can fail with "Resource busy".
func (c Conf) LoadFile(anchor string, names []string, live []Point) (string, error) {
	all := names
	if anchor != "" {
		all = append([]string{anchor}, names...)
	}
	var rest Conf
	var err error
	if anchor == "" {
		rest, _, err = c.apart(all)
	} else {
		rest, err = c.with(all, FilterPoint(anchor).statement())
	}
	if err != nil {
		return "", err
	}
	f := loadFile(slices.DeleteFunc(rest.onOwnLine().all, func(s *statement) bool {
		kind, name, isAnchor := s.anchor()
		return isAnchor && kind == loadAnchor && !IsApple(name)
	}))
	for i, p := range live {
		if !slices.Contains(all, p.Name) && f.at(p) < 0 {
			f = f.insert(p, live[:i])
		}
	}
	return Conf{f}.text(""), nil
}

type loadFile []*statement

// at returns the place of a point, or -1.
func (f loadFile) at(p Point) int {
	return slices.IndexFunc(f, func(s *statement) bool {
		kind, name, ok := s.anchor()
		return ok && kind == p.Kind && name == p.Name
	})
}

// insert places a point behind the nearest of its section that stands before it
// live, or else first in its section.
func (f loadFile) insert(p Point, before []Point) loadFile {
	made := p.statement()
	want := made.section()
	place := slices.IndexFunc(f, func(s *statement) bool { return s.section() >= want })
	if place < 0 {
		place = len(f)
	}
	for _, b := range before {
		if i := f.at(b); i >= 0 && f[i].section() == want {
			place = i + 1
		}
	}
	return slices.Insert(f, place, made)
}
