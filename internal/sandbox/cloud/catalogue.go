package cloud

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// OS is an operating system of the catalogue.
type OS struct {
	ID                   string        `json:"id"`
	Name                 string        `json:"name"`
	Label                string        `json:"label"`
	ImageURL             string        `json:"image_url"`
	Family               string        `json:"family"`
	IsBeta               bool          `json:"is_beta"`
	Version              string        `json:"version"`
	XcodeVersion         string        `json:"xcode_version"`
	ReleaseNotesURL      string        `json:"release_notes_url"`
	Description          string        `json:"description"`
	Tags                 []string      `json:"tags"`
	SupportedServerTypes []SupportedOn `json:"supported_server_types"`
	Zone                 string        `json:"zone"`
}

// SupportedOn reports whether an operating system runs on a server type.
type SupportedOn struct {
	ServerType            string `json:"server_type"`
	FastDeliveryAvailable bool   `json:"fast_delivery_available"`
}

// Embedded returns the operating system of that name as part of a server: without the list of types,
// which only the catalogue has.
func Embedded(name, zone string) (*OS, error) {
	for _, os := range (Settings{}).systems(zone) {
		if os.Name == name {
			os.SupportedServerTypes = []SupportedOn{}
			return &os, nil
		}
	}
	return nil, fmt.Errorf("the sandbox's catalogue has no operating system %q", name)
}

// systems returns the catalogue of a zone: the recorded one, with what the settings change in it.
func (s Settings) systems(zone string) []OS {
	all := recorded(zone)
	for i := range all {
		if name, ok := s.Renamed[all[i].Name]; ok {
			all[i].rename(name)
		}
	}
	return slices.DeleteFunc(all, func(os OS) bool { return slices.Contains(s.Gone, os.Family) || slices.Contains(s.Gone, os.Name) })
}

// recorded returns the catalogue of a zone. As recorded, 26.6.2 is the default of only one type: patch
// releases come and go in the real catalogue.
func recorded(zone string) []OS {
	const all = "M1-M M2-M M2-L M4-S M4-SP M4-M M4-XL"
	const m1m2 = "M1-M M2-M M2-L"
	return []OS{
		system(zone, "macos-ventura-13.6", "Ventura", "15.2", m1m2),
		system(zone, "macos-sonoma-14.6", "Sonoma", "16.2", m1m2),
		system(zone, "macos-sequoia-15.2", "Sequoia", "16.2", all),
		system(zone, "macos-sequoia-15.3.1", "Sequoia", "16.2", all),
		system(zone, "macos-sequoia-15.6", "Sequoia", "16.4", all),
		system(zone, "macos-tahoe-26.0", "Tahoe", "26.0", all),
		system(zone, "macos-tahoe-26.3", "Tahoe", "26.3", all),
		system(zone, "macos-tahoe-26.6.1", "Tahoe", "26.6", all),
		system(zone, "macos-tahoe-26.6.2", "Tahoe", "26.6", all),
		system(zone, "devos-sequoia-15.6", "DevOS", "16.4", "M2-L M4-SP M4-M M4-XL"),
		system(zone, "fedora-asahi-remix", "Linux", "", "M2-L-ASAHI"),
	}
}

func system(zone, name, family, xcode, types string) OS {
	os := OS{
		Family:       family,
		XcodeVersion: xcode,
		Tags:         []string{},
		Zone:         zone,
	}
	os.rename(name)
	for name := range strings.FieldsSeq(types) {
		fast := os.Name == defaultOS(name)
		os.SupportedServerTypes = append(os.SupportedServerTypes, SupportedOn{name, fast})
	}
	return os
}

// rename gives a system its name and what follows from it. Another patch release is another image.
func (os *OS) rename(name string) {
	os.ID, os.Name, os.Label = derivedUUID("os "+name), name, name
	if parts := strings.Split(name, "-"); len(parts) == 3 && len(parts[1]) > 0 && os.Family != "Linux" {
		os.Version = parts[2]
		os.Label = strings.NewReplacer("macos", "macOS", "devos", "DevOS").Replace(parts[0]) + " " +
			strings.ToUpper(parts[1][:1]) + parts[1][1:] + " " + parts[2]
	}
}

// defaultOS returns the system that a type gets by default: the recorded one under its present
// name, or the newest that is left.
func (s Settings) defaultOS(serverType string) string {
	name := defaultOS(serverType)
	if next, ok := s.Renamed[name]; ok {
		name = next
	}
	left := ""
	for _, os := range s.systems("") {
		if os.Name == name {
			return name
		}
		if slices.ContainsFunc(os.SupportedServerTypes, func(s SupportedOn) bool { return s.ServerType == serverType }) && os.Family != "DevOS" {
			left = os.Name
		}
	}
	return left
}

func defaultOS(serverType string) string {
	switch serverType {
	case "M1-M":
		return "macos-tahoe-26.6.2"
	case asahiType:
		return "fedora-asahi-remix"
	default:
		return "macos-tahoe-26.6.1"
	}
}

// derivedUUID returns a UUID that looks random and is the same in every world.
func derivedUUID(text string) string {
	sum := sha256.Sum256([]byte("macfleet sandbox " + text))
	return FormatUUID([16]byte(sum[:16]))
}

type osList struct {
	TotalCount int  `json:"total_count"`
	OS         []OS `json:"os"`
}

func (a *API) listOS(r *http.Request) (any, *failure) {
	own, failed := a.settings()
	if failed != nil {
		return nil, failed
	}
	query := r.URL.Query()
	name, serverType := query.Get("name"), query.Get("server_type")
	all := slices.DeleteFunc(own.systems(r.PathValue("zone")), func(os OS) bool {
		// As in the real filter, 11.1 also finds 11.1.2.
		return !strings.Contains(os.Name, name) || serverType != "" &&
			!slices.ContainsFunc(os.SupportedServerTypes, func(s SupportedOn) bool { return s.ServerType == serverType })
	})
	shown, failed := page(all, query)
	if failed != nil {
		return nil, failed
	}
	return osList{len(all), shown}, nil
}

func (a *API) getOS(r *http.Request) (any, *failure) {
	own, failed := a.settings()
	if failed != nil {
		return nil, failed
	}
	id := r.PathValue("id")
	for _, os := range own.systems(r.PathValue("zone")) {
		if os.ID == id {
			return os, nil
		}
	}
	return nil, notFound("os", id)
}
