// SPDX-License-Identifier: Apache-2.0

package metricsserver

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"os"
	"sync"
	"time"

	"k8s.io/klog/v2"
)

// selfSignedFor is how long a self-signed certificate is valid. It is replaced after half of that time.
const selfSignedFor = 365 * 24 * time.Hour

// certificates provides the server's certificate, from files or self-signed.
type certificates struct {
	certFile, keyFile string // both empty for self-signed

	mu      sync.Mutex
	current *tls.Certificate
	stamps  [2]stamp  // of the files that current was loaded from
	renew   time.Time // when to replace a self-signed certificate
}

// stamp changes when a file's content changes. The files of a mounted Secret are replaced, never modified in place.
type stamp struct {
	modified time.Time
	size     int64
}

// CheckFiles returns an error if a certificate and its key cannot be used.
func CheckFiles(certFile, keyFile string) error {
	_, err := newCertificates(certFile, keyFile)
	return err
}

// newCertificates returns an error if the files cannot be used now. If they become unusable later, the certificate that
// was loaded last remains in use.
func newCertificates(certFile, keyFile string) (*certificates, error) {
	c := &certificates{certFile: certFile, keyFile: keyFile}
	return c, c.refresh()
}

// get implements tls.Config.GetCertificate.
func (c *certificates) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.refresh(); err != nil {
		klog.ErrorS(err, "Failed to reload the metrics certificate")
	}
	return c.current, nil
}

func (c *certificates) refresh() error {
	if c.certFile == "" {
		return c.sign(time.Now())
	}
	var stamps [2]stamp
	for i, file := range []string{c.certFile, c.keyFile} {
		info, err := os.Stat(file)
		if err != nil {
			return fmt.Errorf("certificate for metrics: %w", err)
		}
		stamps[i] = stamp{info.ModTime(), info.Size()}
	}
	if c.current != nil && stamps == c.stamps {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return fmt.Errorf("certificate for metrics %s with key %s: %w", c.certFile, c.keyFile, err)
	}
	c.current, c.stamps = &pair, stamps
	return nil
}

func (c *certificates) sign(now time.Time) error {
	if now.Before(c.renew) {
		return nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("key for metrics: %w", err)
	}
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("certificate for metrics: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 64))
	if err != nil {
		return fmt.Errorf("certificate for metrics: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: fmt.Sprintf("%s@%d", host, now.Unix())},
		DNSNames:     []string{host},
		// Tolerate clock skew between client and server.
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(selfSignedFor),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return fmt.Errorf("certificate for metrics: %w", err)
	}
	c.current, c.renew = &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, now.Add(selfSignedFor/2)
	return nil
}
