// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// Limits of the lab's own clients, in requests per second. They are far above the lab's rate, so that client-go never
// throttles it.
const clientQPS, clientBurst = 1000, 2000

const adminUser, adminGroup = "admin", "system:masters"

// AdminKubeconfig returns the path of a kubeconfig whose user has all permissions (group system:masters).
func (c *ControlPlane) AdminKubeconfig() string { return kubeconfigPath(c.dir, adminUser) }

// Kubeconfig issues a client certificate for the user with the groups, writes a kubeconfig with it, and returns its
// path. The user has the permissions that RBAC grants it, which for a new user are almost none.
func (c *ControlPlane) Kubeconfig(user string, groups ...string) (string, error) {
	a, err := loadAuthority(c.dir)
	if err != nil {
		return "", fmt.Errorf("kubeconfig for %s: %w", user, err)
	}
	return writeKubeconfig(c.dir, a, c.server, user, groups)
}

// ServiceAccountKubeconfig is like Kubeconfig for the user and groups that the API server assigns to the token of a
// ServiceAccount, so that RBAC bindings to the ServiceAccount apply.
func (c *ControlPlane) ServiceAccountKubeconfig(namespace, name string) (string, error) {
	return c.Kubeconfig("system:serviceaccount:"+namespace+":"+name,
		"system:serviceaccounts", "system:serviceaccounts:"+namespace, "system:authenticated")
}

// PodKubeconfig is like ServiceAccountKubeconfig for the token of a Pod on a node: the API server knows the node
// (KEP-4193), which admission policies see.
func (c *ControlPlane) PodKubeconfig(namespace, account, node string) (string, error) {
	text, err := os.ReadFile(c.AdminKubeconfig())
	if err != nil {
		return "", fmt.Errorf("kubeconfig of a Pod on %s: %w", node, err)
	}
	config, err := clientcmd.Load(text)
	if err != nil {
		return "", fmt.Errorf("kubeconfig of a Pod on %s: %w", node, err)
	}
	for _, auth := range config.AuthInfos {
		auth.Impersonate = "system:serviceaccount:" + namespace + ":" + account
		auth.ImpersonateGroups = []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace,
			"system:authenticated"}
		auth.ImpersonateUserExtra = map[string][]string{"authentication.kubernetes.io/node-name": {node}}
	}
	if text, err = clientcmd.Write(*config); err != nil {
		return "", fmt.Errorf("kubeconfig of a Pod on %s: %w", node, err)
	}
	path := kubeconfigPath(c.dir, account+" on "+node)
	return path, replace(path, text)
}

// RESTConfig returns the administrator's configuration for client-go. Each call returns a new copy.
func (c *ControlPlane) RESTConfig() *rest.Config { return rest.CopyConfig(c.rest) }

func kubeconfigPath(dir, user string) string {
	return filepath.Join(dir, regexp.MustCompile(`[^A-Za-z0-9.-]+`).ReplaceAllString(user, "_")+".kubeconfig")
}

func writeKubeconfig(dir string, a *authority, server, user string, groups []string) (string, error) {
	cert, key, err := a.user(user, groups)
	if err != nil {
		return "", fmt.Errorf("kubeconfig for %s: %w", user, err)
	}
	const name = "lab"
	config := api.NewConfig()
	config.CurrentContext = name
	config.Clusters[name] = &api.Cluster{Server: server, CertificateAuthorityData: a.certPEM}
	config.AuthInfos[user] = &api.AuthInfo{ClientCertificateData: cert, ClientKeyData: key}
	config.Contexts[name] = &api.Context{Cluster: name, AuthInfo: user, Namespace: "default"}
	text, err := clientcmd.Write(*config)
	if err != nil {
		return "", fmt.Errorf("kubeconfig for %s: %w", user, err)
	}
	path := kubeconfigPath(dir, user)
	if err := replace(path, text); err != nil {
		return "", fmt.Errorf("kubeconfig for %s: %w", user, err)
	}
	return path, nil
}

// replace writes a file atomically because a process that was started with the previous content may be reading it.
func replace(path string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

func loadRESTConfig(path string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = clientQPS, clientBurst
	return config, nil
}
