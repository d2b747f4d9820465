package load

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/macfleet/macfleet/fleet"
)

// everyBlock visits the blocks of the language. The steps are visited once, below defaults.
func everyBlock(b fleet.SchemaBlock, visit func(fleet.SchemaBlock)) {
	for _, inner := range b.Blocks {
		if inner.Step && !strings.HasPrefix(inner.Path, "defaults.") {
			continue
		}
		visit(inner)
		everyBlock(inner, visit)
	}
}

// TestSchemaDescribed asks for a description of every block and attribute, and an example of each attribute.
func TestSchemaDescribed(t *testing.T) {
	t.Parallel()
	everyBlock(Schema(), func(b fleet.SchemaBlock) {
		describedBriefly(t, b.Path, b.Text)
		for _, a := range b.Attributes {
			describedBriefly(t, a.Path, a.Text)
			if a.Example == "" {
				t.Errorf("%s has no example", a.Path)
			}
			if strings.HasPrefix(a.Type, "number") && !strings.Contains(a.Type, "percentage") && a.Unit == "" {
				t.Errorf("%s has no unit", a.Path)
			}
		}
	})
}

func describedBriefly(t *testing.T, path, text string) {
	t.Helper()
	if n := utf8.RuneCountInString(text); n == 0 || n > 130 || !strings.HasSuffix(text, ".") {
		t.Errorf("%s: its description has %d characters and must be a sentence of at most 130: %q", path, n, text)
	}
}

// A chooser is the value that an attribute has in an example; "": it is left out.
type chooser func(fleet.SchemaBlock, fleet.SchemaAttribute) string

// whole gives every attribute the value of its example.
func whole(_ fleet.SchemaBlock, a fleet.SchemaAttribute) string {
	if alternatives[a.Path] != "" {
		return "" // the other one has the place
	}
	return a.Example
}

// alternatives are attributes that cannot be written next to another one of their block.
var alternatives = map[string]string{"fleet.group.types": "type", "defaults.github_runner.token": "app", "defaults.github_runner.repository": "organization",
	"tailnet.client_id": "auth", "tailnet.identity_token": "auth", "tailnet.control_url": "device_budget"}

// only gives the block at path what it must have and one attribute more, and all others everything.
func only(path, name, value string) chooser {
	return func(b fleet.SchemaBlock, a fleet.SchemaAttribute) string {
		switch {
		case b.Path == path && alternatives[path+"."+name] == a.Name:
			return ""
		case b.Path == path && alternatives[path+"."+name] == "auth" && alternatives[a.Path] == "auth": // both, or neither
			return a.Example
		case b.Path == path && a.Name == name:
			return value
		case b.Path == path && !needed(b, a):
			return ""
		}
		return whole(b, a)
	}
}

// sample writes a block with its attributes, and what else is in it.
func sample(b fleet.SchemaBlock, choose chooser, inside string) string {
	var lines strings.Builder
	for _, a := range b.Attributes {
		if value := choose(b, a); value != "" {
			fmt.Fprintf(&lines, "%s = %s\n", a.Name, value)
		}
	}
	head := b.Name
	if b.Example != "" {
		head += " " + b.Example
	}
	text := head + " {}\n"
	if body := lines.String() + inside; body != "" {
		text = head + " {\n" + body + "}\n"
	}
	laid, _ := Format("example", []byte(text))
	return string(laid)
}

// examples are all blocks of the language: one configuration.
func examples(choose chooser) string {
	var text func(b fleet.SchemaBlock) string
	text = func(b fleet.SchemaBlock) string {
		inside := ""
		for _, inner := range b.Blocks {
			if !inner.Step || b.Name == "defaults" {
				inside += text(inner)
			}
		}
		return sample(b, choose, inside)
	}
	var all strings.Builder
	for _, b := range Schema().Blocks {
		all.WriteString(text(b))
	}
	return all.String() + otherArtifact + otherPrograms + otherVariable
}

// needed reports whether a block cannot be read, or not as what its example shows, without an attribute.
func needed(b fleet.SchemaBlock, a fleet.SchemaAttribute) bool {
	switch b.Path + "." + a.Name {
	case "fleet.group.type", "host.server_id", "host.environment", "host.group", "ignore.code", "artifact.sha256", "defaults.tart.artifact", "defaults.tart_kubelet.artifact", "variable.default",
		"defaults.tailscale.artifact", "defaults.node_exporter.artifact", "tailnet.auth", "tailnet.tags", "defaults.github_runner.app", "defaults.github_runner.organization", "defaults.github_runner.version":
		return true
	}
	return a.Required
}

// What the examples refer to and do not declare.
var (
	otherArtifact = "artifact \"tart_kubelet\" {\n version = \"0.4.0\"\n source = \"dist/tart-kubelet\"\n sha256 = \"" + strings.Repeat("9f86d081", 8) + "\"\n}\n"
	otherPrograms = strings.ReplaceAll(otherArtifact, "tart_kubelet", "tailscale") + strings.ReplaceAll(otherArtifact, "tart_kubelet", "node_exporter") + strings.ReplaceAll(otherArtifact, "tart_kubelet", "packer") + strings.ReplaceAll(otherArtifact, "tart_kubelet", "homebrew") +
		"variable \"tailnet\" {\n type = bool\n default = true\n}\n"
	otherVariable = "variable \"cluster_ca\" {\n type = string\n default = <<-PEM\n" + certificate() + "PEM\n}\n"
)

func certificate() string {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		panic(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(1)}, &x509.Certificate{SerialNumber: big.NewInt(1)}, public, private)
	if err != nil {
		panic(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// TestSchemaExamples reads all examples with the loader, together and each attribute by itself, and shows that a
// default that is written out changes nothing.
func TestSchemaExamples(t *testing.T) {
	t.Parallel()
	read := func(choose chooser) *fleet.Config {
		return mustLoad(t, one(examples(choose)), Options{Environment: "production", Version: fleet.Version}).Config
	}
	read(whole)
	places := cmp.Transformer("none", func(fleet.Sources) string { return "" })
	everyBlock(Schema(), func(b fleet.SchemaBlock) {
		without := read(only(b.Path, "", ""))
		for _, a := range b.Attributes {
			read(only(b.Path, a.Name, a.Example))
			if a.Default == "" || needed(b, a) || notInConfig[a.Path] {
				continue
			}
			if diff := cmp.Diff(without, read(only(b.Path, a.Name, a.Default)), places, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s = %s is not the default (-without +with):\n%s", a.Path, a.Default, diff)
			}
		}
	})
}

// notInConfig are attributes whose defaults are not those of the loader: package hosts has the timeouts', and 0 means one wipe.
var notInConfig = map[string]bool{"variable.type": true, "ssh.timeouts.dial": true, "ssh.timeouts.handshake": true, "ssh.timeouts.question": true,
	"ssh.timeouts.change": true, "ssh.timeouts.exchange": true, "ssh.timeouts.silence": true, "ssh.timeouts.undo": true, "guardrails.max_wipes": true}

// TestReference keeps docs/reference/configuration.md equal to the language.
func TestReference(t *testing.T) {
	t.Parallel()
	const file = "../../docs/reference/configuration.md"
	want := reference(Schema())
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if have, err := os.ReadFile(file); err != nil || string(have) != want {
		t.Errorf("docs/reference/configuration.md is not as the language is (%v); go test ./fleet/load -run TestReference -update writes it", err)
	}
}
