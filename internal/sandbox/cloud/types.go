package cloud

import (
	"fmt"
	"net/http"
)

// serverType is a type of machine that the vendor offers.
type serverType struct {
	CPU                  cpu     `json:"cpu"`
	Disk                 medium  `json:"disk"`
	Name                 string  `json:"name"`
	Memory               medium  `json:"memory"`
	Stock                string  `json:"stock"`
	MinimumLeaseDuration string  `json:"minimum_lease_duration"`
	GPU                  units   `json:"gpu"`
	Network              network `json:"network"`
	DefaultOS            *OS     `json:"default_os"`
	NPU                  units   `json:"npu"`
	Zone                 string  `json:"zone"`
}

type cpu struct {
	Name           string `json:"name"`
	CoreCount      uint32 `json:"core_count"`
	Frequency      uint64 `json:"frequency"`
	Sockets        uint32 `json:"sockets"`
	ThreadsPerCore uint32 `json:"threads_per_core"`
}

type medium struct {
	Capacity uint64 `json:"capacity"`
	Type     string `json:"type"`
}

type units struct {
	Count uint64 `json:"count"`
}

type network struct {
	PublicBandwidthBps     uint64   `json:"public_bandwidth_bps"`
	SupportedBandwidth     []uint64 `json:"supported_bandwidth"`
	DefaultPublicBandwidth uint64   `json:"default_public_bandwidth"`
}

// giga is used for bytes and bits: the catalogue counts in decimal.
const giga = 1_000_000_000

// asahiType is a type without macOS. It has no lease.
const asahiType = "M2-L-ASAHI"

// typeTable returns the types of all zones. As recorded, all macOS types are out of stock, which is why
// machines are ordered ahead and adopted.
func typeTable() []serverType {
	return []serverType{
		macType("M1-M", "Apple M1", 8, 8, 256),
		macType("M2-M", "Apple M2", 8, 16, 256),
		macType("M2-L", "Apple M2 Pro", 10, 16, 512),
		macType("M4-S", "Apple M4", 10, 16, 256),
		macType("M4-SP", "Apple M4", 10, 16, 512),
		macType("M4-M", "Apple M4", 10, 32, 1000, 10*giga),
		macType("M4-XL", "Apple M4 Pro", 14, 64, 2000, 10*giga),
		macType(asahiType, "Apple M2 Pro", 10, 16, 412),
	}
}

func macType(name, chip string, cores uint32, memoryGB, diskGB uint64, faster ...uint64) serverType {
	return serverType{
		CPU:     cpu{Name: chip, CoreCount: cores, Sockets: 1, ThreadsPerCore: 1},
		Disk:    medium{diskGB * giga, "SSD"},
		Name:    name,
		Memory:  medium{memoryGB * giga, "LPDDR"},
		GPU:     units{1},
		Network: network{giga, append([]uint64{giga}, faster...), giga},
		NPU:     units{1},
	}
}

// serverTypes returns the catalogue of a zone.
func (s Settings) serverTypes(zone string) []serverType {
	all := typeTable()
	for i := range all {
		t := &all[i]
		t.Zone, t.Stock = zone, stockWord(s.stock(zone, t.Name))
		t.MinimumLeaseDuration = fmt.Sprintf("%ds", int(s.lease(t.Name).Seconds()))
		for _, os := range s.systems(zone) {
			if os.Name == s.defaultOS(t.Name) {
				os.SupportedServerTypes = []SupportedOn{}
				t.DefaultOS = &os
			}
		}
	}
	return all
}

func (a *API) listServerTypes(r *http.Request) (any, *failure) {
	own, failed := a.settings()
	if failed != nil {
		return nil, failed
	}
	return map[string]any{"server_types": own.serverTypes(r.PathValue("zone"))}, nil
}

func (a *API) getServerType(r *http.Request) (any, *failure) {
	own, failed := a.settings()
	if failed != nil {
		return nil, failed
	}
	name := r.PathValue("type")
	for _, t := range own.serverTypes(r.PathValue("zone")) {
		if t.Name == name {
			return t, nil
		}
	}
	return nil, notFound("server_type", name)
}
