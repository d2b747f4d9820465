package view_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// reading is one sample of the text format of Prometheus.
type reading struct {
	name   string
	labels map[string]string
	value  float64
}

// parseMetrics reads the text format as it is specified: every name is described before
// its samples, which follow each other, and no sample comes twice.
func parseMetrics(text string) ([]reading, error) {
	if !strings.HasSuffix(text, "\n") {
		return nil, fmt.Errorf("the last line has no end")
	}
	var out []reading
	helped, typed, seen := map[string]bool{}, map[string]bool{}, map[string]bool{}
	current := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if rest, ok := strings.CutPrefix(line, "# HELP "); ok {
			name, help, _ := strings.Cut(rest, " ")
			if helped[name] || help == "" {
				return nil, fmt.Errorf("%s is described twice, or never", name)
			}
			helped[name], current = true, name
			continue
		}
		if rest, ok := strings.CutPrefix(line, "# TYPE "); ok {
			if rest != current+" gauge" || typed[current] {
				return nil, fmt.Errorf("a type at the wrong place: %s", line)
			}
			typed[current] = true
			continue
		}
		s, err := parseSample(line)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
		if s.name != current || !typed[current] {
			return nil, fmt.Errorf("%s is listed under %s", s.name, current)
		}
		if key := fmt.Sprint(s.name, s.labels); seen[key] {
			return nil, fmt.Errorf("there twice: %s", key)
		} else {
			seen[key] = true
		}
		out = append(out, s)
	}
	return out, nil
}

func parseSample(line string) (reading, error) {
	s := reading{labels: map[string]string{}}
	end := strings.IndexAny(line, "{ ")
	if end <= 0 || strings.Trim(line[:end], "abcdefghijklmnopqrstuvwxyz_") != "" {
		return s, fmt.Errorf("no name")
	}
	s.name, line = line[:end], line[end:]
	if strings.HasPrefix(line, "{") {
		var err error
		if line, err = parseLabels(line[1:], s.labels); err != nil {
			return s, err
		}
	}
	text, ok := strings.CutPrefix(line, " ")
	if !ok {
		return s, fmt.Errorf("no space before the value")
	}
	var err error
	s.value, err = strconv.ParseFloat(text, 64)
	return s, err
}

func parseLabels(line string, into map[string]string) (rest string, err error) {
	for {
		name, after, ok := strings.Cut(line, `="`)
		if !ok || name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz_") != "" {
			return "", fmt.Errorf("no label at %q", line)
		}
		var b strings.Builder
		closed := false
		for i := 0; i < len(after) && !closed; i++ {
			switch c := after[i]; c {
			case '"':
				closed, line = true, after[i+1:]
			case '\\':
				i++
				plain, known := map[byte]byte{'n': '\n', '\\': '\\', '"': '"'}[after[i]]
				if !known {
					return "", fmt.Errorf("no such escape: %q", after[i])
				}
				b.WriteByte(plain)
			default:
				b.WriteByte(c)
			}
		}
		if _, twice := into[name]; !closed || twice {
			return "", fmt.Errorf("label %s is repeated or not closed", name)
		}
		into[name] = b.String()
		if rest, ok := strings.CutPrefix(line, "}"); ok {
			return rest, nil
		}
		if line, ok = strings.CutPrefix(line, ","); !ok {
			return "", fmt.Errorf("no comma at %q", line)
		}
	}
}

// TestParserOfTheTests: the parser of these tests rejects a malformed text.
func TestParserOfTheTests(t *testing.T) {
	t.Parallel()
	const head = "# HELP a b\n# TYPE a gauge\n"
	for _, bad := range []string{"a 1\n", head + "a{x=\"1\" 1\n", head + "a{x=\"a\"b\"} 1\n", head + "a 1", head + "b 1\n", head + "a one\n",
		head + "a{x=\"\\t\"} 1\n", head + "a 1\na 1\n", head + "a{x=\"1\",x=\"2\"} 1\n", head + head} {
		if all, err := parseMetrics(bad); err == nil {
			t.Errorf("%q is read as %v", bad, all)
		}
	}
	if all, err := parseMetrics(head + "a{x=\"a\\\"\\\\\\n}\",y=\"\"} 1.5\na 2\n"); err != nil || len(all) != 2 || all[0].labels["x"] != "a\"\\\n}" {
		t.Errorf("%v, %v", all, err)
	}
}
