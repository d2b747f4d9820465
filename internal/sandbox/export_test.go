package sandbox

import "github.com/macfleet/macfleet/internal/sandbox/kube"

// AddressForTest returns the public address of the host at position i of a new world.
func AddressForTest(i int) string { return publicIP(i).String() }

// ClusterForTest returns the world's cluster.
func (w *World) ClusterForTest() *kube.API { return w.kube }
