package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/macfleet/macfleet/internal/sandbox/store"
)

// The contents of a world's folder.
const (
	settingsFile    = "macfleet-sandbox.json" // also identifies a sandbox
	secretsFile     = "secrets.json"
	factoryFile     = "factory.json"
	accessLogFile   = "access.log"
	ignoreFile      = ".gitignore"
	apiLock         = "api.lock"
	changesLock     = "incidents.lock"
	cloudFolder     = "scaleway"
	kubeFolder      = "kubernetes"
	githubFolder    = "github"
	macsFolder      = "macs"
	incidentsFolder = "incidents"
	accessFile      = "kubeconfig.json" // what the user's kubeconfig leads to, if not to the world's cluster
	otherKubeFolder = "kubernetes-other"
)

// ArtifactsFolder holds the cache of artifacts that macfleet keeps in a world's folder.
const ArtifactsFolder = "artifacts"

// contents lists the files of a world. The one that identifies it comes last, so that an interrupted
// removal can be repeated.
func contents() []string {
	return []string{
		macsFolder, incidentsFolder, downloadsFolder, ArtifactsFolder, cloudFolder, kubeFolder, accessFile, otherKubeFolder, githubFolder, tailnetFolder, headscaleFolder,
		secretsFile, factoryFile,
		accessLogFile, apiLock, changesLock, ignoreFile, settingsFile,
	}
}

// format is the version of the folder's layout.
const format = 1

// settings are the values that are fixed for the life of a world.
type settings struct {
	Format           int      `json:"format"`
	ProjectID        string   `json:"project_id"`
	ClusterUID       string   `json:"cluster_uid"`
	Zones            []string `json:"zones"`
	PoolPrefix       string   `json:"pool_prefix"`
	AccessKey        string   `json:"access_key"`
	SecretKey        string   `json:"secret_key"`
	KubernetesToken  string   `json:"kubernetes_token"`
	KubeContext      string   `json:"kube_context"`
	SSHUser          string   `json:"ssh_user"`
	SSHKeyRef        string   `json:"ssh_key_ref"`
	SSHPublicKey     string   `json:"ssh_public_key"`
	PasswordlessSudo bool     `json:"passwordless_sudo,omitempty"`
}

func newSettings(seed Seed, publicKey string) settings {
	return settings{
		Format:      format,
		ProjectID:   seed.ProjectID,
		ClusterUID:  seed.ClusterUID,
		Zones:       seed.Zones,
		PoolPrefix:  seed.PoolPrefix,
		KubeContext: seed.KubeContext,
		// Well-formed, since Scaleway's client checks the form before it sends anything.
		AccessKey:        "SCWSANDBOX0000000000",
		SecretKey:        "5eed0000-0000-4000-8000-000000000004",
		KubernetesToken:  "sandbox-token",
		SSHUser:          seed.SSHUser,
		SSHKeyRef:        seed.SSHKeyRef,
		SSHPublicKey:     publicKey,
		PasswordlessSudo: seed.PasswordlessSudo,
	}
}

func loadSettings(dir string) (settings, error) {
	path := filepath.Join(dir, settingsFile)
	var own settings
	if err := store.ReadJSON(path, &own); errors.Is(err, fs.ErrNotExist) {
		return settings{}, fmt.Errorf("%s is not a sandbox: %w", dir, err)
	} else if err != nil {
		return settings{}, err
	}
	if own.Format != format {
		return settings{}, fmt.Errorf("%s: the sandbox has format %d, this macfleet needs %d; fix: macfleet sandbox reset",
			path, own.Format, format)
	}
	return own, nil
}
