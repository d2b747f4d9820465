package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/macfleet/macfleet/internal/view"
)

// The forms in which plans are printed.
const (
	formatText     = "text"
	formatJSON     = "json"
	formatMarkdown = "markdown"
)

// defaultLimit is how long a Markdown document is: GitHub takes comments of 65,536
// characters, and something stands around it.
const defaultLimit = 60_000

// formatOptions say how a plan is printed.
type formatOptions struct {
	format string
	json   bool
	limit  int
}

func (o *formatOptions) flags(c *cobra.Command) {
	c.Flags().BoolVar(&o.json, "json", false, "print one JSON document, as --format json does")
	c.Flags().StringVar(&o.format, "format", formatText, "print the plan as `FORM`: text, json or markdown")
	c.Flags().IntVar(&o.limit, "limit", defaultLimit, "with --format markdown: at most so many `BYTES`")
}

// check settles the form.
func (o *formatOptions) check(c *cobra.Command) error {
	forms := []string{formatText, formatJSON, formatMarkdown}
	switch {
	case !slices.Contains(forms, o.format):
		return fmt.Errorf("--format %s: write %s", o.format, strings.Join(forms, ", "))
	case o.json && c.Flags().Changed("format") && o.format != formatJSON:
		return fmt.Errorf("--json and --format %s exclude each other", o.format)
	case c.Flags().Changed("limit") && o.format != formatMarkdown:
		return errors.New("--limit is of --format markdown")
	}
	if o.json {
		o.format = formatJSON
	}
	if o.format != formatMarkdown {
		return nil
	}
	_, err := view.NewMarkdown(o.limit)
	return err
}

// completeForms offers the forms in which plans are printed.
func completeForms([]string, string) []string {
	return []string{formatJSON, formatMarkdown, formatText}
}

// folder is the configuration's folder as notes on its lines name it: from the top of
// the repository where the environment tells it, else from here.
func (a *app) folder() (string, error) {
	top := os.Getenv("GITHUB_WORKSPACE")
	if top == "" {
		top = "."
	}
	top, err := filepath.Abs(top)
	if err != nil {
		return "", fmt.Errorf("--annotations: %w", err)
	}
	dir, err := filepath.Abs(a.dir)
	if err != nil {
		return "", fmt.Errorf("--annotations: %w", err)
	}
	name, err := filepath.Rel(top, dir)
	if err != nil {
		return "", fmt.Errorf("--annotations: %w", err)
	}
	return filepath.ToSlash(name), nil
}
