package app

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/term"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/providers/scaleway"
)

// passwords finds login passwords: what Scaleway reports, then the host's own block, then what a person typed.
type passwords struct {
	*session
	servers *scaleway.Client
	known   sync.Map // []engine.Password by server id: read from Scaleway once
}

// Find looks in all places, and fails only when none has a password.
func (p *passwords) Find(ctx context.Context, server inventory.Server, host string) ([]engine.Password, error) {
	if known, ok := p.known.Load(server.ID); ok {
		return known.([]engine.Password), nil
	}
	var found []engine.Password
	reported, terr := p.servers.Passwords(ctx, server.Zone, server.ID)
	for _, t := range reported {
		found = append(found, engine.Password{Value: t.Value, Source: t.Source})
	}
	var rerr error
	if l, ok := p.config.Listed(host); ok && l.Password != (secret.Ref{}) {
		var v secret.Value
		if v, rerr = p.resolver().Resolve(ctx, l.Password); rerr == nil {
			found = append(found, engine.Password{Value: v, Source: "its host block"})
		}
	}
	for _, name := range p.namesOf(plan.Host{Name: host, Server: server}) {
		if v, ok := p.asked[name]; ok {
			found = append(found, engine.Password{Value: v, Source: "--ask-password"})
			break
		}
	}
	if len(found) == 0 {
		return nil, noPassword(terr, rerr)
	}
	for _, f := range found {
		p.env.secrets.Learn(f.Value.Reveal()) // to keep it out of what is printed
	}
	p.known.Store(server.ID, found)
	return found, nil
}

// noPassword says why there is none: the host block's fault counts more, because someone wrote it.
func noPassword(told, resolved error) error {
	switch {
	case resolved != nil:
		return plan.CodeMissingSudoPassword.Trouble("the password of its host block cannot be read: " + resolved.Error())
	case errors.Is(told, scaleway.ErrSealed):
		return engine.CodeSealedInGet.Trouble(told.Error())
	case errors.Is(told, scaleway.ErrNotDisclosed):
		return engine.CodePasswordNotDisclosed.Trouble(told.Error())
	case told != nil:
		return plan.CodeMissingSudoPassword.Trouble("Scaleway did not answer: " + told.Error())
	}
	return plan.CodeMissingSudoPassword.Trouble("none is known")
}

// askPasswords asks for the passwords of hosts, unseen on a terminal; from a pipe a line each is read.
func (env *Env) askPasswords(names []string) (map[string]secret.Value, error) {
	asked := make(map[string]secret.Value, len(names))
	for _, name := range names {
		if _, twice := asked[name]; twice {
			return nil, fmt.Errorf("--ask-password: %s is named twice", name)
		}
		text, err := env.askPassword(name)
		if err != nil {
			return nil, fmt.Errorf("read the password of %s: %w", name, err)
		}
		v, err := secret.New(text)
		if err != nil {
			return nil, fmt.Errorf("the password of %s: %w", name, err)
		}
		asked[name] = v
	}
	return asked, nil
}

func (env *Env) askPassword(name string) (string, error) {
	if file, ok := env.In.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		t := env.errText()
		t.Print("Login password of " + name + ": ")
		before, err := term.GetState(int(file.Fd()))
		if err != nil {
			return "", err
		}
		text, err := within(env.stop, bounds{}, func() ([]byte, error) { return term.ReadPassword(int(file.Fd())) })
		_ = term.Restore(int(file.Fd()), before) // what was stopped has left the terminal without an echo
		t.Print("\n")
		return string(text), err
	}
	in := env.lines()
	line, err := within(env.stop, bounds{}, func() (string, error) { return in.ReadString('\n') })
	if errors.Is(err, io.EOF) && line != "" {
		err = nil
	}
	return strings.TrimRight(line, "\r\n"), err
}

// lines reads the standard input by lines. There is one reader: it reads ahead.
func (env *Env) lines() *bufio.Reader {
	if env.input == nil {
		env.input = bufio.NewReader(env.In)
	}
	return env.input
}

// namesOf are the names by which a person may have named a host whose password was typed.
func (s *session) namesOf(h plan.Host) []string {
	names := []string{h.Name, h.Server.Name, h.Server.ID}
	for _, m := range s.engine.Selection.Meant {
		if m.Name == h.Name {
			names = append(names, m.Given)
		}
	}
	return names
}
