package stepstest

import "github.com/macfleet/macfleet/plan"

// Disk is what a Mac answers about its images, for tests. It is 2025-11-13T02:13:20Z.
type Disk struct {
	Images string // JSON of tart list; empty: none
	FreeKB int64  // 0: 400 GB
	Work   string
}

// BakedImages are two cached images, one of them by its digest and its tag, and two virtual machines, of which one is two days old.
const BakedImages = `[ { "Source" : "local", "Name" : "bake-old", "Disk" : 100, "Size" : 40, "Accessed" : "2025-11-11T02:13:20Z", "Running" : false, "State" : "stopped" },
 { "Source" : "local", "Name" : "bake-new", "Disk" : 100, "Size" : 41, "Accessed" : "2025-11-13T01:13:20Z", "Running" : false, "State" : "stopped" },
 { "Source" : "OCI", "Name" : "ghcr.io\\/acme\\/base:latest", "Disk" : 100, "Size" : 60, "Accessed" : "2025-11-11T02:13:20Z", "Running" : false, "State" : "stopped" },
 { "Source" : "OCI", "Name" : "ghcr.io\\/acme\\/base@sha256:0123", "Disk" : 100, "Size" : 60, "Accessed" : "2025-11-11T02:13:20Z", "Running" : false, "State" : "stopped" },
 { "Source" : "OCI", "Name" : "ghcr.io\\/acme\\/tools:1", "Disk" : 100, "Size" : 50, "Accessed" : "2025-11-11T02:13:20Z", "Running" : false, "State" : "stopped" } ]`

// Answer is the answer of the probe.
func (d Disk) Answer() plan.Answer {
	var a answer
	images := d.Images
	if images == "" {
		images = "[\n\n]"
	}
	a.part(images+"\n", "images 0")
	if d.FreeKB == 0 {
		d.FreeKB = 400_000_000
	}
	a.disk(d.FreeKB)
	a.part("1763000000\n", "now 0")
	a.part(d.Work, "work 0")
	return a.end()
}
