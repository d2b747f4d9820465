package main

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/macfleet/macfleet/internal/view"
)

// annotations is whose notes a command prints on the lines of the configuration,
// beside what it says.
type annotations string

const githubNotes annotations = "github"

func (n *annotations) flags(c *cobra.Command) {
	c.Flags().StringVar((*string)(n), "annotations", "", "print notes on the lines of the configuration to standard error, as `SERVICE` reads them: github")
}

func (n annotations) check() error {
	if n != "" && n != githubNotes {
		return fmt.Errorf("--annotations %s: write github", string(n))
	}
	return nil
}

// inRepository names a file, which is named from here, as notes on it do: from the
// configuration's folder in the repository.
func (a *app) inRepository(name string) (string, error) {
	dir, err := a.folder()
	if err != nil {
		return "", err
	}
	below, err := filepath.Rel(a.dir, name)
	if err != nil {
		return "", fmt.Errorf("--annotations: %w", err)
	}
	return filepath.ToSlash(filepath.Join(filepath.FromSlash(dir), below)), nil
}

// layoutNotes prints notes on files that are not laid out.
func (a *app) layoutNotes(names []string) error {
	for i, name := range names {
		var err error
		if names[i], err = a.inRepository(name); err != nil {
			return err
		}
	}
	return view.GitHubLayout(a.err, names)
}
