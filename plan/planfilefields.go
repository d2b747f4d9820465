package plan

import (
	"time"

	"github.com/macfleet/macfleet/fleet/inventory"
)

// The types below are the plan file, key by key. They are apart from what plans are
// made of, as those of the snapshot file are; docs/schemas/planfile.schema.json
// describes them.

type planFile struct {
	FormatVersion     string        `json:"format_version"`
	MacfleetVersion   string        `json:"macfleet_version"`
	Configuration     string        `json:"configuration"`
	Environment       string        `json:"environment"`
	ConfigurationHash string        `json:"configuration_hash"`
	MadeAt            time.Time     `json:"made_at"`
	MadeBy            string        `json:"made_by"`
	ExpiresAt         time.Time     `json:"expires_at"`
	Selection         selectionFile `json:"selection"`
	Plan              plannedFile   `json:"plan"`
	SelfDigest        string        `json:"self_digest"` // the last key
}

type selectionFile struct {
	On       []string `json:"on"`
	Exclude  []string `json:"exclude"`
	Steps    []string `json:"steps"`
	Rollback bool     `json:"rollback"`
}

type plannedFile struct {
	Cluster   bool                 `json:"cluster"`
	Fleets    []string             `json:"fleets"`
	Hosts     []plannedHostFile    `json:"hosts"`
	Actions   []plannedActionFile  `json:"actions"`
	Shortages []shortageFile       `json:"shortages"`
	Rejected  []troubledServerFile `json:"rejected_pool_servers"`
	Strays    []text               `json:"strays"`
	Lost      []lostFile           `json:"lost"`
	Unread    []unreadFile         `json:"unread"`
	Warnings  []troubleFile        `json:"warnings"`
}

type plannedHostFile struct {
	Name        text             `json:"name"`
	Fleet       string           `json:"fleet"`
	Group       string           `json:"group"`
	Member      bool             `json:"member"`
	Server      placedServerFile `json:"server"`
	Fingerprint text             `json:"fingerprint"`
	Pinned      bool             `json:"pinned"`
	Converged   string           `json:"converged"`
	Held        *heldFile        `json:"held,omitempty"`
	Unknown     *troubleFile     `json:"unknown,omitempty"`
	Refused     *troubleFile     `json:"refused,omitempty"`
	Unread      []unreadFile     `json:"unread,omitempty"`
	Warnings    []warningFile    `json:"warnings,omitempty"`
}

type placedServerFile struct {
	ID   text `json:"id"`
	Name text `json:"name"`
	Type text `json:"type"`
	Zone text `json:"zone"`
}

type heldFile struct {
	inventory.Hold
	In      []string `json:"in"`
	Unread  text     `json:"unread,omitempty"`
	Expired bool     `json:"expired"`
}

type plannedActionFile struct {
	Address    text                `json:"address"`
	Approves   string              `json:"approves,omitempty"`
	Kind       string              `json:"kind"`
	Host       text                `json:"host"`
	Fleet      string              `json:"fleet"`
	Group      string              `json:"group"`
	ServerID   text                `json:"server_id"`
	Step       string              `json:"step,omitempty"`
	Reason     reasonFile          `json:"reason"`
	Drift      bool                `json:"drift"`
	Pending    bool                `json:"pending"`
	Deferred   bool                `json:"deferred"`
	Disruption string              `json:"disruption"`
	Fields     []fieldFile         `json:"fields"`
	Changes    []plannedChangeFile `json:"changes,omitempty"`
	Pods       []podNameFile       `json:"pods,omitempty"`
	Object     *objectFile         `json:"object,omitempty"`
	Refused    *troubleFile        `json:"refused,omitempty"`
}

type reasonFile struct {
	Code text `json:"code"`
	Text text `json:"text"`
}

type fieldFile struct {
	Name   text `json:"name"`
	Before text `json:"before"`
	After  text `json:"after"`
}

type plannedChangeFile struct {
	Reason   reasonFile        `json:"reason"`
	Guard    *guardFile        `json:"guard,omitempty"`
	Delivery *deliveryKeptFile `json:"delivery,omitempty"`
}

type guardFile struct {
	Armed bool `json:"armed"`
	Why   text `json:"why,omitempty"`
}

type deliveryKeptFile struct {
	Artifact string `json:"artifact"`
	Version  string `json:"version"`
	SHA256   string `json:"sha256"`
	Fetch    string `json:"fetch"`
	Size     int64  `json:"size"`
	Space    int64  `json:"space"`
	Free     *int64 `json:"free,omitempty"`
}

type podNameFile struct {
	Namespace text `json:"namespace"`
	Name      text `json:"name"`
	UID       text `json:"uid"`
}

type shortageFile struct {
	Fleet   string      `json:"fleet"`
	Group   string      `json:"group"`
	Type    string      `json:"type"`
	OS      string      `json:"os"`
	Missing int         `json:"missing"`
	Trouble troubleFile `json:"trouble"`
}

type troubledServerFile struct {
	ID      text        `json:"id"`
	Name    text        `json:"name"`
	Trouble troubleFile `json:"trouble"`
}

type lostFile struct {
	Name     text        `json:"name"`
	Fleet    string      `json:"fleet"`
	ServerID text        `json:"server_id"`
	Trouble  troubleFile `json:"trouble"`
}

type unreadFile struct {
	Step  string `json:"step,omitempty"`
	Probe text   `json:"probe"`
	Why   text   `json:"why"`
	Bytes text   `json:"printed,omitempty"`
}

type warningFile struct {
	Step string `json:"step,omitempty"`
	troubleFile
}
