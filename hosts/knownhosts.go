package hosts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/macfleet/macfleet/internal/wholefile"
	"github.com/macfleet/macfleet/plan"
)

// KnownHosts stores pins in a file in OpenSSH's known_hosts format, one line per host:
// "NAME,SERVER-ID TYPE KEY since=TIME serial=SERIAL", the last field only if the serial number is known. ssh can use it with UserKnownHostsFile and HostKeyAlias.
type KnownHosts struct{ Path string }

const (
	sinceField  = "since="
	serialField = " serial="
	// unfinished follows the time if the claim that pinned the key is not complete.
	unfinished = " unfinished"
	// These come last, in this order.
	stageField    = "stage="
	pooledField   = "pooled="
	earlierField  = "earlier="
	sizeField     = "size="
	acceptedField = "accepted="
)

// lockPatience is how long to wait for the lock. Its holder only writes one small file.
const lockPatience = 10 * time.Second

// All returns the pins of the file, in no order. A missing file has none. A malformed line is an
// error, because a lost pin would accept any key.
func (k KnownHosts) All() ([]plan.Pin, error) {
	text, err := regular(k.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read pinned host keys: %w", err)
	}
	var pins []plan.Pin
	for i, line := range strings.Split(string(text), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		pin, err := parsePin(line)
		if err != nil {
			return nil, fmt.Errorf("read pinned host keys: %s:%d: %w; fix or remove that line", k.Path, i+1, err)
		}
		pins = append(pins, pin)
	}
	return pins, nil
}

// Update replaces the pins with the result of change. The file is rewritten atomically under a
// lock.
func (k KnownHosts) Update(change func([]plan.Pin) []plan.Pin) error {
	if err := os.MkdirAll(filepath.Dir(k.Path), 0o700); err != nil {
		return fmt.Errorf("write pinned host keys: %w", err)
	}
	path := k.Path + ".lock"
	ctx, cancel := context.WithTimeoutCause(context.Background(), lockPatience, fmt.Errorf("lock %s held by another process; stop it and try again", path))
	defer cancel()
	lock, err := wholefile.Lock(ctx, path, 0o600)
	if err != nil {
		return fmt.Errorf("write pinned host keys: %w", err)
	}
	defer func() { _ = lock.Close() }() // nothing is written to it
	before, err := k.All()
	if err != nil {
		return err
	}
	after := change(slices.Clone(before))
	slices.SortFunc(after, plan.InStore)
	if slices.Equal(before, after) {
		return nil
	}
	var b bytes.Buffer
	for _, p := range after {
		line, err := pinLine(p)
		if err != nil {
			return fmt.Errorf("write pinned host keys: %w", err)
		}
		b.WriteString(line + "\n")
	}
	if err := wholefile.Replace(k.Path, 0o600, wholefile.Text(b.Bytes())); err != nil {
		return fmt.Errorf("write %s: %w", k.Path, err)
	}
	return nil
}

// pinLine formats a pin. A pin that would not be parsed back, such as one whose name begins with
// "#", is an error.
func pinLine(p plan.Pin) (string, error) {
	if p.StageSince = p.StageSince.UTC().Truncate(time.Second); p.Stage == plan.Stays {
		p.StageSince = time.Time{}
	}
	line := fmt.Sprintf("%s,%s %s %s%s", p.Name, p.ServerID, p.Key, sinceField, p.Since.UTC().Format(time.RFC3339))
	if p.Serial != "" {
		line += serialField + p.Serial
	}
	if p.Unfinished {
		line += unfinished
	}
	if p.Stage != plan.Stays {
		line += " " + stageField + string(p.Stage)
		if !p.StageSince.IsZero() {
			line += "@" + p.StageSince.UTC().Format(time.RFC3339)
		}
	}
	if p.Pooled != "" {
		line += " " + pooledField + url.QueryEscape(p.Pooled)
	}
	if p.Earlier != "" {
		line += " " + earlierField + url.QueryEscape(p.Earlier)
	}
	if p.GroupSize != "" {
		line += " " + sizeField + url.QueryEscape(p.GroupSize)
	}
	if p.Accepted != "" {
		line += " " + acceptedField + url.QueryEscape(p.Accepted)
	}
	back, err := parsePin(line)
	back.Since = p.Since // which is written in whole seconds
	if err == nil && back != p {
		err = errors.New("it would be parsed as another one")
	}
	if err != nil {
		return "", fmt.Errorf("the pin of %q with server id %q cannot be stored in a known_hosts file: %w; rename the server", p.Name, p.ServerID, err)
	}
	return line, nil
}

func parsePin(line string) (plan.Pin, error) {
	mark, names, key, comment, _, err := ssh.ParseKnownHosts([]byte(line + "\n"))
	if err != nil {
		return plan.Pin{}, fmt.Errorf("malformed known_hosts line: %w", err)
	}
	if mark != "" {
		return plan.Pin{}, fmt.Errorf("@%s is not a host's own key", mark)
	}
	if len(names) != 2 {
		return plan.Pin{}, fmt.Errorf("it must name the host and its server id, as NAME,SERVER-ID")
	}
	// ssh treats these as patterns, hashes and ports, which name no server.
	for _, name := range names {
		if name == "" || strings.ContainsAny(name, "*?!|[]") {
			return plan.Pin{}, fmt.Errorf("%q is not a single host: write NAME,SERVER-ID", name)
		}
	}
	comment, pin, err := cutFields(comment)
	if err != nil {
		return plan.Pin{}, err
	}
	comment, begun := strings.CutSuffix(comment, unfinished)
	comment, serial, _ := strings.Cut(comment, serialField)
	since, err := time.Parse(time.RFC3339, strings.TrimPrefix(comment, sinceField))
	if err != nil {
		return plan.Pin{}, fmt.Errorf("its last field must be %sTIME: %w", sinceField, err)
	}
	since = since.UTC().Truncate(time.Second) // as written
	if _, err := time.Parse(time.RFC3339, since.Format(time.RFC3339)); err != nil {
		return plan.Pin{}, fmt.Errorf("its time cannot be written in UTC: %w", err)
	}
	pin.Name, pin.ServerID, pin.Key, pin.Since, pin.Serial, pin.Unfinished = names[0], names[1], keyText(key), since, serial, begun
	return pin, nil
}

// cutFields takes the optional fields from the end of a line's comment. An unknown stage is an error: what it allows is unknown.
func cutFields(comment string) (rest string, p plan.Pin, err error) {
	rest = comment
	for _, f := range []struct {
		name string
		into *string
	}{{acceptedField, &p.Accepted}, {sizeField, &p.GroupSize}, {earlierField, &p.Earlier}, {pooledField, &p.Pooled}} {
		before, text, ok := strings.Cut(rest, " "+f.name)
		if !ok {
			continue
		}
		if *f.into, err = url.QueryUnescape(text); err != nil {
			return "", p, fmt.Errorf("its field %s is malformed: %w", f.name, err)
		}
		rest = before
	}
	if before, name, ok := strings.Cut(rest, " "+stageField); ok {
		name, at, dated := strings.Cut(name, "@")
		if p.StageSince, err = time.Parse(time.RFC3339, at); dated && err != nil {
			return "", p, fmt.Errorf("the time of its stage is malformed: %w", err)
		}
		p.StageSince = p.StageSince.UTC()
		if name == "" || !plan.Stage(name).Known() {
			return "", p, fmt.Errorf("its stage %q is unknown", name)
		}
		rest, p.Stage = before, plan.Stage(name)
	}
	return rest, p, nil
}
