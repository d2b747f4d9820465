package sandbox

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/macfleet/macfleet/internal/sandbox/store"
)

const kubernetesScheme = "k8s://"

// GitHubKeyRef refers to the private key of the world's GitHub App. A second key, while they are rotated, is
// file://github-app-2.pem.
const GitHubKeyRef = "file://github-app.pem"

// gitHubKey is the name of a key of the App, with or without a folder before it.
var gitHubKey = regexp.MustCompile(`^file://(?:.*/)?(github-app(?:-[0-9]+)?\.pem)$`)

// Secret resolves a reference inside the world: k8s:// from the cluster's Secrets, all others from the
// file secrets.json, and the keys of the GitHub App also without it. It never reads the real environment
// or real files.
func (w *World) Secret(ref string) (string, error) {
	if strings.HasPrefix(ref, kubernetesScheme) {
		return w.kubernetesSecret(ref)
	}
	path := filepath.Join(w.dir, secretsFile)
	var values map[string]string
	if err := store.ReadJSON(path, &values); err != nil {
		return "", err
	}
	value, ok := values[ref]
	if key := gitHubKey.FindStringSubmatch(ref); !ok && key != nil {
		return w.github.Key(key[1])
	}
	if !ok {
		return "", &missingError{fmt.Sprintf("secret %s is not in the sandbox; fix: add it to %s, for example {%q: \"value\"}", ref, path, ref)}
	}
	return value, nil
}

// missingError says that the world has no such secret.
type missingError struct{ text string }

func (e *missingError) Error() string { return e.text }

// GitHubSecret resolves a reference that an attribute of GitHub's credentials has, such as private_key. Where the world has no
// value for it, the attribute gets one that the world's GitHub accepts: any reference works.
func (w *World) GitHubSecret(attribute, ref string) (string, error) {
	value, err := w.Secret(ref)
	var missing *missingError
	if err == nil || !errors.As(err, &missing) {
		return value, err
	}
	app, installation, idErr := w.github.IDs()
	switch attribute {
	case "private_key":
		return w.github.Key(appKey)
	case "previous_private_key":
		return w.github.Key("github-app-2.pem")
	case "token":
		return w.github.Personal(ref)
	case "app_id":
		return app, idErr
	case "installation_id":
		return installation, idErr
	}
	return "", err
}

// SSHKey returns the private key that opens every Mac of the world, for a configuration without one.
func (w *World) SSHKey() (string, error) { return w.Secret(w.settings.SSHKeyRef) }

func (w *World) kubernetesSecret(ref string) (string, error) {
	namespace, name, key, err := splitKubernetes(ref)
	if err != nil {
		return "", err
	}
	value, found, err := w.kube.Secret(namespace, name, key)
	if err != nil {
		return "", err
	}
	if !found {
		return "", &missingError{fmt.Sprintf(`secret %s is not in the sandbox; fix: create %s, for example {"metadata": {"name": %q}, "stringData": {%q: "value"}}`,
			ref, w.kube.SecretFile(namespace, name), name, key)}
	}
	return value, nil
}

func splitKubernetes(ref string) (namespace, name, key string, err error) {
	parts := strings.Split(strings.TrimPrefix(ref, kubernetesScheme), "/")
	if len(parts) != 3 || parts[0] == "" || parts[1] == "" || parts[2] == "" {
		return "", "", "", fmt.Errorf("secret %s is invalid: use k8s://namespace/name/key", ref)
	}
	return parts[0], parts[1], parts[2], nil
}
