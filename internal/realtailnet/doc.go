// Package realtailnet has the tests that run against a real tailnet: Headscale, tailscaled and node_exporter, in a
// network namespace that no packet leaves. .ci/tailnet builds these programs from the modules in this folder, which are
// separate, so that their dependencies do not become those of macfleet. macfleet's own parsers and scripts read and
// operate them, so that the simulator and the recorded outputs cannot drift from the real ones.
package realtailnet
