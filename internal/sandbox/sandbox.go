// Package sandbox is a simulated world to try macfleet in: Mac minis, the provider that rents them out,
// a Kubernetes cluster and GitHub, reached with the real clients over loopback. All of its state is in one
// folder of files that a person may edit. There is no daemon: each process that opens the folder
// serves the same world.
package sandbox

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"

	"github.com/macfleet/macfleet/internal/sandbox/cloud"
	"github.com/macfleet/macfleet/internal/sandbox/github"
	"github.com/macfleet/macfleet/internal/sandbox/kube"
	"github.com/macfleet/macfleet/internal/sandbox/store"
	"github.com/macfleet/macfleet/internal/sandbox/tailnet"
)

// World is an open sandbox. It is safe for concurrent use.
type World struct {
	dir                string
	settings           settings
	cloud              *cloud.API
	kube               *kube.API
	github             *github.API
	tailnet, headscale *tailnet.Server
	log                *accessLog
	macs               *macs
	agents             *agents
	changes            *store.Locker // locked while an incident is injected or healed

	scaleway   *endpoint
	kubernetes *endpoint
	runners    *endpoint // GitHub's API
	devices    *endpoint // Tailscale's API
	secure     secured   // the same API for kubectl
	ssh        *switchboard
	shared     *shared // nil if this process serves the world itself

	// connections cancels what was started for callers when the world is closed.
	connections context.Context
	hangUp      context.CancelFunc
	closing     sync.Once
	closed      error
}

// Open opens the world in dir. If the folder is missing or empty, it creates one from seed; an
// existing world keeps its values.
func Open(dir string, seed Seed) (*World, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open the sandbox: %w", err)
	}
	if !Exists(dir) {
		if err := create(dir, seed); err != nil {
			return nil, err
		}
	}
	return load(dir)
}

func load(dir string) (_ *World, err error) {
	own, err := loadSettings(dir)
	if err != nil {
		return nil, err
	}
	lock := store.NewLocker(filepath.Join(dir, apiLock))
	w := &World{dir: dir, settings: own, shared: sharedFor(dir), changes: store.NewLocker(filepath.Join(dir, changesLock))}
	w.connections, w.hangUp = context.WithCancel(context.Background())
	defer func() {
		if err != nil {
			err = errors.Join(err, w.Close())
		}
	}()
	w.log = &accessLog{path: filepath.Join(dir, accessLogFile)}
	w.cloud, err = cloud.New(filepath.Join(dir, cloudFolder), cloud.Options{
		AccessKey: own.AccessKey, SecretKey: own.SecretKey, ProjectID: own.ProjectID, OrganizationID: organizationID,
		Zones: own.Zones, SSHUser: own.SSHUser, Keys: []string{own.SSHPublicKey}, Lock: lock,
		Changed: func(server cloud.Server) error { _, err := w.macs.get(server); return err },
		Deleted: func(server cloud.Server) error {
			return errors.Join(w.agents.replace(server, nil), w.github.For(server.ID).Report(nil), w.tailnet.For(server.ID).Gone(), w.headscale.For(server.ID).Gone())
		},
		Health: w.health,
	})
	if err != nil {
		return nil, err
	}
	if w.kube, err = kube.New(filepath.Join(dir, kubeFolder), kube.Options{Token: own.KubernetesToken, Lock: lock}); err != nil {
		return nil, err
	}
	if w.github, err = github.New(filepath.Join(dir, githubFolder), github.Options{Archive: runnerArchive}); err != nil {
		return nil, err
	}
	if err = w.openTailnets(func(name string) string { return filepath.Join(dir, name) }); err != nil {
		return nil, err
	}
	// Locked once here, so that a read-only world is refused at once and not at each request.
	unlock, err := lock.Lock()
	if err != nil {
		return nil, fmt.Errorf("open the sandbox in %s: %w; fix: make its files writable, or choose another folder with --sandbox=DIR", dir, err)
	}
	unlock()
	w.agents = newAgents(dir)
	w.macs = newMacs(dir, own)
	w.macs.outside = w.outside
	if w.scaleway, err = listen(w.log.handler("scaleway", w.cloud)); err != nil {
		return nil, err
	}
	if w.kubernetes, err = listen(w.log.handler("kubernetes", &front{world: w})); err != nil {
		return nil, err
	}
	if w.runners, err = listen(w.log.handler("github", w.github)); err != nil {
		return nil, err
	}
	if w.devices, err = listen(w.log.handler("tailscale", w.tailnet)); err != nil {
		return nil, err
	}
	w.ssh = &switchboard{}
	return w, nil
}

// Close closes all connections, stops the listeners and waits for all goroutines. The folder is kept.
func (w *World) Close() error {
	w.closing.Do(func() {
		w.hangUp()
		var failed []error
		for _, served := range []*endpoint{w.scaleway, w.kubernetes, w.runners, w.devices} {
			if served != nil {
				failed = append(failed, served.close())
			}
		}
		failed = append(failed, w.secure.close())
		if w.ssh != nil {
			failed = append(failed, w.ssh.close())
		}
		if w.log != nil {
			failed = append(failed, w.log.close())
		}
		w.closed = errors.Join(failed...)
	})
	return w.closed
}

// ScalewayURL returns the address of the simulated Scaleway API.
func (w *World) ScalewayURL() string {
	if w.shared != nil {
		return w.shared.scaleway
	}
	return w.scaleway.url()
}

// Provider returns the simulated Scaleway, to set how it behaves and what it refuses.
func (w *World) Provider() *cloud.API { return w.cloud }

// ScalewayKeys returns the credentials that the simulated Scaleway accepts.
func (w *World) ScalewayKeys() (accessKey, secretKey string) {
	return w.settings.AccessKey, w.settings.SecretKey
}

// ProjectID returns the project of all servers in this world.
func (w *World) ProjectID() string { return w.settings.ProjectID }

// Zones returns the zones of the world.
func (w *World) Zones() []string { return slices.Clone(w.settings.Zones) }

// KubernetesURL returns the address of the simulated Kubernetes API.
func (w *World) KubernetesURL() string {
	if w.shared != nil {
		return w.shared.kubernetes
	}
	return w.kubernetes.url()
}

// KubernetesToken returns the bearer token that the simulated Kubernetes accepts.
func (w *World) KubernetesToken() string { return w.settings.KubernetesToken }

// KubeContext returns the cluster's name in a kubeconfig, or "" if any name is accepted.
func (w *World) KubeContext() string { return w.settings.KubeContext }

// ClusterUID returns the uid of the cluster's kube-system namespace.
func (w *World) ClusterUID() string { return w.settings.ClusterUID }

// GitHubURL returns the address of the simulated GitHub API, without a slash at its end.
func (w *World) GitHubURL() string {
	if w.shared != nil {
		return w.shared.github
	}
	return w.runners.url()
}

// GitHub returns the simulated GitHub, to set how it behaves and to change runners as a person does.
func (w *World) GitHub() *github.API { return w.github }
