// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/test/lab/ovnprefix"
)

const (
	// DefaultName is the name of a lab for which none is given.
	DefaultName = "slb"
	// DefaultNodes is the number of nodes if none is given. It is the minimum with which an HA chassis group survives the
	// loss of a node.
	DefaultNodes = 3
	// DefaultDir contains the directories of labs. It is short because the path of a Unix socket is limited to 107 bytes.
	DefaultDir = "/run/ovnkube-slb-lab"

	stateFile = "lab.json"
)

// The short names of the namespaces other than those of nodes and pods.
const (
	switchNetns  = "sw"
	centralNetns = "cen"
	routerNetns  = "router"
	clientNetns  = "client"
	remoteNetns  = "remote"
	dmzNetns     = "dmz"
	taggedNetns  = "tagged"
	podNetns     = "pod-"
)

// errExists is returned by Up if the lab is up or was left behind.
var errExists = errors.New("the lab exists already")

// Config configures a lab.
type Config struct {
	// Name distinguishes labs on one machine: a lower case letter, then at most eleven lower case letters and digits. The
	// default is DefaultName.
	Name string
	// Nodes is the number of nodes, 1 to 100. The default is DefaultNodes.
	Nodes int
	// Dir contains the lab's own directory, <Dir>/<Name>. The default is DefaultDir.
	Dir string
	// NoKube omits etcd, the API server and the nodes' agent.
	NoKube bool
	// OVNPrefix is the directory of the build of OVN and Open vSwitch to run (package ovnprefix). The default is
	// [ovnprefix.Chosen]. Programs that open the lab later use the same build.
	OVNPrefix string
	// Network connects nodes and pods. The default is the model.
	Network Network
	// Binary is the path of the program test/lab/cmd/lab, which serves as node agent, backend and probe. By default, Up
	// builds it.
	Binary string
	// Progress receives one line per step, with the seconds since the start. Nil discards them.
	Progress io.Writer
}

func (c Config) withDefaults() Config {
	if c.Name == "" {
		c.Name = DefaultName
	}
	if c.Nodes == 0 {
		c.Nodes = DefaultNodes
	}
	if c.Dir == "" {
		c.Dir = DefaultDir
	}
	if c.OVNPrefix == "" {
		c.OVNPrefix = ovnprefix.Chosen()
	}
	if c.Progress == nil {
		c.Progress = io.Discard
	}
	c.Network = c.Network.withDefaults()
	return c
}

func (c Config) validate() error {
	if !regexp.MustCompile(`^[a-z][a-z0-9]{0,11}$`).MatchString(c.Name) {
		return fmt.Errorf("lab name %q: want a lower case letter, then at most 11 lower case letters and digits", c.Name)
	}
	if c.Nodes < 1 || c.Nodes > maxNodes {
		return fmt.Errorf("lab %s: nodes %d: want 1 to %d", c.Name, c.Nodes, maxNodes)
	}
	if c.NoKube && c.Network.Real() {
		return fmt.Errorf("lab %s: network %s needs the API server", c.Name, c.Network.Kind)
	}
	if err := c.Network.validate(); err != nil {
		return fmt.Errorf("lab %s: %w", c.Name, err)
	}
	return nil
}

// Lab is a lab that is up. Several programs may call its methods concurrently because all of its state is in its
// directory.
type Lab struct {
	// Name, Dir and Nodes are as built. Dir is the lab's own directory.
	Name  string
	Dir   string
	Nodes []Node
	// Notes receives a line when a program that was started may not read what its flags need. Nil discards it.
	Notes io.Writer

	state state
}

// state is the content of the state file in a lab's directory.
type state struct {
	Nodes  int    `json:"nodes"`
	NoKube bool   `json:"noKube"`
	Binary string `json:"binary"`
	// OVNPrefix is the same as in Config.
	OVNPrefix string `json:"ovnPrefix,omitempty"`
	// FRRPrefix is the directory of the router's FRR.
	FRRPrefix string `json:"frrPrefix"`
	// Network is the same as in Config.
	Network Network `json:"network"`
	// Given holds what OVN-Kubernetes assigned to nodes, by node name.
	Given map[string]given `json:"given,omitempty"`
	// Ready is false until Up has succeeded.
	Ready   bool      `json:"ready"`
	Created time.Time `json:"created"`
}

func newLab(c Config, s state) *Lab {
	l := &Lab{Name: c.Name, Dir: filepath.Join(c.Dir, c.Name), state: s}
	for i := 1; i <= s.Nodes; i++ {
		n := node(i)
		if g, ok := s.Given[n.Name]; ok {
			n.take(g)
		}
		l.Nodes = append(l.Nodes, n)
	}
	return l
}

// Open returns the lab with the name and directory in c, which another program may have built. It returns
// [os.ErrNotExist] if there is none.
func Open(c Config) (*Lab, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, err
	}
	path := filepath.Join(c.Dir, c.Name, stateFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("no lab %q is up: build it with `lab --name %s up`: %w", c.Name, c.Name, os.ErrNotExist)
	}
	if err != nil {
		return nil, fmt.Errorf("open lab %s: %w", c.Name, err)
	}
	var s state
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, fmt.Errorf("open lab %s: %s: %w", c.Name, path, err)
	}
	if err := ovnprefix.Use(s.OVNPrefix); err != nil {
		return nil, fmt.Errorf("open lab %s: %w", c.Name, err)
	}
	return newLab(c, s), nil
}

func (l *Lab) saveState() error {
	text, err := json.Marshal(l.state)
	if err != nil {
		return err
	}
	path := filepath.Join(l.Dir, stateFile)
	if err := os.WriteFile(path+".new", append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("record lab %s: %w", l.Name, err)
	}
	return os.Rename(path+".new", path)
}

// Node returns the node with the name.
func (l *Lab) Node(name string) (Node, error) {
	for _, n := range l.Nodes {
		if n.Name == name {
			return n, nil
		}
	}
	return Node{}, fmt.Errorf("lab %s has no node %q: its nodes are n1 to n%d", l.Name, name, len(l.Nodes))
}

// Network returns the network that connects the lab's nodes and pods.
func (l *Lab) Network() Network { return l.state.Network }

// Netns returns the full name of one of the lab's namespaces: sw, cen, router, client, dmz, tagged, remote, a node, or
// pod-<namespace>-<pod>.
func (l *Lab) Netns(short string) string { return l.Name + "-" + short }

// Ready reports whether the lab came up completely, and when it was created.
func (l *Lab) Ready() (ready bool, created time.Time) { return l.state.Ready, l.state.Created }

func (l *Lab) path(parts ...string) string {
	return filepath.Join(append([]string{l.Dir}, parts...)...)
}

// progress writes one line per step. It is safe for concurrent use.
type progress struct {
	mu    sync.Mutex
	start time.Time
	w     io.Writer
}

func newProgress(w io.Writer) *progress { return &progress{start: time.Now(), w: w} }

func (p *progress) logf(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.w, "%6.1fs  %s\n", time.Since(p.start).Seconds(), fmt.Sprintf(format, args...))
}

// Write implements io.Writer for callers that print their own lines.
func (p *progress) Write(text []byte) (int, error) {
	p.logf("%s", string(trimNewline(text)))
	return len(text), nil
}

func trimNewline(text []byte) []byte {
	for len(text) > 0 && text[len(text)-1] == '\n' {
		text = text[:len(text)-1]
	}
	return text
}
