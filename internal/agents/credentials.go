package agents

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/providers/github"
)

// CredentialsError says that the credentials of a scope could not be read, or are not valid. No request was sent.
type CredentialsError struct{ error }

// Unwrap returns the faults.
func (e *CredentialsError) Unwrap() error { return e.error }

// Token is the attribute of a token. Those of an App are package github's.
const Token = "token"

// client returns the client of a scope. Its credentials are read when it is needed first.
func (a *Agents) client(ctx context.Context, s *scope) (*github.Client, error) {
	return s.client.get(ctx, func(*github.Client) bool { return true }, func() (*github.Client, error) {
		credentials, err := a.credentials(ctx, s.Runner)
		if err != nil {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			return nil, &CredentialsError{fmt.Errorf("credentials for %s: %w", s.URL, err)}
		}
		return github.New(github.Options{Scope: s.place(), Credentials: credentials, HTTP: a.HTTP, Waiting: a.Waiting, URL: a.URL})
	})
}

func (a *Agents) credentials(ctx context.Context, r fleet.GithubRunner) (github.Credentials, error) {
	if r.App != nil {
		app, err := a.app(ctx, *r.App)
		if err != nil {
			return github.Credentials{}, fmt.Errorf("%s: %w", r.App, err)
		}
		return github.Credentials{App: &app}, nil
	}
	if r.Token == nil {
		return github.Credentials{}, github.ErrNoCredentials
	}
	token, err := a.Resolve(ctx, Token, *r.Token)
	if err != nil {
		return github.Credentials{}, fmt.Errorf("%s: %w", Token, err)
	}
	return github.Credentials{Token: token}, nil
}

// app reads an App. The error has every fault: of the references, and of what was read.
func (a *Agents) app(ctx context.Context, of fleet.GitHubApp) (github.App, error) {
	unread := make(map[string]error)
	read := func(attribute string, ref secret.Ref) secret.Value {
		v, err := a.Resolve(ctx, attribute, ref)
		if err != nil {
			unread[attribute] = err
		}
		return v
	}
	known := func(attribute string, k fleet.Known) string {
		if k.Ref.IsZero() {
			return k.Text
		}
		return read(attribute, k.Ref).Reveal()
	}
	app := github.App{ID: known(github.AppID, of.AppID), Installation: known(github.InstallationID, of.InstallationID),
		Keys: []secret.Value{read(github.PrivateKey, of.PrivateKey)}}
	if !of.PreviousPrivateKey.IsZero() {
		app.Keys = append(app.Keys, read(github.PreviousKey, of.PreviousPrivateKey))
	}
	faults := app.Faults()
	maps.Copy(faults, unread) // why a value was not read counts, not that it is empty
	return app, github.JoinFaults(faults)
}

// isCredentials reports whether no request was sent because of the credentials.
func isCredentials(err error) bool {
	var e *CredentialsError
	return errors.As(err, &e)
}
