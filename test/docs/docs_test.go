// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/test/await"
	"github.com/ovnkube-slb/ovnkube-slb/test/contract"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/controlplane"
	"github.com/ovnkube-slb/ovnkube-slb/test/program"
)

const root = "../.."

// last is the page that uninstalls what the others need.
const last = "docs/install.md"

// pages returns the pages with commands for users and contributors. README.md comes first, because other pages may need
// what it installs.
func pages(t *testing.T) []string {
	t.Helper()
	out := []string{"README.md", "CONTRIBUTING.md"}
	err := fs.WalkDir(os.DirFS(root), "docs", func(path string, _ fs.DirEntry, err error) error {
		if filepath.Ext(path) == ".md" && path != last {
			out = append(out, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return append(out, last)
}

func TestEveryBlockIsRun(t *testing.T) {
	s := start(t)
	run := map[kind]int{}
	for _, page := range pages(t) {
		text, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		found, err := blocks(page, string(text))
		if err != nil {
			t.Error(err)
		}
		for _, b := range found {
			k, err := b.kind()
			if err != nil {
				t.Error(err)
				continue
			}
			run[k]++
			switch k {
			case kubectl:
				s.script(t, b)
			case scrape:
				s.scrapes(t, b)
			case yaml:
				s.dryRun(t, b)
			case targets:
				madeByCI(t, b)
			case picture:
			}
		}
	}
	t.Logf("blocks: %v", run)
	if run[kubectl] == 0 || run[targets] == 0 {
		t.Errorf("blocks run: %v, want some of kubectl and of make: are the pages where this test looks?", run)
	}
}

// cluster is the cluster to which the pages refer, as far as kubectl needs it. plugins is the directory of kubectl slb.
type cluster struct {
	*controlplane.ControlPlane
	plugins string
}

func start(t *testing.T) *cluster {
	t.Helper()
	contract.Test(t)
	plane, err := controlplane.Start(t.Context(), controlplane.Config{Dir: t.TempDir(), Progress: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plane.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	apply := func(files ...string) {
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err == nil {
				err = plane.Apply(t.Context(), string(text))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	apply(root+"/test/e2e/testdata/egressservices.yaml", root+"/test/controller/testdata/openshift-kinds.yaml",
		root+"/test/controller/testdata/metallb-kinds.yaml",
		"testdata/gateway-kinds.yaml", "testdata/ipam-kinds.yaml")
	await.NoError(t, "the kinds of others are served", plane.ServesKinds)
	apply("testdata/cluster.yaml", "testdata/metallb.yaml")
	plugin, err := program.Path(t.Context(), "go-controller/cmd/kubectl-slb", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return &cluster{plane, filepath.Dir(plugin)}
}

// prelude accepts the exit codes by which kubectl slb explain and plan say that they have found a problem, and that a
// wait ends without what it waits for: no controller, no OVN and no kubelet runs here. The object must exist, which
// kubectl checks once, and after a wait for a rollout the kinds are served, as they are to a controller that runs.
const prelude = `kubectl() {
	local output
	if [[ $* == *" rollout status "* ]]; then
		command kubectl "$@" --watch=false || return
		for ((i = 0; i < 120; i++)); do
			output=$(command kubectl get ipaddresspools.slb.k8s.ovn.org,l2domains.slb.k8s.ovn.org -A 2>&1) && return
			sleep 1
		done
		echo "$output"
		return 1
	fi
	if [[ " $* " == *" wait "* ]]; then
		output=$(command kubectl "$@" --timeout=0s 2>&1) || [[ $output == *"condition not met for"* ]] || {
			echo "$output"
			return 1
		}
		return 0
	fi
	command kubectl "$@" && return
	code=$?
	[[ "$code $*" == "3 slb explain "* || "$code $*" == "4 slb plan "* ]] || return $code
}
`

// script runs a block like a user who pastes it into a shell at the root of the repository.
func (c *cluster) script(t *testing.T, b block) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", prelude+b.text)
	cmd.Dir = root
	// The kubectl settings in the environment.
	cmd.Env = append(c.KubectlCommand(t.Context()).Env, "PATH="+c.plugins+":"+
		filepath.Dir(c.Bin().Path("kubectl"))+":"+os.Getenv("PATH"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s\n%s", b, err, b.text, out)
	}
}

// dryRun validates manifests with a server-side dry run. Nothing is stored.
func (c *cluster) dryRun(t *testing.T, b block) {
	t.Helper()
	if err := c.DryRun(t.Context(), b.text); err != nil {
		t.Errorf("%s: %v\n%s", b, err, b.text)
	}
}

// madeByCI checks that CI runs each of the make targets, or all its prerequisites.
func madeByCI(t *testing.T, b block) {
	t.Helper()
	ci, err := os.ReadFile(filepath.Join(root, ".ci/run"))
	if err != nil {
		t.Fatal(err)
	}
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	// The prerequisites of each target, and what it makes by contrib/levels.sh.
	prerequisites := map[string][]string{}
	rule := regexp.MustCompile(`(?m)^([a-z0-9-]+):([a-z0-9 -]+).*(?:\n\t@contrib/levels\.sh (.*))?`)
	for _, m := range rule.FindAllStringSubmatch(string(makefile), -1) {
		prerequisites[m[1]] = append(strings.Fields(m[2]), strings.Fields(m[3])...)
	}
	var made []string
	call := regexp.MustCompile(`(?m)^\s*(?:beside )?(?:timed )?(?:nice -n \d+ )?make(?: -C \S+)?((?: [a-z][a-z0-9-]*\b)+)`)
	for _, m := range call.FindAllStringSubmatch(string(ci), -1) {
		for _, target := range strings.Fields(m[1]) {
			made = append(append(made, target), prerequisites[target]...)
		}
	}
	unmade := func(target string) bool { return !slices.Contains(made, target) }
	for _, p := range b.programs() {
		for _, arg := range p.args[1:] {
			if strings.Contains(arg, "=") {
				continue // a variable of the Makefile
			}
			if of := prerequisites[arg]; unmade(arg) && (len(of) == 0 || slices.ContainsFunc(of, unmade)) {
				t.Errorf("%s:%d: make %s: .ci/run makes %v", b.file, p.line, arg, made)
			}
		}
		cmd := exec.CommandContext(t.Context(), "make", append([]string{"-n"}, p.args[1:]...)...)
		cmd.Dir = root
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s:%d: make: %v\n%s", b.file, p.line, err, out)
		}
	}
}
