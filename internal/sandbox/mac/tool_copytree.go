package mac

import (
	"errors"
	"path"
	"strings"
)

// errTreeUnmodelled is for a folder that cp -R copies in a way that is not modelled.
var errTreeUnmodelled = errors.New("not modelled")

// copyTree copies a file, or a folder with its content, to a path without a folder. Links in it, a
// name that ends in a slash and -p are not modelled.
func (p *proc) copyTree(name, target string, keep bool) error {
	var from, to node
	var children []node
	err := p.visit(func(v *visit) (err error) {
		if from, err = v.find(p.user, p.dir, name, false); err != nil {
			return err
		}
		if from.link() || strings.HasSuffix(name, "/") || keep {
			return errTreeUnmodelled
		}
		if !from.folder() {
			return nil
		}
		if children, err = v.list(p.user, from); err != nil {
			return err
		}
		if to, err = v.into(p, name, target); err != nil {
			return err
		}
		if to.path == from.path || strings.HasPrefix(to.path, from.path+"/") || to.exists() {
			return errTreeUnmodelled
		}
		return v.mkdir(p, to, from.owner.Mode&0o777&^p.umask)
	})
	if err != nil || !from.folder() {
		if err == nil {
			err = p.copyFile(name, target, false)
		}
		return err
	}
	for _, child := range children {
		if err := p.copyTree(child.path, path.Join(to.path, path.Base(child.path)), false); err != nil {
			return err
		}
	}
	return nil
}
