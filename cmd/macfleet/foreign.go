package main

// Commands and flags of other tools, and what to type instead. testdata/typed.txt lists what people type, and what
// the hint must name.

// foreignCommands are words that people know from other tools, and what to type instead.
var foreignCommands = map[string]string{
	"trust": "use macfleet hosts forget-key HOST",

	"get": useHosts, "list": useHosts, "ls": useHosts, "status": useHosts, "ps": useHosts, "nodes": useHosts, "node": useHosts, "servers": useHosts,
	"inventory": useHosts, "top": useHosts, "host": useHosts, "machines": useHosts, "runner": useHosts, "fleets": useHosts, "fleet": useHosts, "pods": useHosts,
	"wait":     "use macfleet hosts --wait ready",
	"watch":    "use macfleet hosts --watch",
	"describe": useExplain, "inspect": useExplain, "view": useExplain, "info": useExplain, "facts": useExplain, "setup": useExplain,
	"ping": useDoctor, "debug": useDoctor, "diagnose": useDoctor, "health": useDoctor,
	"schema":  useSchema,
	"preview": usePlan, "diff": usePlan, "dry-run": usePlan, "pool": "use macfleet plan: it shows free and missing servers", "refresh": "use macfleet drift",
	"up": useApply, "deploy": useApply, "converge": useApply, "sync": useApply, "playbook": useApply, "fix": useApply, "repair": useApply, "reconcile": useApply,
	"update": useApply, "provision": useApply, "install": useApply,
	"run":    "use macfleet apply to change hosts, macfleet runs to list runs",
	"start":  "use macfleet restart HOST JOB for a job, macfleet apply for hosts",
	"stop":   "use Ctrl-C to stop a run; macfleet cordon HOST --drain empties a host",
	"scale":  editThenApply("replicas of a group"),
	"create": editThenApply("replicas of a group"), "add": editThenApply("replicas of a group"), "new": editThenApply("replicas of a group"), "claim": editThenApply("replicas of a group"),
	"label": editThenApply("labels of tart_kubelet"), "upgrade": editThenApply("version of an artifact"),
	"edit": editThenApply("configuration"), "patch": editThenApply("configuration"), "set": editThenApply("configuration"),
	"history": "use macfleet runs", "events": "use macfleet show last", "output": "use macfleet show last",
	"rollout": "use macfleet plan for the order of a rollout, macfleet apply --rollback --on SELECTOR to go back, macfleet restart HOST JOB for a job",
	"unlock":  "use macfleet lock release", "force-unlock": "use macfleet lock release",
	"uncordon": "use macfleet cordon HOST --undo", "drain": "use macfleet cordon HOST --drain",
	"pause": "use macfleet hold HOST", "resume": "use macfleet unhold HOST, or macfleet apply after an interrupted run",
	"rollback": "use macfleet apply --rollback --on SELECTOR", "undo": "use macfleet apply --rollback --on SELECTOR",
	"format": "use macfleet fmt", "lint": "use macfleet validate", "check": "use macfleet validate for files, macfleet doctor HOST for a host",
	"test":      "use macfleet validate for files, --sandbox to try a command in the simulated world",
	"heal":      "use macfleet sandbox heal for a simulated host, macfleet apply for a real one",
	"inject":    "use macfleet sandbox inject HOST INCIDENT",
	"workspace": chooseEnvironment, "stack": chooseEnvironment, "env": chooseEnvironment, "environment": chooseEnvironment, "environments": chooseEnvironment, "use": chooseEnvironment,
	"state":   "macfleet has no state file; macfleet hosts lists the members, a moved block renames them",
	"console": "use macfleet explain --schema for the language, macfleet explain HOST for values",
	"adopt":   "use macfleet import for servers that exist, or macfleet init --from-inventory for a new configuration",
	"login":   useCredentials, "logout": useCredentials, "auth": useCredentials, "config": useCredentials, "configure": useCredentials,
	"providers": "macfleet has no plug-ins; macfleet version prints its version",
	"man":       "use macfleet help COMMAND", "docs": "use macfleet help TOPIC, or read docs/README.md", "flags": "use macfleet options",
	"ssh":  notYet("ssh") + "use ssh USER@ADDRESS; macfleet hosts -o wide shows addresses",
	"exec": notYet("exec") + "use ssh USER@ADDRESS COMMAND; macfleet hosts -o wide shows addresses",
	"vnc":  notYet("vnc") + "use the VNC address in the Scaleway console",
	"logs": notYet("logs") + "use ssh USER@ADDRESS; macfleet show last prints what failed scripts wrote", "log": notYet("log") + "use macfleet show last",
	"destroy": noRelease("destroy"), "delete": noRelease("delete"), "remove": noRelease("remove"), "rm": noRelease("rm"), "down": noRelease("down"),
	"taint": useReplace, "reinstall": useReplace, "wipe": useReplace, "untaint": "use macfleet replace --cancel HOST",
	"graph": notYet("graph") + "macfleet plan shows the order of hosts",
}

const (
	useHosts          = "use macfleet hosts"
	useExplain        = "use macfleet explain HOST"
	useDoctor         = "use macfleet doctor HOST"
	useSchema         = "use macfleet explain --schema PATH"
	usePlan           = "use macfleet plan"
	useApply          = "use macfleet apply"
	useReplace        = "to get another server in place of a host use macfleet replace HOST"
	chooseEnvironment = "choose an environment with -e ENVIRONMENT"
	useCredentials    = "macfleet uses the credentials of scw, kubectl and ssh: see macfleet help environment"
)

func notYet(command string) string { return "macfleet has no " + command + " yet; " }

func noRelease(command string) string {
	return "macfleet has no " + command + "; lower replicas and run macfleet apply, or use macfleet replace HOST or macfleet release NAME"
}

func editThenApply(what string) string {
	return "change the " + what + " in a *.fleet.hcl file, then run macfleet apply"
}

// foreignFlags are flags that people know from other tools, and what to type instead.
var foreignFlags = map[string]string{
	"target": useOn, "limit": useOn, "l": useOn, "selector": useOn, "field-selector": useOn,
	"host": useName, "hosts": useName, "name": useName,
	"fleet": "use --on fleet=FLEET", "group": "use --on group=GROUP", "zone": "use --on zone=ZONE", "all": "without --on a command is about all hosts", "A": "without --on a command is about all hosts",
	"yes": useApprove, "y": useApprove, "assume-yes": useApprove, "force": "use --auto-approve to skip the question",
	"input": "use --auto-approve; without a terminal macfleet asks nothing",
	"check": usePlan, "diff": usePlan, "dry-run": usePlan, "n": usePlan, "list-hosts": useHosts, "refresh-only": "use macfleet drift",
	"syntax-check": "use macfleet validate",
	"refresh":      "macfleet always observes; macfleet plan --snapshot FILE plans from a saved observation",
	"tags":         useStep, "t": useStep, "only": useStep, "start-at-task": useStep,
	"skip-tags": "name the other steps with --step STEP; disable in a fleet block removes a step",
	"inventory": useDirectory, "i": useDirectory, "chdir": useDirectory, "dir": useDirectory, "f": useDirectory, "filename": useDirectory, "config": useDirectory,
	"extra-vars": "use --var NAME=VALUE", "vars": "use --var NAME=VALUE",
	"workspace": useEnvironment, "stack": useEnvironment, "s": useEnvironment, "env": useEnvironment,
	"forks":           "use --parallelism N",
	"ask-become-pass": usePassword, "K": usePassword, "ask-pass": usePassword, "k": usePassword,
	"become": "macfleet uses sudo where it needs it", "b": "macfleet uses sudo where it needs it",
	"user": useSSH, "u": useSSH, "private-key": useSSH, "key-file": useSSH,
	"lock":    "the lock cannot be skipped; --lock-timeout 0 does not wait for it",
	"replace": useReplace,
	"state":   "macfleet has no state file",
	"destroy": "lower replicas and run macfleet apply, or use macfleet release NAME",
	"w":       "use macfleet hosts --watch", "watch": "use macfleet hosts --watch",
	"output": useFormat, "o": useFormat, "jq": useFormat, "template": useFormat,
	"show-labels": "use -o wide or -o json", "no-header": "use --no-headers",
	"quiet": "send standard output to a file; errors are on standard error", "q": "send standard output to a file; errors are on standard error",
	"record": useRecord, "snapshot": useRecord,
	"context": useKubernetes, "kubeconfig": "set KUBECONFIG", "namespace": useKubernetes,
}

const (
	useOn          = "use --on SELECTOR"
	useName        = "use --on name=HOST"
	useApprove     = "use --auto-approve"
	useStep        = "use --step STEP"
	useDirectory   = "use -C DIR"
	useEnvironment = "use -e ENVIRONMENT"
	usePassword    = "use --ask-password HOST"
	useFormat      = "use --json, or --format where the command has it"
	useRecord      = "this command observes by itself; macfleet plan, drift, hosts and explain can use a recorded observation"
	useKubernetes  = "set it in the kubernetes block of the configuration"
	useSSH         = "set it in the ssh block of the configuration"
)
