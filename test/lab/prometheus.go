// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/test/lab/panels"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/scrape"
	"github.com/ovnkube-slb/ovnkube-slb/test/poll"
)

const (
	prometheusName    = "prometheus"
	prometheusAddress = "127.0.0.1:9090"
	// NodeMetricsPort is the port at which StartPrometheus expects the metrics of the daemons on nodes.
	NodeMetricsPort = "9483"
)

// insideLab runs kubectl in the lab, where the API server is.
type insideLab struct{ *Lab }

func (l insideLab) Apply(ctx context.Context, manifest string) error {
	_, err := l.Lab.Kubectl(ctx, manifest, "apply", "-f", "-")
	return err
}

func (l insideLab) Kubectl(ctx context.Context, args ...string) (string, error) {
	return l.Lab.Kubectl(ctx, "", args...)
}

// StartPrometheus starts Prometheus in the central namespace. It scrapes the controller and the daemons on the nodes
// twice a second, and evaluates the rules of a file as often. Kill the process to stop it.
func (l *Lab) StartPrometheus(ctx context.Context, rules string) (stop func() error, err error) {
	reader, err := scrape.New(ctx, insideLab{l})
	if err != nil {
		return nil, err
	}
	dir := l.path(prometheusName)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("start Prometheus: %w", err)
	}
	var nodes []string
	for _, n := range l.Nodes {
		address := Management().Host(n.Index)[0].Addr()
		nodes = append(nodes, fmt.Sprintf("%q", address.String()+":"+NodeMetricsPort))
	}
	config := fmt.Sprintf(`
global: {scrape_interval: 500ms, scrape_timeout: 500ms, evaluation_interval: 500ms}
rule_files: [%q]
scrape_configs:
- job_name: ovnkube-slb
  scheme: https
  authorization: {credentials: %s}
  tls_config: {insecure_skip_verify: true}
  static_configs: [{targets: [%q, %s]}]
`, rules, reader.Token, MetricsAddress, strings.Join(nodes, ", "))
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return nil, fmt.Errorf("start Prometheus: %w", err)
	}
	p, err := l.Start(ctx, centralNetns, prometheusName, nil, "prometheus", "--config.file="+file,
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+prometheusAddress)
	if err != nil {
		return nil, err
	}
	if err := poll.Within(ctx, poll.Limit, func(ctx context.Context) error {
		_, err := l.Exec(ctx, centralNetns, "curl", "-sf", "-m10", "http://"+prometheusAddress+"/-/ready")
		return err
	}); err != nil {
		return nil, fmt.Errorf("%w: see %s", err, p.Log())
	}
	return p.Kill, nil
}

// FiringAlerts returns the names of the alerts that fire in Prometheus.
func (l *Lab) FiringAlerts(ctx context.Context) (map[string]bool, error) {
	var reply struct {
		Data struct {
			Alerts []struct {
				Labels map[string]string
				State  string
			}
		}
	}
	if err := l.prometheus(ctx, "/api/v1/alerts", &reply); err != nil {
		return nil, err
	}
	firing := map[string]bool{}
	for _, a := range reply.Data.Alerts {
		if a.State == "firing" {
			firing[a.Labels["alertname"]] = true
		}
	}
	return firing, nil
}

// QueryRange returns the result of an expression at a step of a second from a time until now.
func (l *Lab) QueryRange(ctx context.Context, expr string, from time.Time) ([]panels.Series, error) {
	var reply struct {
		Data struct {
			Result []struct {
				Metric map[string]string
				Values [][2]json.RawMessage
			}
		}
	}
	query := url.Values{"query": {expr}, "step": {"1"}, "start": {strconv.FormatInt(from.Unix(), 10)},
		"end": {strconv.FormatInt(time.Now().Unix(), 10)}}
	if err := l.prometheus(ctx, "/api/v1/query_range?"+query.Encode(), &reply); err != nil {
		return nil, err
	}
	var out []panels.Series
	for _, r := range reply.Data.Result {
		s := panels.Series{Labels: r.Metric}
		for _, v := range r.Values {
			at, err := strconv.ParseFloat(string(v[0]), 64)
			if err != nil {
				return nil, fmt.Errorf("%s: time %s: %w", expr, v[0], err)
			}
			value, err := strconv.ParseFloat(strings.Trim(string(v[1]), `"`), 64)
			if err != nil {
				return nil, fmt.Errorf("%s: value %s: %w", expr, v[1], err)
			}
			if !math.IsNaN(value) && !math.IsInf(value, 0) { // A quantile or a rate of nothing.
				s.Points = append(s.Points, panels.Point{At: time.Unix(0, int64(at*1e9)), Value: value})
			}
		}
		if len(s.Points) > 0 {
			out = append(out, s)
		}
	}
	return out, nil
}

// QueryPrometheus returns the number of series in the result of an expression.
func (l *Lab) QueryPrometheus(ctx context.Context, expr string) (int, error) {
	var reply struct {
		Data struct{ Result []json.RawMessage }
	}
	err := l.prometheus(ctx, "/api/v1/query?query="+url.QueryEscape(expr), &reply)
	return len(reply.Data.Result), err
}

func (l *Lab) prometheus(ctx context.Context, path string, into any) error {
	out, err := l.Exec(ctx, centralNetns, "curl", "-sf", "-m5", "http://"+prometheusAddress+path)
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(out), into)
}
