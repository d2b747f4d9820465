package load

import (
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/macfleet/macfleet/fleet"
)

// tailnetBlock is the block tailnet.
type tailnetBlock struct {
	Place place
	fleet.Tailnet
}

var (
	tagPattern       = regexp.MustCompile(`^tag:[A-Za-z][A-Za-z0-9-]*$`)
	collectorPattern = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
	clientPattern    = regexp.MustCompile(`^[A-Za-z0-9-]+$`)
)

// tagFault returns why a text is not a tag of a tailnet, or "".
func tagFault(text string) string {
	switch better := "tag:" + strings.TrimPrefix(text, "tag:"); {
	case tagPattern.MatchString(text):
		return ""
	case !strings.HasPrefix(text, "tag:") && tagPattern.MatchString(better):
		return "it must begin with \"tag:\"." + didYouMean(better)
	}
	return "a tag is \"tag:\" and a name of letters, digits and hyphens that begins with a letter."
}

// controlFault returns why a text is not the address of a control server, or "".
func controlFault(text string) string {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "":
		return "it is not an address"
	case u.User != nil || u.RawQuery != "" || u.Fragment != "" || strings.Trim(u.Path, "/") != "":
		return "it must have only a host, and perhaps a port"
	case u.Scheme == "https":
		return ""
	}
	if a, err := netip.ParseAddr(u.Hostname()); u.Scheme == "http" && (u.Hostname() == "localhost" || err == nil && a.IsLoopback()) {
		return ""
	}
	return "it must begin with https://, because keys travel there"
}

// tailnet reads the tailnet, or returns nil where there is none.
func (l *loader) tailnet(blocks []*hclsyntax.Block, sc *scope, k *fleet.Kubernetes) (*fleet.Tailnet, place) {
	b := decodeOnly(l, blocks, sc, tailnetBlock{Tailnet: fleet.Tailnet{Enabled: true}})
	at := b.Place
	if at.block == nil {
		return nil, at
	}
	wrote := at.written
	switch {
	case wrote("auth") && wrote("client_id"):
		l.fault(at.at("client_id"), "Two credentials", "The tailnet block has %q and %q. Give the secret of an OAuth client, or a federated identity, not both.", "auth", "client_id")
	case wrote("client_id") != wrote("identity_token"):
		l.fault(at.header(), missingArg, "A federated identity needs both %q and %q.", "client_id", "identity_token")
	case !wrote("auth") && !wrote("client_id"):
		l.fault(at.header(), missingArg, "The tailnet block needs %q (the secret of an OAuth client), or %q and %q (a federated identity).", "auth", "client_id", "identity_token")
	case wrote("control_url") && !wrote("auth"):
		l.fault(at.at("control_url"), "No key for the control server", "With %q, hosts join with an auth key that you make there. Give it in %q.", "control_url", "auth")
	}
	if wrote("control_url") && wrote("device_budget") {
		l.fault(at.at("device_budget"), "Nothing to count", "With %q, macfleet cannot list devices, so it cannot count them. Remove %q.", "control_url", "device_budget")
	}
	if wrote("device_budget") && b.ReservedDevices >= b.DeviceBudget && at.good["device_budget"] && at.good["reserved_devices"] {
		l.fault(at.at("reserved_devices"), invalidValue, "%q leaves no room for hosts: it must be less than %q.", "reserved_devices", "device_budget")
	}
	l.readable(at.at("auth"), k, "Secret", "credentials of the tailnet", b.Auth)
	l.readable(at.at("identity_token"), k, "Secret", "credentials of the tailnet", b.IdentityToken)
	b.ControlURL = strings.TrimSuffix(b.ControlURL, "/")
	return &b.Tailnet, at
}

// onTailnet drops the steps that need a tailnet where there is none, and checks them where there is one.
func (l *loader) onTailnet(cfg *fleet.Config, at place) {
	if t := cfg.Tailnet; t == nil || !t.Enabled {
		for i := range cfg.Fleets {
			for j := range cfg.Fleets[i].Groups {
				g := &cfg.Fleets[i].Groups[j]
				g.Spec = g.Spec.WithoutTailnet()
			}
		}
		for i := range cfg.Hosts {
			cfg.Hosts[i].Spec = cfg.Hosts[i].Spec.WithoutTailnet()
		}
		return
	}
	all := cfg.Specs()
	for _, of := range all {
		if of.Spec.NodeExporter != nil && !of.Spec.JoinsTailnet() && !l.mayStand(tailscale) {
			l.fault(l.lines[of.Sources.Of(exporter)], "Missing block", "node_exporter serves metrics only in the tailnet, and %s has no tailscale block. Write one, or remove node_exporter.", of)
		}
	}
	joins := func(of fleet.Specified) bool { return of.Spec.JoinsTailnet() }
	if len(all) > 0 && !slices.ContainsFunc(all, joins) && !l.mayStand(tailscale) && at.block != nil {
		l.fault(at.header(), "Unused tailnet", "No host joins the tailnet. Write tailscale { artifact = artifact.NAME } in the defaults or in a fleet, or remove the tailnet block.")
	}
}
