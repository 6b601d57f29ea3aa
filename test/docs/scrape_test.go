// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	sigsyaml "sigs.k8s.io/yaml"
)

// scrapeConfigs has the fields of Prometheus' configuration that the pages use.
type scrapeConfigs struct {
	ScrapeConfigs []scrapeJob `json:"scrape_configs"`
}

type scrapeJob struct {
	KubernetesSD []struct {
		Namespaces struct{ Names []string }
	} `json:"kubernetes_sd_configs"`
	Relabel []struct {
		Sources []string `json:"source_labels"`
		Regex   string
		Action  string
	} `json:"relabel_configs"`
}

// keeps reports whether the relabeling rules of a job keep a port of a container.
func (j *scrapeJob) keeps(image, port string) bool {
	labels := map[string]string{
		"__meta_kubernetes_pod_container_image": image, "__meta_kubernetes_pod_container_port_name": port,
	}
	for _, rule := range j.Relabel {
		var values []string
		for _, label := range rule.Sources {
			values = append(values, labels[label])
		}
		whole := regexp.MustCompile("^(?:" + rule.Regex + ")$") // Prometheus anchors regular expressions
		if rule.Action == "keep" && !whole.MatchString(strings.Join(values, ";")) {
			return false
		}
	}
	return true
}

// scrapes checks that the configuration keeps all metrics ports of the installed workloads, and no other ports.
func (c *cluster) scrapes(t *testing.T, b block) {
	t.Helper()
	var config scrapeConfigs
	if err := sigsyaml.Unmarshal([]byte(b.text), &config); err != nil {
		t.Errorf("%s: %v", b, err)
		return
	}
	out, err := c.Kubectl(t.Context(), "get", "deployments,daemonsets", "--all-namespaces", "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	var installed struct{ Items []appsv1.Deployment } // A DaemonSet has its Pod template at the same path.
	if err := json.Unmarshal([]byte(out), &installed); err != nil {
		t.Fatal(err)
	}
	for _, job := range config.ScrapeConfigs {
		if len(job.KubernetesSD) != 1 {
			t.Errorf("%s: %d kubernetes_sd_configs, want one", b, len(job.KubernetesSD))
			continue
		}
		kept := 0
		for _, workload := range installed.Items {
			for _, container := range workload.Spec.Template.Spec.Containers {
				for _, port := range container.Ports {
					keep := slices.Contains(job.KubernetesSD[0].Namespaces.Names, workload.Namespace)
					keep = keep && job.keeps(container.Image, port.Name)
					if want := strings.HasSuffix(port.Name, "metrics"); keep != want {
						t.Errorf("%s: port %s of %s/%s is kept: %v", b, port.Name, workload.Namespace, workload.Name, keep)
					} else if keep {
						kept++
					}
				}
			}
		}
		if kept == 0 {
			t.Errorf("%s: no port is scraped", b)
		}
	}
}
