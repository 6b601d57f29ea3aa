// SPDX-License-Identifier: Apache-2.0

package site

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ovnkube-slb/ovnkube-slb/test/lab/proc"
)

// The processes of frr-k8s on a node.
const (
	reloader   = "reloader"
	controller = "frr-k8s-controller"
	status     = "status"
)

// inContainer runs a program of frr-k8s in a mount namespace of its own, with what it finds in its container: FRR's
// sockets ($1), FRR's configuration ($2) and what the programs of frr-k8s share ($3) at fixed paths, and vtysh and
// frr-reload.py of this FRR ($4). The machine has no /etc/frr_reloader, so /etc becomes a directory of links to what is
// there. The reloader writes what FRR runs to /tmp/current.conf first: if nodes shared it, one could report what
// another runs. A shell can't trap SIGHUP, by which it is told to reload, if that is ignored, as under nohup(1).
const inContainer = `set -e
mkdir -p /run/frr
mount --bind "$1" /run/frr
touch "$3/current.conf" /tmp/current.conf
mount --bind "$3/current.conf" /tmp/current.conf
mount --rbind /etc /mnt
mount -t tmpfs tmpfs /etc
ln -s /mnt/* /etc
rm -f /etc/frr /etc/frr_reloader
mkdir /etc/frr /etc/frr_reloader
mount --bind "$2" /etc/frr
mount --bind "$3" /etc/frr_reloader
mount --bind "$4/bin/vtysh" /usr/bin/vtysh
[ ! -e "$4/lib/frr/frr-reload.py" ] || mount --bind "$4/lib/frr/frr-reload.py" ` + Reloader + `
shift 4
exec env --default-signal=HUP "$@"`

// container returns the arguments that run a program in the mount namespace that it is in.
func (n *Node) container(args ...string) []string {
	return append([]string{"sh", "-c", inContainer, "sh", n.FRR.Dir, n.etc(), n.dir, n.FRR.Prefix}, args...)
}

// etc is the directory with FRR's configuration.
func (n *Node) etc() string { return filepath.Join(n.dir, "etc") }

// Start starts frr-k8s on the node, as far as it does not run.
func (n *Node) Start(ctx context.Context) error {
	if err := os.MkdirAll(n.etc(), 0o755); err != nil {
		return err
	}
	// vtysh complains if there is none, and frr-k8s would take that for JSON.
	if err := os.WriteFile(filepath.Join(n.etc(), "vtysh.conf"), nil, 0o644); err != nil {
		return err
	}
	pid := filepath.Join(n.dir, "reloader.pid")
	if p, err := proc.Find(n.dir, reloader); err != nil || !p.Alive() {
		// The script makes the lock after the pid. A signal that comes before that reloads nothing.
		lock := filepath.Join(n.dir, "lock")
		if err := errors.Join(remove(pid), remove(lock)); err != nil {
			return err
		}
		_, err := proc.Start(ctx, proc.Spec{Name: reloader, Dir: n.dir, Netns: n.FRR.Netns,
			Env:  []string{"SHARED_VOLUME=" + n.dir},
			Args: n.container("bash", filepath.Join(n.site.source, "cmd/reloader/frr-reloader.sh")),
			Ready: func(context.Context) error {
				_, err := os.Stat(lock)
				return err
			}})
		if err != nil {
			return err
		}
	}
	if err := n.site.addPod(ctx, n.Name); err != nil {
		return err
	}
	args := []string{"--node-name=" + n.Name, "--namespace=" + Namespace, "--pod-name=" + podName(n.Name)}
	if n.site.Poll != "" {
		args = append(args, "--poll-interval="+n.site.Poll)
	}
	for _, spec := range []proc.Spec{n.site.controller(n.Name, n.dir, pid), n.site.program(n.dir, status, args...)} {
		if p, err := proc.Find(n.dir, spec.Name); err == nil && p.Alive() {
			continue
		}
		// They reach the API server on the loopback interface of this machine.
		spec.Args = append([]string{"unshare", "--mount", "--propagation", "private"}, n.container(spec.Args...)...)
		if _, err := proc.Start(ctx, spec); err != nil {
			return err
		}
	}
	return nil
}

// remove removes a file that may not exist.
func remove(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Controller starts the controller of frr-k8s for a node without FRR. It writes FRR's configuration to frr.conf in a
// directory, and then sends SIGHUP to the process in the file pid.
func (s *Site) Controller(ctx context.Context, node, dir, pid string) error {
	if err := s.addPod(ctx, node); err != nil {
		return err
	}
	_, err := proc.Start(ctx, s.controller(node, dir, pid))
	return err
}

func (s *Site) controller(node, dir, pid string) proc.Spec {
	spec := s.program(dir, controller, "--node-name="+node, "--namespace="+Namespace, "--metrics-bind-address=0",
		"--health-probe-bind-address=0")
	spec.Env = append(spec.Env, "FRR_CONFIG_FILE="+filepath.Join(dir, "frr.conf"), "FRR_RELOADER_PID_FILE="+pid)
	if s.Debounce != "" {
		spec.Env = append(spec.Env, debounce+s.Debounce)
	}
	return spec
}

// program returns a program of frr-k8s.
func (s *Site) program(dir, name string, args ...string) proc.Spec {
	return proc.Spec{Name: name, Dir: dir, Env: []string{"KUBECONFIG=" + s.Plane.AdminKubeconfig()},
		Args: append([]string{filepath.Join(s.Root, "contrib/frr-k8s.sh"), name}, args...)}
}

// addPod adds the Pod of frr-k8s' DaemonSet on a node, with the containers that matter, and reports it as ready. It
// owns the BGPSessionStates of the node, and without it the FRRNodeState is deleted. No controller of DaemonSets runs.
func (s *Site) addPod(ctx context.Context, node string) error {
	if err := s.Plane.Apply(ctx, fmt.Sprintf(`
apiVersion: apps/v1
kind: DaemonSet
metadata: {namespace: %s, name: frr-k8s}
spec:
  selector: {matchLabels: {app.kubernetes.io/component: frr-k8s}}
  template:
    metadata: {labels: {app.kubernetes.io/component: frr-k8s}}
    spec: {containers: [{name: controller, image: frr-k8s}]}
`, Namespace)); err != nil {
		return err
	}
	owner, err := s.Plane.Get(ctx, "daemonsets.apps", Namespace, "frr-k8s", "{.metadata.uid}")
	if err != nil {
		return err
	}
	if err := s.Plane.Apply(ctx, fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata:
  namespace: %s
  name: %s
  labels: {app.kubernetes.io/component: frr-k8s}
  ownerReferences: [{apiVersion: apps/v1, kind: DaemonSet, name: frr-k8s, uid: %s, controller: true}]
spec:
  nodeName: %s
  containers:
  - {name: controller, image: frr-k8s}
  - {name: frr, image: frr}
  - {name: frr-status, image: frr-k8s}
`, Namespace, podName(node), owner, node)); err != nil {
		return err
	}
	return s.SetFRRReady(ctx, node, true)
}

// SetFRRReady sets whether the Pod on a node reports the container with FRR as ready, as its kubelet does.
func (s *Site) SetFRRReady(ctx context.Context, node string, ready bool) error {
	const status = `{"status": {"containerStatuses": [
		{"name": "frr", "ready": %t, "restartCount": 0, "image": "frr", "imageID": "frr"},
		{"name": "frr-status", "ready": true, "restartCount": 0, "image": "frr-k8s", "imageID": "frr-k8s"}]}}`
	_, err := s.Plane.Kubectl(ctx, "-n", Namespace, "patch", "pod", podName(node), "--subresource=status", "--type=merge",
		"-p", fmt.Sprintf(status, ready))
	return err
}

func podName(node string) string { return "frr-k8s-" + node }

// KillController kills the controller of frr-k8s. FRR and the script that reloads it stay.
func (n *Node) KillController() error {
	p, err := proc.Find(n.dir, controller)
	if err != nil {
		return err
	}
	return p.Kill()
}

// Processes returns the processes whose memory frr-k8s needs on a node: its controller, and the daemons of FRR.
func (n *Node) Processes() (own, daemons []*proc.Process, err error) {
	p, err := proc.Find(n.dir, controller)
	if err != nil {
		return nil, nil, err
	}
	daemons, err = proc.Load(n.FRR.Dir)
	return []*proc.Process{p}, daemons, err
}

// Logs returns the files with the output of the processes of frr-k8s.
func (n *Node) Logs() []string {
	var out []string
	for _, name := range []string{reloader, controller, status} {
		out = append(out, filepath.Join(n.dir, name+".log"))
	}
	return out
}
