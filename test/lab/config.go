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
	// DefaultName is the lab's name if none is given.
	DefaultName = "slb"
	// DefaultNodes is the number of nodes if none is given: the least with which an HA chassis group survives the loss of one.
	DefaultNodes = 3
	// DefaultDir holds the directories of labs. It is short, because a Unix socket's path may have 107 bytes only.
	DefaultDir = "/run/ovnkube-slb-lab"

	stateFile = "lab.json"
)

// The namespaces beside those of nodes and pods, by their short names.
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

// errExists is what Up says of a lab that is up, or was left behind.
var errExists = errors.New("the lab exists already")

// Config says which lab to build.
type Config struct {
	// Name distinguishes labs on one machine: a lower case letter, then at most eleven letters and digits. Default DefaultName.
	Name string
	// Nodes is how many, 1 to 100; default DefaultNodes.
	Nodes int
	// Dir holds the lab's own directory, <Dir>/<Name>; default DefaultDir.
	Dir string
	// NoKube leaves out etcd, the API server and the nodes' agent.
	NoKube bool
	// OVNPrefix is the directory of the build of OVN and Open vSwitch to run, see package ovnprefix; default [ovnprefix.Chosen]. Who opens
	// the lab later gets the same one.
	OVNPrefix string
	// Network is what connects nodes and pods; default the model.
	Network Network
	// Binary is the path of the program test/lab/cmd/lab, which serves as the nodes' agent, backend and probe. Default: Up builds it.
	Binary string
	// Progress receives a line a step, with the seconds since the start; nil for none.
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

// Lab is a lab that is up. Its methods may be called from several programs at once, for everything they need is in its directory.
type Lab struct {
	// Name, Dir and Nodes as built; Dir is the lab's own.
	Name  string
	Dir   string
	Nodes []Node

	state state
}

// state is what a lab's directory says about it.
type state struct {
	Nodes  int    `json:"nodes"`
	NoKube bool   `json:"noKube"`
	Binary string `json:"binary"`
	// OVNPrefix as in Config.
	OVNPrefix string `json:"ovnPrefix,omitempty"`
	// Network as in Config.
	Network Network `json:"network"`
	// Given is what OVN-Kubernetes itself gave to nodes, by their name.
	Given map[string]given `json:"given,omitempty"`
	// Ready is false until Up has ended well.
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

// Open returns the lab of that name and directory, which another program may have built; [os.ErrNotExist] if there is none.
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

// Node returns the node of that name.
func (l *Lab) Node(name string) (Node, error) {
	for _, n := range l.Nodes {
		if n.Name == name {
			return n, nil
		}
	}
	return Node{}, fmt.Errorf("lab %s has no node %q: its nodes are n1 to n%d", l.Name, name, len(l.Nodes))
}

// Network is what connects the lab's nodes and pods.
func (l *Lab) Network() Network { return l.state.Network }

// Netns is the full name of one of the lab's namespaces: sw, cen, router, client, dmz, tagged, remote, a node, or pod-<namespace>-<pod>.
func (l *Lab) Netns(short string) string { return l.Name + "-" + short }

// Ready tells whether the lab came up completely, and since when it exists.
func (l *Lab) Ready() (ready bool, created time.Time) { return l.state.Ready, l.state.Created }

func (l *Lab) path(parts ...string) string {
	return filepath.Join(append([]string{l.Dir}, parts...)...)
}

// progress writes a line a step, from several goroutines.
type progress struct {
	mu    sync.Mutex
	start time.Time
	w     io.Writer
}

func newProgress(w io.Writer) *progress { return &progress{start: time.Now(), w: w} }

func (p *progress) say(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.w, "%6.1fs  %s\n", time.Since(p.start).Seconds(), fmt.Sprintf(format, args...))
}

// Write makes a progress a writer for those who print lines themselves.
func (p *progress) Write(text []byte) (int, error) {
	p.say("%s", string(trimNewline(text)))
	return len(text), nil
}

func trimNewline(text []byte) []byte {
	for len(text) > 0 && text[len(text)-1] == '\n' {
		text = text[:len(text)-1]
	}
	return text
}
