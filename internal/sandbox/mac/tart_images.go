package mac

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// listed is a line of tart list.
type listed struct {
	Source   string `json:"Source"`
	Name     string `json:"Name"`
	Disk     int    `json:"Disk"`
	Size     int    `json:"Size"`
	Accessed string `json:"Accessed"`
	Running  bool   `json:"Running"`
	State    string `json:"State"`
}

func (c tartCall) list(args []string) error {
	format, source, quiet := "text", "", false
	for len(args) > 0 {
		word := args[0]
		args = args[1:]
		name, value, given := strings.Cut(word, "=")
		if !given && (name == "--format" || name == "--source") {
			if len(args) == 0 {
				return usageError("Missing value for '" + name + "'")
			}
			value, args = args[0], args[1:]
		}
		switch name {
		case "--format":
			format = value
		case "--source":
			source = value
		case "--quiet", "-q":
			quiet = true
		default:
			return usageError("Unknown option '" + word + "'")
		}
	}
	if source != "" && source != "local" && source != "oci" {
		return usageError("'" + source + "' is not a valid <source>")
	}
	var all []listed
	err := c.visit(func(v *visit) (err error) {
		all, err = c.listed(v, source)
		return err
	})
	if err != nil {
		return err
	}
	return c.showList(all, format, quiet)
}

func (c tartCall) showList(all []listed, format string, quiet bool) error {
	if quiet {
		for _, one := range all {
			c.printf("%s\n", one.Name)
		}
		return nil
	}
	switch format {
	case "json":
		if all == nil {
			all = []listed{}
		}
		data, err := json.MarshalIndent(all, "", "  ")
		if err != nil {
			return err
		}
		// Foundation's format: a space before the colon, and escaped slashes.
		text := strings.ReplaceAll(string(data), `": `, `" : `)
		c.printf("%s\n", strings.ReplaceAll(text, "/", `\/`))
		return nil
	case "text":
		if len(all) == 0 {
			c.printf("\n")
			return nil
		}
		width := 4
		for _, one := range all {
			width = max(width, len(one.Name))
		}
		c.printf("%-6s %-*s %-4s %-4s %-20s %s\n", "Source", width, "Name", "Disk", "Size", "Accessed", "State")
		for _, one := range all {
			c.printf("%-6s %-*s %-4d %-4d %-20s %s\n", one.Source, width, one.Name, one.Disk, one.Size, one.Accessed, one.State)
		}
		return nil
	}
	return usageError("The value '" + format + "' is invalid for '--format <format>'")
}

// listed returns the local virtual machines, then the images of the cache.
func (c tartCall) listed(v *visit, source string) ([]listed, error) {
	var all []listed
	if source != "oci" {
		names, err := v.vmNames(c.user, c.home)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			_, running, err := v.running(c.home, name)
			if err != nil {
				return nil, err
			}
			all = append(all, c.line(v, "local", name, c.folder(name), running))
		}
	}
	if source == "local" {
		return all, nil
	}
	n, err := v.find(c.user, "/", c.home+"/cache/OCIs", true)
	if missing(err) {
		return all, nil
	}
	if err != nil {
		return nil, err
	}
	var images []string
	err = v.walk(n, func(at node) error {
		if path.Base(at.path) == "config.json" {
			images = append(images, path.Dir(at.path))
		}
		return nil
	})
	slices.Sort(images)
	for _, image := range images {
		name := strings.TrimPrefix(image, n.path+"/")
		all = append(all, c.line(v, "OCI", path.Dir(name)+":"+path.Base(name), image, false))
	}
	return all, err
}

func (c tartCall) line(v *visit, source, name, folder string, running bool) listed {
	state := map[bool]string{true: "running", false: "stopped"}[running]
	accessed := time.Now().UTC()
	if n, err := v.find(c.user, "/", folder+"/config.json", true); err == nil {
		accessed = n.info.ModTime().UTC()
	}
	return listed{source, name, v.vmConfig(c.proc, folder).DiskGB, 1, accessed.Format(time.RFC3339), running, state}
}

// vmNames returns the local virtual machines of a user.
func (v *visit) vmNames(who user, home string) ([]string, error) {
	n, err := v.find(who, "/", home+"/vms", true)
	if missing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	children, err := v.list(who, n)
	var names []string
	for _, child := range children {
		if child.folder() && v.exists(child.path+"/config.json") {
			names = append(names, path.Base(child.path))
		}
	}
	return names, err
}

// clone copies a virtual machine, or an image, which is pulled if it is not in the cache.
func (c tartCall) clone(args []string) error {
	if args = slices.DeleteFunc(slices.Clone(args), func(a string) bool { return a == "--insecure" }); len(args) != 2 {
		return usageError("Missing expected argument '<new-name>'")
	}
	if strings.Contains(args[1], "/") {
		return usageError("<new-name> should be a local name")
	}
	return c.visit(func(v *visit) error {
		config := newVM()
		if strings.Contains(args[0], "/") {
			if !v.exists(c.folder(args[0])) {
				if err := c.make(v, args[0], config); err != nil {
					return err
				}
			}
		} else if _, err := v.vm(c.user, c.home, args[0]); err != nil {
			return err
		}
		return c.make(v, args[1], v.vmConfig(c.proc, c.folder(args[0])))
	})
}

func (c tartCall) pull(args []string) error {
	args = withoutOption(args, "--concurrency")
	if len(args) != 1 || !strings.Contains(args[0], "/") {
		return usageError("Missing expected argument '<remote-name>'")
	}
	return c.visit(func(v *visit) error { return c.make(v, args[0], newVM()) })
}

func (c tartCall) set(args []string) error {
	if len(args) == 0 {
		return usageError("Missing expected argument '<name>'")
	}
	name := args[0]
	return c.visit(func(v *visit) error {
		if _, err := v.vm(c.user, c.home, name); err != nil {
			return err
		}
		config := v.vmConfig(c.proc, c.folder(name))
		for i := 1; i+1 < len(args); i += 2 {
			n, err := strconv.Atoi(args[i+1])
			switch {
			case args[i] == "--display":
			case err != nil:
				return usageError("The value '" + args[i+1] + "' is invalid for '" + args[i] + "'")
			case args[i] == "--cpu":
				config.CPUCount = n
			case args[i] == "--memory":
				config.Memory = int64(n) << 20
			case args[i] == "--disk-size":
				config.DiskGB = n
			default:
				return usageError("Unknown option '" + args[i] + "'")
			}
		}
		return c.make(v, name, config)
	})
}

func (c tartCall) ip(args []string) error {
	return c.ofRunning(withoutOption(args, "--wait", "--resolver"), tartError{1, "no IP address found, is your VM running?"}, func(v *visit, one guest) error {
		c.printf("%s\n", v.addressOf(one))
		return nil
	})
}

// push uploads a virtual machine. The simulated registry accepts everything at once.
func (c tartCall) push(args []string) error {
	args = withoutOption(args, "--concurrency", "--chunk-size", "--label", "--disk-format")
	if len(args) < 2 {
		return usageError("Missing expected argument '<remote-names> ...'")
	}
	return c.visit(func(v *visit) error {
		n, err := v.vm(c.user, c.home, args[0])
		if err != nil {
			return err
		}
		if _, ok, err := v.running(c.home, args[0]); err != nil || ok {
			return errors.Join(err, tartError{1, fmt.Sprintf("VM %q is running", args[0])})
		}
		if !v.exists(n.path + "/nvram.bin") {
			return tartError{1, pushBroken}
		}
		return nil
	})
}

// prune deletes cached images until they use a number of GB; those that were used last stay. Only caches are modelled.
func (c tartCall) prune(args []string) error {
	budget, entries := -1, "caches"
	for i := 0; i+1 < len(args); i += 2 {
		switch args[i] {
		case "--space-budget":
			n, err := strconv.Atoi(args[i+1])
			if err != nil {
				return usageError("The value '" + args[i+1] + "' is invalid for '--space-budget <space-budget>'")
			}
			budget = n
		case "--entries":
			entries = args[i+1]
		default:
			return usageError("Unknown option '" + args[i] + "'")
		}
	}
	if budget < 0 || entries != "caches" || len(args)%2 != 0 {
		return usageError("at least one pruning criteria must be specified")
	}
	var all []listed
	err := c.visit(func(v *visit) (err error) {
		all, err = c.listed(v, "oci")
		return err
	})
	slices.SortStableFunc(all, func(a, b listed) int { return strings.Compare(b.Accessed, a.Accessed) })
	for _, one := range all {
		if budget -= one.Size; budget < 0 && err == nil {
			err = c.remove([]string{one.Name})
		}
	}
	return err
}
