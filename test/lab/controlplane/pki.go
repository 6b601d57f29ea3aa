// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"time"
)

// validity is far longer than the lifetime of any lab. clockSkew tolerates clocks that differ by a day.
const validity, clockSkew = 10 * 365 * 24 * time.Hour, 24 * time.Hour

// authority is the certificate authority of a control plane. It signs the certificates of both servers and users.
type authority struct {
	cert    *x509.Certificate
	key     *ecdsa.PrivateKey
	certPEM []byte
}

const authorityName = "ca"

func certPath(dir, name string) string { return filepath.Join(dir, "pki", name+".crt") }
func keyPath(dir, name string) string  { return filepath.Join(dir, "pki", name+".key") }

// openAuthority reads the authority from the run directory, or creates one if there is none.
func openAuthority(dir string) (*authority, error) {
	a, err := loadAuthority(dir)
	if !errors.Is(err, fs.ErrNotExist) {
		return a, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := template(pkix.Name{CommonName: "ovnkube-slb lab"})
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	certPEM, keyPEM, err := sign(template, template, key, key)
	if err != nil {
		return nil, err
	}
	if err := writePair(dir, authorityName, certPEM, keyPEM); err != nil {
		return nil, err
	}
	return loadAuthority(dir)
}

func loadAuthority(dir string) (*authority, error) {
	certPEM, err := os.ReadFile(certPath(dir, authorityName))
	if err != nil {
		return nil, err
	}
	keyPEM, err := os.ReadFile(keyPath(dir, authorityName))
	if err != nil {
		return nil, err
	}
	certBlock, _ := pem.Decode(certPEM)
	keyBlock, _ := pem.Decode(keyPEM)
	if certBlock == nil || keyBlock == nil {
		return nil, fmt.Errorf("certificate authority in %s: not PEM", dir)
	}
	cert, err := x509.ParseCertificate(certBlock.Bytes)
	if err != nil {
		return nil, fmt.Errorf("certificate authority in %s: %w", dir, err)
	}
	key, err := x509.ParseECPrivateKey(keyBlock.Bytes)
	if err != nil {
		return nil, fmt.Errorf("certificate authority in %s: %w", dir, err)
	}
	return &authority{cert: cert, key: key, certPEM: certPEM}, nil
}

// server issues a certificate for a server with these names, at the addresses.
func (a *authority) server(name string, names []string, addrs ...netip.Addr) (certPEM, keyPEM []byte, err error) {
	template := template(pkix.Name{CommonName: name})
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	template.DNSNames = names
	for _, addr := range addrs {
		template.IPAddresses = append(template.IPAddresses, addr.AsSlice())
	}
	return a.issue(template)
}

// user issues a client certificate. The API server takes the user from the common name and the groups from the
// organizations.
func (a *authority) user(name string, groups []string) (certPEM, keyPEM []byte, err error) {
	template := template(pkix.Name{CommonName: name, Organization: groups})
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return a.issue(template)
}

// ServerCertificate issues a certificate for a server at an address, such as a webhook. It returns the certificate, its
// key and the certificate of the authority, as PEM.
func (c *ControlPlane) ServerCertificate(name string, addr netip.Addr) (cert, key, authority []byte, err error) {
	a, err := loadAuthority(c.dir)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("certificate of %s: %w", name, err)
	}
	cert, key, err = a.server(name, nil, addr)
	return cert, key, a.certPEM, err
}

// PeerCertificate issues a certificate for a peer that is both server and client, as OVN's daemons are. It returns the
// paths of the certificate, its key and the certificate of the authority.
func (c *ControlPlane) PeerCertificate(name string) (cert, key, authority string, err error) {
	a, err := loadAuthority(c.dir)
	if err != nil {
		return "", "", "", fmt.Errorf("certificate of %s: %w", name, err)
	}
	certPEM, keyPEM, err := a.issue(template(pkix.Name{CommonName: name}))
	if err == nil {
		err = writePair(c.dir, name, certPEM, keyPEM)
	}
	if err != nil {
		return "", "", "", fmt.Errorf("certificate of %s: %w", name, err)
	}
	return certPath(c.dir, name), keyPath(c.dir, name), certPath(c.dir, authorityName), nil
}

func (a *authority) issue(template *x509.Certificate) (certPEM, keyPEM []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	return sign(template, a.cert, key, a.key)
}

func template(subject pkix.Name) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		Subject: subject, NotBefore: now.Add(-clockSkew), NotAfter: now.Add(validity),
		KeyUsage: x509.KeyUsageDigitalSignature,
	}
}

func sign(template, parent *x509.Certificate, key *ecdsa.PrivateKey, signer crypto.Signer) (certPEM, keyPEM []byte,
	err error) {
	cert, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return nil, nil, fmt.Errorf("sign a certificate for %s: %w", template.Subject, err)
	}
	keyPEM, err = encodeKey(key)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}), keyPEM, err
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	text, err := x509.MarshalECPrivateKey(key)
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: text}), err
}

func writePair(dir, name string, certPEM, keyPEM []byte) error {
	if err := os.MkdirAll(filepath.Join(dir, "pki"), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(certPath(dir, name), certPEM, 0o644); err != nil {
		return err
	}
	return os.WriteFile(keyPath(dir, name), keyPEM, 0o600)
}

// ensureServiceAccountKey creates the key that signs ServiceAccount tokens if it does not exist, so that tokens remain
// valid across restarts.
func ensureServiceAccountKey(dir string) (path string, err error) {
	path = keyPath(dir, "service-account")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", err
	}
	text, err := encodeKey(key)
	if err != nil {
		return "", err
	}
	return path, os.WriteFile(path, text, 0o600)
}
