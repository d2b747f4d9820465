package mac

import "path"

// df shows the only disk, whatever path is named.
func df(p *proc) int {
	o, names, status, ok := p.options("kmgPh")
	switch {
	case !ok:
		return status
	case o.has('h') || o.has('g') || len(names) == 0:
		return p.unmodelled("df without -k or -m and a path")
	}
	unit, title := int64(512), "512-blocks"
	switch {
	case o.has('k'):
		unit, title = 1024, "1024-blocks"
	case o.has('m'):
		unit, title = 1<<20, "1M-blocks"
	}
	var free int64
	var found []string
	err := p.visit(func(v *visit) (err error) {
		for _, name := range names {
			if _, err := v.find(p.user, p.dir, name, true); err != nil {
				status = p.fail(exitFailed, "%s: %s", name, why(err))
				continue
			}
			found = append(found, name)
		}
		free, err = v.free()
		return err
	})
	if err != nil {
		return p.fail(exitFailed, "%s", why(err))
	}
	if len(found) > 0 {
		p.showDisk(o, free, unit, title, found)
	}
	return status
}

// showDisk prints the volume of all users' files; the system has a separate one.
func (p *proc) showDisk(o options, free, unit int64, title string, names []string) {
	const system = 12_000_000_000 // of the other volumes in the same container
	used := max(0, diskSize-system-free)
	capacity := used * 100 / max(1, used+free)
	if o.has('P') {
		p.printf("Filesystem %12s %10s %10s Capacity  Mounted on\n", title, "Used", "Available")
		for range names {
			p.printf("/dev/disk3s5 %10d %10d %10d %5d%%    /System/Volumes/Data\n", diskSize/unit, used/unit, free/unit, capacity)
		}
		return
	}
	p.printf("Filesystem   %s      Used Available Capacity iused     ifree %%iused  Mounted on\n", title)
	for _, name := range names {
		device, volume := "disk3s5", "/System/Volumes/Data"
		if path.Clean(name) == "/" {
			device, volume = "disk3s1s1", "/"
		}
		p.printf("/dev/%s %*d %9d %9d %5d%%  %5d %9d    0%%   %s\n",
			device, len(title), diskSize/unit, used/unit, free/unit, capacity, 412_345, free/4096, volume)
	}
}
