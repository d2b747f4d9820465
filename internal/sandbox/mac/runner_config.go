package mac

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strings"

	"github.com/macfleet/macfleet/internal/sandbox/agent"
)

// inputPrefix starts the names of the environment variables that replace arguments of config.sh.
const inputPrefix = "ACTIONS_RUNNER_INPUT_"

// Arguments and flags of config.sh.
var (
	runnerArguments = strings.Fields("url token name labels runnergroup work pat jitconfig auth monitorsocketaddress username windowslogonaccount windowslogonpassword")
	runnerFlags     = strings.Fields("unattended replace ephemeral disableupdate no-default-labels local check generateServiceConfig runasservice once help commit version")
)

// runnerInput is what config.sh was given, by name.
type runnerInput struct {
	values  map[string]string
	flags   map[string]bool
	unknown []string
}

// input reads arguments and environment. An argument counts more than a variable.
func (c runnerCall) input() runnerInput {
	in := runnerInput{map[string]string{}, map[string]bool{}, nil}
	for name, value := range c.env {
		rest, ok := strings.CutPrefix(name, inputPrefix)
		if !ok || value == "" {
			continue
		}
		if known, ok := nameIn(runnerArguments, rest); ok {
			in.values[known] = value
		} else if known, ok := nameIn(runnerFlags, rest); ok {
			in.flags[known] = strings.EqualFold(value, "true") // no other word counts
		}
	}
	args := c.args()[1:]
	for i := 0; i < len(args); i++ {
		name, found := strings.CutPrefix(args[i], "--")
		argument, isArgument := nameIn(runnerArguments, name)
		flag, isFlag := nameIn(runnerFlags, name)
		switch {
		case found && isArgument && i+1 < len(args) && !strings.HasPrefix(args[i+1], "--"):
			i++
			in.values[argument] = args[i]
		case found && isFlag:
			in.flags[flag] = true
		case !isArgument:
			in.unknown = append(in.unknown, name)
		}
	}
	return in
}

func nameIn(all []string, name string) (string, bool) {
	for _, one := range all {
		if strings.EqualFold(one, name) {
			return one, true
		}
	}
	return "", false
}

// configure registers the runner. It writes its files one after the other: one that is killed leaves those before.
func (c runnerCall) configure() int {
	in := c.input()
	if len(in.unknown) > 0 {
		c.say("Unrecognized command-line input arguments: '%s'. For usage refer to: .\\config.cmd --help or ./config.sh --help", strings.Join(in.unknown, "', '"))
	}
	if c.configured() {
		return c.refuse("Cannot configure the runner because it is already configured. To reconfigure the runner, run 'config.cmd remove' or './config.sh remove' first.")
	}
	if !c.step() {
		return exitTerminated
	}
	key, err := c.key()
	if err != nil {
		return c.refuse("%s", why(err))
	}
	for _, name := range []string{"url", "token"} {
		if in.values[name] == "" && in.flags["unattended"] {
			return c.refuse("Invalid configuration provided for %s. Terminating unattended configuration.", name)
		} else if in.values[name] == "" {
			return c.refuse("Cannot read keys when either application does not have a console or when console input has been redirected.")
		}
	}
	if !in.flags["unattended"] {
		return c.unmodelled("config.sh without --unattended")
	}
	return c.register(in, key)
}

// refuse prints an error of config.sh, which has one exit code for all of them.
func (c runnerCall) refuse(format string, args ...any) int {
	c.say(format, args...)
	return exitFailed
}

// key creates the runner's key, or reads the one of an earlier registration that did not finish.
func (c runnerCall) key() (string, error) {
	var k runnerKey
	if c.has(keyFile) {
		if err := c.load(keyFile, &k); err != nil {
			return "", err
		}
	} else {
		random := make([]byte, 512)
		_, _ = rand.Read(random) // never fails
		k = runnerKey{D: base64.StdEncoding.EncodeToString(random[:256]), Exponent: "AQAB", Modulus: base64.StdEncoding.EncodeToString(random[256:])}
		if err := c.store(keyFile, k); err != nil {
			return "", err
		}
		if err := c.visit(func(v *visit) error {
			n, err := v.find(c.user, "/", c.at(keyFile), true)
			if err != nil {
				return err
			}
			return v.chmod(c.user, n, func(o owner) owner { o.Mode = 0o600; return o })
		}); err != nil {
			return "", err
		}
	}
	sum := sha256.Sum256([]byte(k.Modulus))
	return hex.EncodeToString(sum[:]), nil
}

// register makes the entry at GitHub and writes the files that name it.
func (c runnerCall) register(in runnerInput, key string) int {
	if c.runners() == nil {
		return c.refuse("Http response code: 0 from 'POST https://api.github.com/actions/runner-registration': nodename nor servname provided, or not known")
	}
	r := agent.Registration{URL: in.values["url"], Token: in.values["token"], Key: key, Name: in.values["name"], Group: in.values["runnergroup"],
		NoDefault: in.flags["no-default-labels"], Ephemeral: in.flags["ephemeral"], DisableUpdate: in.flags["disableupdate"],
		Replace: in.flags["replace"], Version: c.version}
	if r.Name == "" {
		_ = c.visit(func(v *visit) error { r.Name, _ = v.hostName(); return nil }) // a Mac always has one
	}
	for name := range strings.SplitSeq(in.values["labels"], ",") {
		if name = strings.TrimSpace(name); len(name) > 256 {
			return c.refuse("Invalid labels: a label has at most 256 characters")
		} else if name != "" {
			r.Labels = append(r.Labels, name)
		}
	}
	if !c.step() {
		return exitTerminated
	}
	done, err := c.runners().Register(r)
	if err != nil {
		return c.refuse("%s", err)
	}
	c.say("√ Connected to GitHub\n√ Runner successfully added")
	credentials := runnerCredentials{"OAuth", map[string]string{"clientId": done.Client, "authorizationUrl": "https://vstoken.actions.githubusercontent.com/_apis/oauth2/token", "requireFipsCryptography": "False"}}
	work := in.values["work"]
	if work == "" {
		work = "_work"
	}
	settings := runnerSettings{AgentID: done.ID, AgentName: r.Name, PoolID: done.GroupID, PoolName: done.Group, DisableUpdate: r.DisableUpdate,
		Ephemeral: r.Ephemeral, ServerURL: done.ServerURL, GitHubURL: r.URL, WorkFolder: work, V2Flow: done.Second}
	if done.Second {
		settings.ServerURLV2 = "https://broker.actions.githubusercontent.com/"
	}
	for _, file := range []func() error{
		func() error { return c.store(credentialsFile, credentials) },
		func() error { return c.store(runnerFile, settings) },
		func() error { return c.write(svcFile, []byte(svcScript), 0o755) },
	} {
		if !c.step() {
			return exitTerminated
		}
		if err := file(); err != nil {
			return c.refuse("%s", why(err))
		}
	}
	c.say("√ Runner connection is good\n√ Settings Saved.")
	return 0
}

// svcScript is the file svc.sh, which configuring makes of a template.
const svcScript = `#!/bin/bash
echo "svc.sh is not modelled: load a property list with launchctl" >&2
exit 64
`

// unconfigure removes the configuration, and the entry at GitHub unless only the files should go.
func (c runnerCall) unconfigure() int {
	in := c.input()
	switch {
	case c.has(serviceFile):
		return c.refuse("Failed: Removing runner from the server\nUninstall service first")
	case in.flags["local"]:
	case !c.has(runnerFile) && !c.has(credentialsFile):
		c.say("Does not exist. Skipping Removing runner from the server")
	case in.values["token"] == "":
		return c.refuse("Invalid configuration provided for token. Terminating unattended configuration.")
	default:
		if !c.step() {
			return exitTerminated
		}
		if status := c.unregister(in.values["token"]); status != 0 {
			return status
		}
	}
	for _, name := range []string{credentialsFile, keyFile, runnerFile} {
		if !c.step() {
			return exitTerminated
		}
		if err := c.delete(name, name+migratedSuffix); err != nil {
			return c.refuse("%s", why(err))
		}
	}
	c.say("√ Removed .credentials\n√ Removed .runner")
	return 0
}

// unregister removes the entry of the runner's name. None is not an error.
func (c runnerCall) unregister(token string) int {
	var own runnerSettings
	if err := c.newest(runnerFile, &own); err != nil {
		return c.refuse("Settings file %s cannot be read", c.at(runnerFile))
	}
	if c.runners() == nil {
		return c.refuse("Http response code: 0 from 'POST https://api.github.com/actions/runner-registration'")
	}
	switch err := c.runners().Remove(own.GitHubURL, token, own.AgentName); err {
	case nil:
		c.say("√ Runner removed successfully")
	case agent.ErrUnknown:
		c.say("%s", err)
	default:
		return c.refuse("Failed: Removing runner from the server\n%s", err)
	}
	return 0
}
