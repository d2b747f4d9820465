package mac

import (
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"
)

// kubeconfig is the part of such a file that a kubelet needs.
type kubeconfig struct {
	Current  string `json:"current-context"`
	Clusters []struct {
		Name    string `json:"name"`
		Cluster struct {
			Server   string `json:"server"`
			CA       string `json:"certificate-authority-data"`
			CAFile   string `json:"certificate-authority"`
			Insecure bool   `json:"insecure-skip-tls-verify"`
		} `json:"cluster"`
	} `json:"clusters"`
	Users []struct {
		Name string `json:"name"`
		User struct {
			Token     string `json:"token"`
			TokenFile string `json:"tokenFile"`
		} `json:"user"`
	} `json:"users"`
	Contexts []struct {
		Name    string `json:"name"`
		Context struct {
			Cluster string `json:"cluster"`
			User    string `json:"user"`
		} `json:"context"`
	} `json:"contexts"`
}

// token returns the token of the current context. The file must also have its server and certificate
// authority.
func (k kubeconfig) token() (string, error) {
	for _, named := range k.Contexts {
		if named.Name != k.Current {
			continue
		}
		if err := k.reaches(named.Context.Cluster); err != nil {
			return "", err
		}
		for _, u := range k.Users {
			if u.Name == named.Context.User && u.User.Token != "" {
				return u.User.Token, nil
			}
		}
		return "", fmt.Errorf("user %q has no token", named.Context.User)
	}
	return "", fmt.Errorf("context %q does not exist", k.Current)
}

// reaches returns what is missing to connect to a cluster.
func (k kubeconfig) reaches(name string) error {
	for _, c := range k.Clusters {
		if c.Name != name {
			continue
		}
		if c.Cluster.Server == "" {
			return fmt.Errorf("cluster %q has no server", name)
		}
		if c.Cluster.Insecure || c.Cluster.CAFile != "" || strings.HasPrefix(c.Cluster.Server, "http:") {
			return nil
		}
		text, err := base64.StdEncoding.DecodeString(c.Cluster.CA)
		if block, _ := pem.Decode(text); err != nil || block == nil {
			return fmt.Errorf("unable to load root certificates of cluster %q: no PEM block", name)
		}
		return nil
	}
	return fmt.Errorf("cluster %q does not exist", name)
}

func readKubeconfig(text []byte) (token string, err error) {
	var k kubeconfig
	if err := yaml.Unmarshal(text, &k); err != nil {
		return "", errors.New("not a kubeconfig")
	}
	return k.token()
}
