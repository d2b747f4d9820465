package mac

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

func plutil(p *proc) int {
	switch args := p.args(); {
	case len(args) >= 2 && args[0] == "-lint":
		return p.lint(args[1:])
	case len(args) >= 4 && args[0] == "-extract" && args[2] == "raw":
		return p.extract(args[1], args[3:])
	}
	return p.unmodelled(strings.Join(p.args(), " "))
}

// extract prints the value at a key path, as text.
func (p *proc) extract(keys string, rest []string) int {
	if rest[0] == "-o" && len(rest) > 2 && rest[1] == "-" {
		rest = rest[2:]
	}
	if len(rest) != 1 || strings.HasPrefix(rest[0], "-") {
		return p.unmodelled(strings.Join(p.args(), " "))
	}
	var value any
	err := p.visit(func(v *visit) error {
		data, err := v.read(p, rest[0])
		if err == nil {
			value, err = decodePlist(data)
		}
		return err
	})
	if err != nil {
		p.printf("%s: file does not exist or is not readable or is not a regular file\n", rest[0])
		return exitFailed
	}
	for key := range strings.SplitSeq(keys, ".") {
		switch inner := value.(type) {
		case map[string]any:
			value = inner[key]
		case []any:
			i, err := strconv.Atoi(key)
			if value = nil; err == nil && i >= 0 && i < len(inner) {
				value = inner[i]
			}
		default:
			value = nil
		}
	}
	switch value := value.(type) {
	case nil:
		p.printf("%s: Could not extract value, error: No value at that key path or invalid key path: %s\n", rest[0], keys)
		return exitFailed
	case []any:
		p.printf("%d\n", len(value))
	case map[string]any:
		p.printf("%s\n", strings.Join(slices.Sorted(maps.Keys(value)), "\n"))
	default:
		p.printf("%v\n", value)
	}
	return 0
}

func (p *proc) lint(names []string) int {
	status := 0
	for _, name := range names {
		var data []byte
		err := p.visit(func(v *visit) (err error) {
			data, err = v.read(p, name)
			return err
		})
		if err != nil {
			p.printf("%s: file does not exist or is not readable or is not a regular file\n", name)
			status = exitFailed
		} else if _, err := decodePlist(data); err != nil {
			p.printf("%s: (%s)\n", name, err)
			status = exitFailed
		} else {
			p.printf("%s: OK\n", name)
		}
	}
	return status
}
