package plan

import (
	"fmt"
	"slices"
)

// The codes that are raised here.
var (
	codeNameTaken       = NewCode("name-taken", Warning, "two servers bear the name", "rename one of the two")
	codeAdoptedFromPool = NewCode("adopted-from-pool", Warning, "a server with a host block still bears the name of a pool server",
		"rename it before it is adopted, or remove its host block and let it be claimed")
	codeNameDiffers = NewCode("name-differs", Warning, "a server with a host block bears another name",
		"write the server's name in the configuration, or correct its server_id")
)

// refuseAdopted enters into the adopted servers why they cannot be taken over.
// Their names are not made from their ids, so that only the inventory can show
// that a block means the right machine.
func (c *census) refuseAdopted(servers []placed) {
	if len(c.adopted) == 0 {
		return
	}
	bearers := make(map[string][]string, len(c.adopted)) // ids by listed name
	for _, l := range c.adopted {
		bearers[l.Name] = nil
	}
	for i := range servers {
		for _, name := range slices.Compact([]string{servers[i].name, servers[i].server.Name}) {
			if ids, listed := bearers[name]; listed {
				bearers[name] = append(ids, servers[i].server.ID)
			}
		}
	}
	for i := range servers {
		if p := &servers[i]; p.adopted {
			p.refused = c.notAdoptable(p, bearers[p.name])
		}
	}
}

// notAdoptable returns why a listed server is not taken over under its listed
// name, which the servers of bearers have or should have, or nil.
func (c *census) notAdoptable(p *placed, bearers []string) *Trouble {
	for _, id := range bearers {
		if id != p.server.ID {
			return &Trouble{Code: codeNameTaken,
				Text:   fmt.Sprintf("server %s is listed as %s, and server %s has that name too", p.server.ID, p.name, id),
				Remedy: "rename one of the two in " + c.vendor.Console() + ", and check the server_id of the host block"}
		}
	}
	switch {
	case p.name == p.server.Name || p.witnessed:
		return nil
	case p.pooled:
		return &Trouble{Code: codeAdoptedFromPool,
			Text:   fmt.Sprintf("server %s is called %s, so it belongs to the pool", p.server.ID, p.server.Name),
			Remedy: "rename it in " + c.vendor.Console() + " before it is adopted, or remove its host block and let it be claimed"}
	}
	return &Trouble{Code: codeNameDiffers,
		Text:   fmt.Sprintf("server %s is called %s; an adopted server keeps its present name", p.server.ID, p.server.Name),
		Remedy: fmt.Sprintf("write host %q in the configuration, or correct its server_id", p.server.Name)}
}
