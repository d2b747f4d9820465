package schematest_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/internal/schematest"
)

const version = `{"format_version":"1.0","macfleet_version":"0.1.0","go":"go1.26","os":"linux","arch":"amd64"}`

func TestValidate(t *testing.T) {
	t.Parallel()
	names, err := schematest.Names()
	if err != nil || !slices.Contains(names, "plan") {
		t.Fatalf("names %v, %v", names, err)
	}
	for _, name := range names {
		if err := schematest.Validate(name, []byte(`{"nobody's":"key"}`)); err == nil || strings.Contains(err.Error(), "schema "+name) {
			t.Errorf("%s: an object of unknown keys: %v", name, err)
		}
	}
	for _, text := range []string{"", "[]", version + version, strings.Replace(version, `"linux"`, `1`, 1),
		strings.Replace(version, "1.0", "2.0", 1), strings.Replace(version, "{", `{"more":1,`, 1)} {
		if err := schematest.Validate("version", []byte(text)); err == nil {
			t.Errorf("%q is valid", text)
		}
	}
	if err := schematest.ValidateLines("version", []byte(version+"\n"+version)); err != nil {
		t.Error(err)
	}
	if err := schematest.ValidateLines("version", nil); err == nil {
		t.Error("no line is valid")
	}
}

// TestDescribe finds each way in which a type and a schema can differ.
func TestDescribe(t *testing.T) {
	t.Parallel()
	type right struct {
		Format string `json:"format_version"`
		Mac    string `json:"macfleet_version"`
		Go     string `json:"go"`
		OS     string `json:"os"`
		Arch   string `json:"arch"`
		Commit string `json:"commit,omitempty"`
	}
	type wrong struct {
		Format int    `json:"format_version"`
		Mac    string `json:"macfleet_version"`
		Go     string `json:"go"`
		OS     string `json:"os"`
		Commit string `json:"commit"`
		More   string `json:"more"`
	}
	if faults := schematest.Describe("version", reflect.TypeFor[right]()); len(faults) > 0 {
		t.Error(faults)
	}
	all := strings.Join(schematest.Describe("version", reflect.TypeFor[wrong]()), "\n")
	for _, part := range []string{`version.format_version: type "string", it is written as "integer"`, "no field writes the key arch",
		"the key commit: optional is false", "the key more is not described"} {
		if !strings.Contains(all, part) {
			t.Errorf("lacks %q:\n%s", part, all)
		}
	}
}
