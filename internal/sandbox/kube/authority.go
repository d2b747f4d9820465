package kube

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/macfleet/macfleet/internal/sandbox/store"
)

// authority returns the certificate of the cluster's authority, and creates it on first use.
func (a *API) authority() (string, error) {
	path := filepath.Join(a.state.dir, "ca.crt")
	data, err := os.ReadFile(path)
	if err == nil {
		return string(data), nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read the certificate of the sandbox's cluster: %w", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", fmt.Errorf("create the certificate of the sandbox's cluster: %w", err)
	}
	form := certificate("kubernetes")
	form.IsCA, form.BasicConstraintsValid, form.KeyUsage = true, true, x509.KeyUsageCertSign|x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, form, form, &key.PublicKey, key)
	if err != nil {
		return "", fmt.Errorf("create the certificate of the sandbox's cluster: %w", err)
	}
	secret, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return "", fmt.Errorf("create the certificate of the sandbox's cluster: %w", err)
	}
	// The certificate last: where it exists, so does its key.
	if err := store.WriteFile(filepath.Join(a.state.dir, "ca.key"), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: secret})); err != nil {
		return "", err
	}
	data = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return string(data), store.WriteFile(path, data)
}

func certificate(name string) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: new(big.Int).SetBytes([]byte(newUID())), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2046, time.January, 1, 0, 0, 0, 0, time.UTC),
	}
}

// Certificate returns the certificate of a loopback listener, and that of the cluster's authority
// (PEM), which signed it: kubectl sends no token over plain HTTP.
func (a *API) Certificate() (shown tls.Certificate, authority string, err error) {
	unlock, err := a.lock.Lock()
	if err != nil {
		return tls.Certificate{}, "", err
	}
	defer unlock()
	if authority, err = a.authority(); err != nil {
		return tls.Certificate{}, "", err
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(a.state.dir, "ca.crt"), filepath.Join(a.state.dir, "ca.key"))
	if err != nil {
		return tls.Certificate{}, "", fmt.Errorf("read the authority of the sandbox's cluster: %w; delete ca.crt and ca.key in %s", err, a.state.dir)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, "", fmt.Errorf("create the certificate of the sandbox's API: %w", err)
	}
	form := certificate("kube-apiserver")
	form.IPAddresses, form.ExtKeyUsage = []net.IP{net.IPv4(127, 0, 0, 1)}, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	der, err := x509.CreateCertificate(rand.Reader, form, pair.Leaf, &key.PublicKey, pair.PrivateKey)
	if err != nil {
		return tls.Certificate{}, "", fmt.Errorf("create the certificate of the sandbox's API: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, authority, nil
}
