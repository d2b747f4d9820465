package sandbox

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/macfleet/macfleet/internal/sandbox/cloud"
)

const (
	// maxHosts is limited by the ids, whose first five hex digits must differ.
	maxHosts = 10_000

	poolOS      = "macos-tahoe-26.3"
	poolVersion = "26.3"
	poolBuild   = "25D125"
	vncPort     = 59010
)

// population returns the servers of a new world. All of them follow from the seed, so that two new
// worlds are equal.
func population(seed Seed) ([]cloud.Server, error) {
	width := max(2, len(fmt.Sprint(seed.Hosts)))
	servers := make([]cloud.Server, 0, seed.Hosts)
	used := map[string]bool{}
	for i := range seed.Hosts {
		server, err := delivered(seed, i, serverID(i, used))
		if err != nil {
			return nil, err
		}
		server.Type, server.Name = serverType(i, seed.Hosts), fmt.Sprintf("%s%0*d", seed.PoolPrefix, width, i+1)
		if seed.Population == ByHand {
			server.Name, server.Type = handName(i, seed.Hosts)
		}
		servers = append(servers, server)
	}
	for i, rented := range seed.Rented {
		server, err := delivered(seed, seed.Hosts+i, rented.ID)
		if err != nil {
			return nil, err
		}
		server.Type, server.Name = rented.Type, rented.Name
		servers = append(servers, server)
	}
	return servers, nil
}

// delivered returns the server at position i as delivered, without a type and a name.
func delivered(seed Seed, i int, id string) (cloud.Server, error) {
	zone := seed.Zones[i%len(seed.Zones)]
	os, err := cloud.Embedded(poolOS, zone)
	if err != nil {
		return cloud.Server{}, fmt.Errorf("create the sandbox: %w", err)
	}
	address, secret := publicIP(i), password(id)
	created := firstOrder().Add(time.Duration(i) * 37 * time.Minute)
	return cloud.Server{
		ID:                 id,
		ProjectID:          seed.ProjectID,
		OrganizationID:     organizationID,
		IP:                 address,
		VncURL:             fmt.Sprintf("vnc://%s:%s@%s:%d", seed.SSHUser, secret, address, vncPort),
		VncPort:            vncPort,
		SSHUsername:        seed.SSHUser,
		SudoPassword:       secret,
		OS:                 os,
		Status:             "ready",
		CreatedAt:          created,
		UpdatedAt:          created.Add(25 * time.Minute),
		DeletableAt:        created.Add(24 * time.Hour),
		Zone:               zone,
		Delivered:          true,
		VpcStatus:          "vpc_disabled",
		Commitment:         &cloud.Commitment{Type: "none"},
		PublicBandwidthBps: 1_000_000_000,
	}, nil
}

// firstOrder is when the first server of every world was ordered.
func firstOrder() time.Time {
	return time.Date(2026, time.March, 2, 9, 14, 0, 0, time.UTC)
}

// serverType makes all but the last two of a pool M2-L: a fleet that needs one type must not be able
// to claim any server.
func serverType(i, hosts int) string {
	switch {
	case hosts > 1 && i == hosts-1:
		return "M2-M"
	case hosts > 2 && i == hosts-2:
		return "M4-S"
	default:
		return "M2-L"
	}
}

// serverID returns the id of the server at position i. It looks random, and its first five digits,
// which become part of host names, are unique.
func serverID(i int, used map[string]bool) string {
	for attempt := 0; ; attempt++ {
		sum := digest(fmt.Sprintf("server %d %d", i, attempt))
		id := cloud.FormatUUID([16]byte(sum[:16]))
		if !used[id[:5]] {
			used[id[:5]] = true
			return id
		}
	}
}

func digest(text string) [sha256.Size]byte {
	return sha256.Sum256([]byte("macfleet sandbox " + text))
}

// publicIP returns the address at position i, from the ranges reserved for documentation and
// benchmarks.
func publicIP(i int) netip.Addr {
	base := [4]byte{198, 51, 100, 0}
	switch {
	case i < 254:
	case i < 508:
		base, i = [4]byte{203, 0, 113, 0}, i-254
	default:
		base, i = [4]byte{198, 18, 0, 0}, i-508
	}
	number := binary.BigEndian.Uint32(base[:]) + uint32(i) + 1
	return netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, number)))
}

// password returns the password that the provider set at installation.
func password(id string) string {
	return letters("password "+id, "abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789", 14)
}

func letters(text, alphabet string, length int) string {
	var b strings.Builder
	sum := digest(text)
	for _, c := range sum[:length] {
		b.WriteByte(alphabet[int(c)%len(alphabet)])
	}
	return b.String()
}
