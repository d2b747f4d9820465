package sandbox_test

import "testing"

func TestTornBundle(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	if err := p.world.Inject(p.host.ID, "tart-bundle-torn"); err == nil {
		t.Error("a missing bundle was torn")
	}
	p.installTart()
	const (
		all     = "cd /usr/local/lib/tart.app/Contents; shasum -a 256 Info.plist embedded.provisionprofile; stat -f '%Su:%Sg:%Lp' *"
		program = "shasum -a 256 /usr/local/lib/tart.app/Contents/MacOS/tart"
		left    = "ls /usr/local/lib/tart.app/Contents; grep -c edited /usr/local/lib/tart.app/Contents/Info.plist"
	)
	whole, right := p.run(all), p.run(program)
	p.inject("tart-bundle-torn")
	p.want("the bundle", p.run(left), "Info.plist\nMacOS\n_CodeSignature\n1")
	p.want("the program", p.run(program), right)
	p.heal("tart-bundle-torn")
	p.want("the bundle", p.run(all), whole)

	p.inject("tart-bundle-torn")
	p.installTart() // as a repair does
	p.run("echo later >/usr/local/lib/tart.app/Contents/Info.plist")
	p.heal("tart-bundle-torn")
	p.want("what was installed since", p.run("cat /usr/local/lib/tart.app/Contents/Info.plist"), "later")
}
