package mac

import (
	"maps"
	"sync"
)

// everyTool is the toolbox, created once: no machine changes it.
var everyTool = sync.OnceValue(toolbox)

// toolNames are the names of the system's programs by folder.
var toolNames = sync.OnceValue(func() map[string][]string {
	all := map[string][]string{}
	for _, t := range everyTool() {
		all[t.folder] = append(all[t.folder], t.name)
	}
	return all
})

// toolbox returns the system's programs by name, and the simulated builtins of the shell.
func toolbox() map[string]tool {
	all := map[string]tool{}
	for folder, tools := range map[string]map[string]func(*proc) int{
		"/bin": {
			"sh": runShell, "bash": runShell, "zsh": runShell, "dash": runShell,
			"cat": cat, "chmod": chmod, "cp": cp, "date": date, "dd": dd, "df": df, "echo": echoProgram, "hostname": hostname,
			"ln": ln, "ls": ls, "mkdir": mkdir, "mv": mv, "pwd": asBuiltin, "rm": rm, "rmdir": rmdir, "sleep": sleep,
			"sync": succeed, "test": asBuiltin, "[": asBuiltin,
		},
		"/usr/bin": {
			"base64": base64Tool, "basename": basename, "cmp": cmpTool, "codesign": codesign, "curl": curl, "cut": cut, "defaults": defaults, "dirname": dirname,
			"env": env, "false": failTool, "fdesetup": fdesetup, "grep": grep, "groups": groupsTool, "gunzip": gzipTool, "gzip": gzipTool, "head": head, "id": id,
			"mdutil": mdutil, "mktemp": mktemp, "nc": nc, "openssl": openssl, "perl": perl, "pmset": pmset, "printf": asBuiltin, "readlink": readlink,
			"shasum": shasum, "sort": sortTool, "stat": statTool, "sudo": sudo, "sw_vers": swVers, "tail": tail, "tar": tarTool, "tee": tee,
			"touch": touch, "tr": tr, "true": succeed, "uname": uname, "uniq": uniq, "wc": wc, "whoami": whoami, "xattr": xattr,
			"dscl": dscl, "killall": killall, "od": od, "pwpolicy": pwpolicy, "who": who, "xxd": xxd, "unzip": unzip, "xcode-select": xcodeSelect, "xcodebuild": xcodebuild,
		},
		"/usr/sbin": {
			"chown": chown, "ioreg": ioreg, "scutil": scutil, "sysctl": sysctl,
			"visudo": visudo, "netstat": netstat, "arp": arp,
		},
		"/sbin": {"ifconfig": ifconfig, "pfctl": pfctl},
		"": {
			ownRefuse: refuse, ownEcho: shellEcho, ownPwd: pwd, ownUmask: showUmask, ownCommand: commandV,
			ownType: typeOf, ownHash: hash, ownNumber: complainNumber,
		},
	} {
		maps.Insert(all, entries(folder, tools))
	}
	maps.Copy(all, launchdTools())
	return all
}

// ToolFault is what a person does wrong with a tool, as an incident: it is declared next to the tool. Its scripts run as root.
type ToolFault struct {
	Name, Summary string
	Cause, Cure   string
	Shows, Text   string // a script, and what it prints as long as the fault exists
}

// ToolFaults returns all of them.
func ToolFaults() []ToolFault {
	return []ToolFault{spotlightOn(), updatesOn()}
}

func entries(folder string, tools map[string]func(*proc) int) func(func(string, tool) bool) {
	return func(yield func(string, tool) bool) {
		for name, run := range tools {
			if !yield(name, tool{name, folder, run}) {
				return
			}
		}
	}
}
