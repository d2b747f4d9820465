package kube

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"strings"

	"github.com/macfleet/macfleet/internal/sandbox/store"
)

// signer creates and verifies the tokens of ServiceAccounts with a key in the cluster's folder. Its
// methods are called with the API's lock held.
type signer struct {
	path    string
	key     *ecdsa.PrivateKey
	checked map[string]claims // tokens with a verified signature
}

// claims are the content of a token, of the old form in Secrets or of a token request.
type claims struct {
	Issuer   string   `json:"iss"`
	Subject  string   `json:"sub"`
	Audience []string `json:"aud,omitempty"`
	Issued   int64    `json:"iat,omitempty"` // seconds since 1970
	After    int64    `json:"nbf,omitempty"`
	Expires  int64    `json:"exp,omitempty"` // 0 = never
	ID       string   `json:"jti,omitempty"`

	Namespace  string `json:"kubernetes.io/serviceaccount/namespace,omitempty"`
	Secret     string `json:"kubernetes.io/serviceaccount/secret.name,omitempty"`
	Account    string `json:"kubernetes.io/serviceaccount/service-account.name,omitempty"`
	AccountUID string `json:"kubernetes.io/serviceaccount/service-account.uid,omitempty"`

	Bound *boundClaims `json:"kubernetes.io,omitempty"`
}

type boundClaims struct {
	Namespace string     `json:"namespace"`
	Account   namedUID   `json:"serviceaccount"`
	Secret    *boundName `json:"secret,omitempty"`
	Pod       *boundName `json:"pod,omitempty"`
}

type namedUID struct {
	Name string `json:"name"`
	UID  string `json:"uid"`
}

type boundName = namedUID

const (
	legacyIssuer = "kubernetes/serviceaccount"
	issuer       = "https://kubernetes.default.svc.cluster.local"
	keyFile      = "service-account.key"
	half         = 32 // bytes of each number of a signature
)

func newSigner(dir string) *signer {
	return &signer{path: filepath.Join(dir, keyFile), checked: map[string]claims{}}
}

// private returns the key, and creates it on first use.
func (s *signer) private() (*ecdsa.PrivateKey, error) {
	if s.key != nil {
		return s.key, nil
	}
	data, err := os.ReadFile(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return s.create()
	}
	if err != nil {
		return nil, fmt.Errorf("read the key of the sandbox's cluster: %w", err)
	}
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, fmt.Errorf("%s: not a PEM key; fix: delete it (all tokens of ServiceAccounts become invalid)", s.path)
	}
	if s.key, err = x509.ParseECPrivateKey(block.Bytes); err != nil {
		return nil, fmt.Errorf("%s: %w; fix: delete it (all tokens of ServiceAccounts become invalid)", s.path, err)
	}
	return s.key, nil
}

func (s *signer) create() (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("create the key of the sandbox's cluster: %w", err)
	}
	data, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("create the key of the sandbox's cluster: %w", err)
	}
	if err := store.WriteFile(s.path, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: data})); err != nil {
		return nil, err
	}
	s.key = key
	return key, nil
}

// sign returns the token with the claims c.
func (s *signer) sign(c claims) (string, error) {
	key, err := s.private()
	if err != nil {
		return "", err
	}
	body, err := json.Marshal(c)
	if err != nil {
		return "", fmt.Errorf("create a token: %w", err)
	}
	signed := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"ES256","kid":"sandbox"}`)) + "." +
		base64.RawURLEncoding.EncodeToString(body)
	sum := sha256.Sum256([]byte(signed))
	r, t, err := ecdsa.Sign(rand.Reader, key, sum[:])
	if err != nil {
		return "", fmt.Errorf("create a token: %w", err)
	}
	signature := make([]byte, 2*half)
	r.FillBytes(signature[:half])
	t.FillBytes(signature[half:])
	return signed + "." + base64.RawURLEncoding.EncodeToString(signature), nil
}

// read returns a token's claims if this cluster has signed it.
func (s *signer) read(token string) (claims, bool, error) {
	if known, ok := s.checked[token]; ok {
		return known, true, nil
	}
	key, err := s.private()
	if err != nil {
		return claims{}, false, err
	}
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return claims{}, false, nil
	}
	body, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return claims{}, false, nil
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil || len(signature) != 2*half {
		return claims{}, false, nil
	}
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	r, t := new(big.Int).SetBytes(signature[:half]), new(big.Int).SetBytes(signature[half:])
	var c claims
	if !ecdsa.Verify(&key.PublicKey, sum[:], r, t) || json.Unmarshal(body, &c) != nil {
		return claims{}, false, nil
	}
	s.checked[token] = c
	return c, true, nil
}
