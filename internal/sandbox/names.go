package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/internal/sandbox/cloud"
)

// Names returns the machines' names in the folder dir, sorted, without opening the world. Unreadable
// files are skipped. It is for completion.
func Names(dir string) []string {
	folder := filepath.Join(dir, cloudFolder, "servers")
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".json") {
			continue
		}
		if server, err := cloud.ReadServer(filepath.Join(folder, e.Name())); err == nil && server.Name != "" {
			names = append(names, server.Name)
		}
	}
	slices.Sort(names)
	return names
}
