// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"k8s.io/client-go/tools/cache"
)

const podFile = "pod.json"

// local records the Pods that have state on this machine. A Pod is recorded, and its directory exists, from before its
// first resource is created until after its last one is removed.
type local struct {
	dir string

	mu   sync.Mutex
	pods map[cache.ObjectName]Pod
	// plugged has the results of Plug in this run of the agent.
	plugged map[Pod]Attachment
}

func openLocal(dir string) (*local, error) {
	l := &local{dir: dir, pods: make(map[cache.ObjectName]Pod), plugged: make(map[Pod]Attachment)}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	paths, err := filepath.Glob(filepath.Join(dir, "*", podFile))
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		var pod Pod
		if err := json.Unmarshal(text, &pod); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		l.pods[pod.key()] = pod
	}
	return l, nil
}

func (p Pod) key() cache.ObjectName { return cache.NewObjectName(p.Namespace, p.Name) }

func (l *local) keys() []cache.ObjectName {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Keys(l.pods))
}

func (l *local) get(key cache.ObjectName) (Pod, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	pod, ok := l.pods[key]
	return pod, ok
}

// podDir returns the directory with the records of a Pod and of its responder. The UID distinguishes it from an earlier
// Pod of the same name.
func (l *local) podDir(pod Pod) string { return filepath.Join(l.dir, string(pod.UID)) }

func (l *local) add(pod Pod) error {
	if old, ok := l.get(pod.key()); ok && old == pod {
		return nil
	}
	text, err := json.Marshal(pod)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(l.podDir(pod), 0o755); err != nil {
		return err
	}
	path := filepath.Join(l.podDir(pod), podFile)
	if err := os.WriteFile(path+".new", text, 0o644); err != nil {
		return err
	}
	if err := os.Rename(path+".new", path); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pods[pod.key()] = pod
	return nil
}

func (l *local) remove(pod Pod) error {
	if err := os.RemoveAll(l.podDir(pod)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.pods, pod.key())
	return nil
}

// plug returns the attachment of a Pod. It calls Plug only if this run of the agent has not yet plugged the Pod.
func (l *local) plug(ctx context.Context, network Network, pod Pod) (Attachment, error) {
	l.mu.Lock()
	attachment, ok := l.plugged[pod]
	l.mu.Unlock()
	if ok {
		return attachment, nil
	}
	attachment, err := network.Plug(ctx, pod)
	if err != nil {
		return attachment, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.plugged[pod] = attachment
	return attachment, nil
}

// unplug discards the attachment first because it is invalid once Unplug has started.
func (l *local) unplug(ctx context.Context, network Network, pod Pod) error {
	l.mu.Lock()
	delete(l.plugged, pod)
	l.mu.Unlock()
	return network.Unplug(ctx, pod)
}
