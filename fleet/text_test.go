package fleet

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestCheckText(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 200)
	tests := map[string]struct{ good, bad []string }{
		"":         {good: []string{"", "anything"}},
		"job":      {good: []string{"dev.tuist.tart-kubelet", "a", "A_1"}, bad: []string{"", long, ".a", "a b", "a/b", "com.apple.x", "Com.Apple.x", "dev.macfleet.undo", "a\n"}},
		"version":  {good: []string{"2.32.1", "v1", "0.5.0-rc.1+abc", "latest"}, bad: []string{"", long, "1 2", "-1", "1/2", "1\n", "é"}},
		"sha256":   {good: []string{strings.Repeat("0a", 32)}, bad: []string{"", strings.Repeat("0A", 32), strings.Repeat("0a", 31), strings.Repeat("0g", 32), strings.Repeat("0a", 32) + "\n"}},
		"quantity": {good: []string{"0", "2Gi", "512Mi", "1500k", "3T", "8000000000"}, bad: []string{"", "Gi", "2 Gi", "2gi", "-1", "+1", "1.5Gi", "2GiB", "1kk", "2K", "2i", "9223372036854775808", "9007199254740993Ti"}},
		"network":  {good: []string{"10.0.0.0/8"}, bad: []string{"10.0.0.1/8"}},
		"anchor":   {good: []string{"acme.runners"}, bad: []string{"com.apple"}},
	}
	for kind, tt := range tests {
		for _, text := range tt.good {
			if why := CheckText(kind, text); why != "" {
				t.Errorf("%q as %q: %s", text, kind, why)
			}
		}
		for _, text := range tt.bad {
			if CheckText(kind, text) == "" {
				t.Errorf("%q is accepted as %q", text, kind)
			}
		}
	}
}

func TestCheckLabel(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 64)
	good := [][2]string{{"a", ""}, {"acme.dev/size", "big"}, {"A_b.c-d", "1.2_3-4"}, {"tuist.dev/fleet", "runners"}, {"notkubernetes.io/a", "b"}}
	bad := [][2]string{{"", ""}, {"/a", ""}, {"a/", ""}, {"a/b/c", ""}, {"Acme.dev/a", ""}, {"acme..dev/a", ""}, {"-a", ""}, {"a.", ""}, {long, ""},
		{"a", long}, {"a", "-b"}, {"a", "b,c=d"}, {"a", "b c"}, {"kubernetes.io/os", "darwin"}, {"node.kubernetes.io/a", "b"}, {"k8s.io/a", ""}, {"tuist.dev/runtime", "vz"},
		{strings.Repeat("a.", 130) + "dev/a", ""}}
	for _, l := range good {
		if why := CheckLabel(l[0], l[1]); why != "" {
			t.Errorf("%v: %s", l, why)
		}
	}
	for _, l := range bad {
		if CheckLabel(l[0], l[1]) == "" {
			t.Errorf("%v is accepted", l)
		}
	}
	if Under("acme.dev", "acme.dev") || !Under("acme.dev/a", "acme.dev") || !Under("x.acme.dev/a", "acme.dev") || Under("xacme.dev/a", "acme.dev") {
		t.Error("what is under a domain")
	}
}

func TestBytes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{"0": 0, "7": 7, "3k": 3000, "2Gi": 2 << 30, "512Mi": 512 << 20, "8388607Ti": 8388607 << 40} {
		if n, ok := Bytes(text); n != want || !ok {
			t.Errorf("%s is %d, %t", text, n, ok)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		if n, ok := Bytes(rapid.String().Draw(t, "text")); n < 0 || !ok && n != 0 {
			t.Fatal(n, ok)
		}
	})
}
