package mac

import "maps"

// Watch calls see with the command line and the environment of every tool that this process runs on
// the machine from now on, as a list of the machine's processes would show them.
func (m *Machine) Watch(see func(argv []string, environ map[string]string)) { m.watcher.Store(&see) }

func (p *proc) watched() {
	if see := p.session.machine.watcher.Load(); see != nil {
		(*see)(append([]string(nil), p.argv...), maps.Clone(p.env))
	}
}
