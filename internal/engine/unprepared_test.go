package engine_test

import "testing"

// TestUnpreparedCluster: what the cluster lacks is reported about the hosts that a claim
// would take, and of no pool server: another one would not do either.
func TestUnpreparedCluster(t *testing.T) {
	t.Parallel()
	w, _ := world(t, 4)
	p := planned(t, run(t, w, nodes(2)))
	if len(p.Rejected) > 0 || len(p.Shortages) > 0 || len(p.Hosts) != 2 {
		t.Fatalf("rejected %+v, short %+v, hosts %d", p.Rejected, p.Shortages, len(p.Hosts))
	}
	for _, h := range p.Hosts {
		if h.Refused == nil || h.Refused.Code.String() != "cluster-not-prepared" {
			t.Errorf("%s: refused %+v", h.Name, h.Refused)
		}
	}
}
