package pf

import (
	"strings"
	"testing"
)

func TestBypass(t *testing.T) {
	t.Parallel()
	const quick = "pass out quick all flags S/SA keep state\n"
	point, apple := FilterPoint(name).String()+" all\n", "anchor \"com.apple/*\" all\n"
	for listing, want := range map[string]string{
		"":                    "",
		apple + point:         "",
		apple + point + quick: "",
		apple + quick:         "",
		quick + point:         "pass out quick all flags S/SA keep state",
		apple + quick + "pass quick inet from any to 10.0.0.1 flags S/SA keep state\n" + point: "pass out quick all flags S/SA keep state; pass quick inet from any to 10.0.0.1 flags S/SA keep state",
		"pass out all flags S/SA keep state\nblock drop out quick all\n" + point:               "",
		"pass in quick all flags S/SA keep state\n" + point:                                    "",
		"pass quick on lo0 all flags S/SA keep state\n" + point:                                "",
		"anchor \"_1\" all {\n  " + quick + "}\n" + point:                                      "",
		"anchor \"" + name + ".too\" all\n" + quick + point:                                    "pass out quick all flags S/SA keep state",
	} {
		expect(t, listing, want, strings.Join(Bypass(listing, name), "; "))
	}
}
