package load

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/secret"
)

// Schema returns the configuration language: the very structs into which files are decoded, with
// their descriptions. The block it returns is the top of a file.
func Schema() fleet.SchemaBlock {
	return schemaOf("", member{typ: reflect.TypeFor[document]()})
}

func schemaOf(path string, m member) fleet.SchemaBlock {
	sh := shapeOf(m.name, m.typ)
	said := map[string]fleet.Description{}
	if d, ok := reflect.Zero(m.typ).Interface().(fleet.Described); ok {
		said = d.Describe()
	}
	b := fleet.SchemaBlock{Path: path, Name: m.name, Description: said[""], Many: m.many, Required: m.tag.Get("says") != "",
		Step: slices.ContainsFunc(steps.members, func(s member) bool { return s.typ == m.typ })}
	for _, inner := range sh.members {
		at := strings.TrimPrefix(path+"."+inner.name, ".")
		if inner.block {
			b.Blocks = append(b.Blocks, schemaOf(at, inner))
			continue
		}
		d := said[inner.name]
		if d.Type == "" {
			d.Type = schemaType(inner)
		}
		if text, ok := inner.tag.Lookup("default"); ok {
			d.Default = schemaDefault(inner.typ, text)
		}
		b.Attributes = append(b.Attributes, fleet.SchemaAttribute{Path: at, Name: inner.name, Description: d, Required: inner.required})
	}
	return b
}

// schemaType names the type of an attribute, with its bounds.
func schemaType(m member) string {
	t := m.typ
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == reflect.TypeFor[hclsyntax.Expression]():
		return "expression"
	case t == reflect.TypeFor[secret.Ref]():
		return "secret"
	case t == reflect.TypeFor[fleet.Artifact]():
		return "artifact"
	case t == reflect.TypeFor[fleet.GitHubApp]():
		return "github_app"
	case t == reflect.TypeFor[fleet.Known]():
		return "string or secret"
	case t == reflect.TypeFor[fleet.Share]():
		return fmt.Sprintf("number, 1 to %d, or percentage", maxHosts)
	case t == reflect.TypeFor[time.Duration]():
		shortest, longest := durationBounds(m.tag)
		return fmt.Sprintf("duration, %s to %s", shortest, longest)
	case t.Kind() == reflect.Bool:
		return "bool"
	case t.Kind() == reflect.Slice:
		return "list of strings"
	case t.Kind() == reflect.Map:
		return "map of strings"
	case t.Kind() == reflect.String:
		return "string"
	}
	least, most := bound(m.tag, "least", 0), bound(m.tag, "max", maxNumber)
	if most >= maxNumber {
		return fmt.Sprintf("number, at least %d", least)
	}
	return fmt.Sprintf("number, %d to %d", least, most)
}

// schemaDefault writes the text of a default tag as HCL.
func schemaDefault(t reflect.Type, text string) string {
	switch {
	case t.Kind() == reflect.Slice:
		var all []string
		for part := range strings.SplitSeq(text, ",") {
			all = append(all, strconv.Quote(part))
		}
		return "[" + strings.Join(all, ", ") + "]"
	case t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.String:
		return strconv.Quote(text)
	}
	return text
}

// The descriptions of blocks that only the loader knows. Those of steps, and of what a
// configuration holds, are in package fleet.

func (macfleetBlock) Describe() map[string]fleet.Description {
	return map[string]fleet.Description{
		"":                 {Text: "Settings of the configuration as a whole."},
		"name":             {Text: "Name of the configuration. The names of all its servers begin with it.", Example: `"acme"`},
		"required_version": {Text: "Versions of macfleet that may use the configuration.", Example: `">= 0.1.0"`},
	}
}

func (variableBlock) Describe() map[string]fleet.Description {
	return map[string]fleet.Description{
		"":            {Text: "A value that environments, files and the command line can set.", Example: `"runners"`},
		"type":        {Text: "Type of the value; without it, any type.", Type: "type", Default: "any", Example: "number"},
		"default":     {Text: "Value if nothing else sets one. A variable without a default must be set.", Type: "any", Example: "3"},
		"description": {Text: "What the variable is for.", Example: `"runners in this environment"`},
	}
}

func (environmentBlock) Describe() map[string]fleet.Description {
	return map[string]fleet.Description{
		"":            {Text: "An environment, chosen with -e. Where one exists, -e is required.", Example: `"production"`},
		"cluster_uid": {Text: "UID of the namespace kube-system: another cluster is an error.", Example: `"5a4d6b3c-0000-4000-8000-000000000002"`},
		"project_id":  {Text: "Scaleway project of the servers; without it, SCW_DEFAULT_PROJECT_ID.", Example: `"5d6e8f70-1a2b-4c3d-8e4f-5a6b7c8d9e0f"`},
		"variables":   {Text: "Values of variables in this environment.", Type: "map of values", Example: "{ runners = 9 }"},
	}
}

// localsBlock may hold any arguments.
type localsBlock struct{}

func (localsBlock) Describe() map[string]fleet.Description {
	return map[string]fleet.Description{"": {Text: "Values with names of your choice, referred to as local.NAME."}}
}

func (defaultsBlock) Describe() map[string]fleet.Description {
	return map[string]fleet.Description{
		"":   {Text: "What all fleets have unless they override it: os and steps."},
		"os": {Text: describedOS, Example: `"Tahoe"`},
	}
}

const describedOS = "macOS family of the hosts. Required in the fleet or in defaults."

func (fleetBlock) Describe() map[string]fleet.Description {
	return map[string]fleet.Description{
		"":        {Text: "A set of servers with one specification. Steps in it override those of defaults.", Example: `"runners"`},
		"os":      {Text: describedOS, Example: `"Tahoe"`},
		"disable": {Text: "Steps of defaults that this fleet does not have.", Default: "[]", Example: `["hostname"]`},
	}
}

func (groupBlock) Describe() map[string]fleet.Description {
	return map[string]fleet.Description{
		"":         {Text: "The servers of a fleet that have one type. Steps in it override those of the fleet.", Example: `"m2"`},
		"type":     {Text: "Server type at Scaleway. Required, unless types has a list.", Example: `"M2-L"`},
		"types":    {Text: "In place of type: server types that the group accepts, the preferred one first.", Example: `["M2-L", "M4-S"]`},
		"replicas": {Text: "Number of servers.", Unit: "hosts", Example: "3"},
	}
}

func (hostBlock) Describe() map[string]fleet.Description {
	return map[string]fleet.Description{
		"":            {Text: "Adopts a server under its present name, or overrides values of one host.", Example: `"acme-legacy-01"`},
		"server_id":   {Text: "Id of the server. Required to adopt one.", Example: `"8f1c2a44-0d3b-4c1e-9a77-2b6f0e5d4c31"`},
		"environment": {Text: "Environment of an adopted server. Required where environments exist; a string without references.", Type: "string", Example: `"production"`},
		"group":       {Text: "Group that an adopted server joins, without quotes.", Type: "reference", Example: "fleet.runners.group.m2"},
		"password":    {Text: "Login password, if Scaleway does not provide the right one.", Example: `secret("op://acme/MAC-0A1B2/password")`},
	}
}

func (movedBlock) Describe() map[string]fleet.Description {
	return map[string]fleet.Description{
		"":     {Text: "Moves hosts to a renamed fleet or group without wiping them."},
		"from": {Text: "Fleet or group that is gone from the configuration.", Type: "reference", Example: "fleet.runner"},
		"to":   {Text: "Fleet or group that takes its hosts.", Type: "reference", Example: "fleet.runners"},
	}
}
