package load

import (
	"reflect"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/secret"
)

// appType is the type of what github_app.NAME refers to, as artifactType.
var appType = cty.Capsule("github_app", reflect.TypeFor[fleet.GitHubApp]())

// githubApps checks the github_app blocks and lets expressions refer to them.
func (l *loader) githubApps(blocks []*hclsyntax.Block, sc *scope, k *fleet.Kubernetes) []fleet.GitHubApp {
	var all []fleet.GitHubApp
	sc.values["github_app"] = map[string]cty.Value{}
	for _, b := range decodeAll(l, blocks, sc, githubAppBlock{}) {
		l.keys(b.Place, k, "App's key", b.PrivateKey, b.PreviousPrivateKey)
		sc.values["github_app"][b.Name] = cty.CapsuleVal(appType, &b.GitHubApp)
		all = append(all, b.GitHubApp)
	}
	return all
}

// known stores a text, or the reference to a secret that holds it. A text of the wrong form is not shown: it may be a key.
func (l *loader) known(attr *hclsyntax.Attribute, sc *scope, tag reflect.StructTag, field reflect.Value) bool {
	val, ok := l.value(attr, sc, asKnown)
	if !ok {
		return false
	}
	var of fleet.Known
	if val.Type() == secretType {
		of.Ref = *val.EncapsulatedValue().(*secret.Ref)
	} else if text := reflect.ValueOf(&of.Text).Elem(); !l.convert(attr, val, text) {
		return false
	} else if !l.texts(attr, tag, text) {
		l.mask(attr.Expr.Range())
		return false
	}
	field.Set(reflect.ValueOf(of))
	return true
}
