// SPDX-License-Identifier: Apache-2.0

package site

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/ovnkube-slb/ovnkube-slb/test/lab/proc"
)

// Webhook is the name of the webhook of frr-k8s, as in metrics of the API server.
const Webhook = "frrconfigurationsvalidationwebhook.metallb.io"

// webhook is the program with the webhook. It also deletes the FRRNodeState of a node without a Pod of frr-k8s.
const webhook = "statuscleaner"

// portAttempts is how many free ports are tried: another program may take one before the webhook listens there.
const portAttempts = 5

func (s *Site) webhookDir() string { return filepath.Join(s.Dir, "webhook") }

// StartWebhook starts the webhook of frr-k8s, and lets the API server call it for requests that meet the conditions.
func (s *Site) StartWebhook(ctx context.Context, conditions ...admissionv1.MatchCondition) error {
	addr := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	// Without rotation of certificates, it has them where its library looks for them by default, in TMPDIR.
	certs := filepath.Join(s.webhookDir(), "k8s-webhook-server/serving-certs")
	cert, key, authority, err := s.Plane.ServerCertificate("frr-k8s-webhook", addr)
	if err != nil {
		return err
	}
	if err := errors.Join(os.MkdirAll(certs, 0o755), os.WriteFile(filepath.Join(certs, "tls.crt"), cert, 0o644),
		os.WriteFile(filepath.Join(certs, "tls.key"), key, 0o600)); err != nil {
		return err
	}
	var at netip.AddrPort
	for range portAttempts {
		if at, err = s.startWebhookProcess(ctx, addr, authority); err == nil || ctx.Err() != nil {
			break
		}
	}
	if err != nil {
		return err
	}
	return s.registerWebhook(ctx, at, authority, conditions)
}

func (s *Site) startWebhookProcess(ctx context.Context, addr netip.Addr, authority []byte) (netip.AddrPort, error) {
	free, err := net.Listen("tcp", ":0") // it listens on all addresses
	if err != nil {
		return netip.AddrPort{}, err
	}
	port := free.Addr().(*net.TCPAddr).Port
	if err := free.Close(); err != nil {
		return netip.AddrPort{}, err
	}
	at := netip.AddrPortFrom(addr, uint16(port))
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(authority)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted},
		DisableKeepAlives: true}}
	spec := s.program(s.webhookDir(), webhook, "--namespace="+Namespace, "--disable-cert-rotation",
		fmt.Sprintf("--webhook-port=%d", port))
	spec.Env = append(spec.Env, "TMPDIR="+s.webhookDir())
	spec.Ready = func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+at.String()+"/healthz", http.NoBody)
		if err != nil {
			return err
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		if response.StatusCode != http.StatusOK { // the paths are added after it listens
			err = errors.New(response.Status)
		}
		return errors.Join(err, response.Body.Close())
	}
	_, err = proc.Start(ctx, spec)
	return at, err
}

// registerWebhook adds frr-k8s' own configuration of the API server, with the address in place of a Service.
func (s *Site) registerWebhook(ctx context.Context, at netip.AddrPort, authority []byte,
	conditions []admissionv1.MatchCondition) error {
	text, err := os.ReadFile(filepath.Join(s.source, "config/webhook/manifests.yaml"))
	if err != nil {
		return err
	}
	var config admissionv1.ValidatingWebhookConfiguration
	if err := yaml.Unmarshal(text, &config); err != nil {
		return err
	}
	for i := range config.Webhooks {
		is := &config.Webhooks[i]
		url := "https://" + at.String() + *is.ClientConfig.Service.Path
		is.ClientConfig = admissionv1.WebhookClientConfig{URL: &url, CABundle: authority}
		is.MatchConditions = conditions
	}
	client, err := kubernetes.NewForConfig(s.Plane.RESTConfig())
	if err != nil {
		return err
	}
	webhooks := client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	_, err = webhooks.Create(ctx, &config, metav1.CreateOptions{})
	return err
}
