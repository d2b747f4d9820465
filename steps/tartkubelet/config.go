package tartkubelet

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps/kit"
)

// The codes that are raised here.
var (
	codeKubeconfigMissing = plan.NewCode("kubeconfig-missing", plan.Critical, "the kubelet's kubeconfig is missing")
	codeKubeconfigDiffers = plan.NewCode("kubeconfig-differs", plan.Warning, "the kubelet's kubeconfig differs from what macfleet writes")
)

// kubeconfigHead renders a kubeconfig without its last line, the token.
func kubeconfigHead(node string, join inventory.Join) (string, error) {
	for at, word := range []string{node, join.Server, join.TLSServerName, join.ProxyURL} {
		if at < 2 && word == "" || strings.ContainsFunc(word, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`"'#{}[],&*!|>%@\`, r) }) {
			return "", fmt.Errorf("%q is not allowed in a kubeconfig", word)
		}
	}
	user, ca := "tart-kubelet-"+node, ""
	if join.CA != "" {
		ca = "    certificate-authority-data: " + base64.StdEncoding.EncodeToString([]byte(join.CA)) + "\n"
	}
	if join.TLSServerName != "" {
		ca += "    tls-server-name: " + join.TLSServerName + "\n"
	}
	if join.ProxyURL != "" {
		ca += "    proxy-url: " + join.ProxyURL + "\n"
	}
	return "apiVersion: v1\nkind: Config\nclusters:\n- name: cluster\n  cluster:\n    server: " + join.Server + "\n" + ca +
		"contexts:\n- name: " + user + "\n  context:\n    cluster: cluster\n    user: " + user + "\ncurrent-context: " + user +
		"\nusers:\n- name: " + user + "\n  user:\n", nil
}

// kubeconfigText renders a kubeconfig. Its errors hold no part of the token.
func kubeconfigText(node string, join inventory.Join, token string) (string, error) {
	head, err := kubeconfigHead(node, join)
	if err != nil {
		return "", err
	}
	strange := func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.=+/~", r))
	}
	if token == "" || strings.ContainsFunc(token, strange) {
		return "", errors.New("the token is not valid in a kubeconfig")
	}
	return head + "    token: " + token + "\n", nil
}

// Reads reports the kind of input that its script reads.
func (tartKubelet) Reads(k plan.InputKind) bool { return k == plan.Kubeconfig }

// Render returns the whole kubeconfig.
func (tartKubelet) Render(in kit.InputFor, token string) (string, error) {
	return kubeconfigText(in.Host.Name, in.Join, token)
}

// seenKubeconfig is what a host reports about its kubeconfig, without any secret.
type seenKubeconfig struct {
	there  bool
	access string
	sha    string // SHA-256 of everything but the token
	server string
	claims string // the token's claims
}

// readClaims parses the payload of a token: the uid of its ServiceAccount, or "", and the
// name of its Secret.
func readClaims(text string) (account, secret string) {
	raw, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(text, "="))
	var claims struct {
		UID    string `json:"kubernetes.io/serviceaccount/service-account.uid"`
		Secret string `json:"kubernetes.io/serviceaccount/secret.name"`
		Bound  struct {
			Account struct {
				UID string `json:"uid"`
			} `json:"serviceaccount"`
			Secret struct {
				Name string `json:"name"`
			} `json:"secret"`
		} `json:"kubernetes.io"`
	}
	switch {
	case err != nil, json.Unmarshal(raw, &claims) != nil:
		return "", ""
	case claims.UID != "":
		return claims.UID, claims.Secret
	}
	return claims.Bound.Account.UID, claims.Bound.Secret.Name
}

// configSetting compares the kubeconfig with the cluster's view. The reason says what is
// wrong. An incomplete identity gives no working token.
func configSetting(v plan.View, seen seenKubeconfig, join inventory.Join) (kit.Setting, plan.Reason, error) {
	node := v.Host.Name
	head, err := kubeconfigHead(node, join)
	if err != nil {
		return kit.Setting{}, plan.Reason{}, err
	}
	s := kit.Setting{Name: "kubeconfig", Wanted: "for " + join.Server}
	if !seen.there {
		s.Seen = "missing"
		return s, plan.Reason{Code: codeKubeconfigMissing, Text: kubeletConfig + " is missing"}, nil
	}
	forAnother := false
	if seen.server != join.Server {
		elsewhere, err := kubeconfigHead(node, inventory.Join{Server: seen.server, CA: join.CA})
		forAnother = err == nil && seen.sha == digest(elsewhere)
	}
	var revoked, differs []string
	older := false // its token is valid, but there is a newer one
	identity, known := v.Identity.Get()
	account, secret := readClaims(seen.claims)
	switch {
	case !known || !identity.Complete():
		revoked = append(revoked, "the identity in the cluster is incomplete")
	case account != "" && account != identity.ServiceAccount:
		revoked = append(revoked, "its token belongs to a deleted ServiceAccount")
	case account != "" && slices.Contains(identity.Spent, secret):
		older = true
	case account != "" && secret != "" && secret != cmp.Or(identity.Token, inventory.FirstToken(node)):
		revoked = append(revoked, "its token belongs to the Secret "+secret)
	}
	switch {
	case forAnother:
		differs = append(differs, "for "+seen.server) // the verified value, so a new address is not drift
	case seen.server != join.Server:
		differs = append(differs, "its server is "+cmp.Or(seen.server, "none"))
	case seen.sha != digest(head):
		differs = append(differs, "it differs from what macfleet writes for this cluster")
	}
	if seen.access != v.Host.User+":staff:600" { // the kubelet runs as the login user
		differs = append(differs, "owner and mode "+seen.access)
	}
	all := slices.Concat(revoked, differs)
	if len(all) == 0 {
		if s.Seen = s.Wanted; older || v.NewToken {
			// Seen keeps the verified value, so a rotation is not drift.
			s.Wanted += ", with the newest token"
			return s, plan.Reason{Code: plan.CodeTokenRotation, Text: "the cluster has a newer token"}, nil
		}
		return s, plan.Reason{}, nil
	}
	s.Seen = strings.Join(all, ", ")
	return s, plan.Reason{Code: kit.Choose(len(revoked) > 0, plan.CodeTokenRevoked, codeKubeconfigDiffers), Text: kubeletConfig + ": " + s.Seen}, nil
}
