package sandbox

import "github.com/macfleet/macfleet/internal/sandbox/kube"

// AddressForTest gives the public address of the host in position i of a fresh world.
func AddressForTest(i int) string { return publicIP(i).String() }

// ClusterForTest gives the world's cluster.
func (w *World) ClusterForTest() *kube.API { return w.kube }
