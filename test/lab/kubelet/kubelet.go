// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"golang.org/x/sync/errgroup"
)

const (
	// NodeLabel marks the Nodes that this agent serves, with value "true".
	NodeLabel = "lab.slb/node"
	// ReadyAnnotation makes a running Pod not Ready, with value "false".
	ReadyAnnotation = "lab.slb/ready"

	workers = 4
	// resync is the interval at which each Pod is synced without an event. It restarts responders that have exited.
	resync = 10 * time.Second
	// retryFirst and retryMost bound the exponential backoff after a failure.
	retryFirst, retryMost = 50 * time.Millisecond, 5 * time.Second
)

// Pod identifies a Pod to the Network.
type Pod struct {
	Namespace   string    `json:"namespace"`
	Name        string    `json:"name"`
	UID         types.UID `json:"uid"`
	Node        string    `json:"node"`
	HostNetwork bool      `json:"hostNetwork,omitempty"`
}

// Attachment describes how a Pod is connected.
type Attachment struct {
	// Netns is the network namespace of the Pod's processes, by its name in ip-netns(8).
	Netns string
	// IPs are the Pod's addresses, at most one per family, that of the cluster's primary family first.
	IPs []netip.Addr
}

// Network connects Pods. Its methods are called concurrently for different Pods, but never concurrently for the same
// Pod.
type Network interface {
	// Plug creates the Pod's namespace with its link and addresses. For a Pod with HostNetwork it returns the namespace of
	// the node. It is idempotent: a restarted agent calls it once for each Pod, and it returns the existing attachment.
	Plug(ctx context.Context, pod Pod) (Attachment, error)
	// Unplug reverts Plug, including a partial one. It returns nil if there is nothing to revert. The Pod's responder has
	// exited before.
	Unplug(ctx context.Context, pod Pod) error
}

// Options configures an agent. All fields are required.
type Options struct {
	Client  kubernetes.Interface
	Network Network
	// Dir contains one directory per Pod with the record and the log of its responder.
	Dir string
	// Responder is the command that calls [responder.Main] with the arguments that the agent appends.
	Responder []string
}

type agent struct {
	Options
	pods  corelisters.PodLister
	nodes corelisters.NodeLister
	queue workqueue.TypedRateLimitingInterface[cache.ObjectName]
	local *local
	sched scheduler
}

// Run serves Pods until the context is done. Failures of single Pods are logged and retried. An error is returned only
// if no Pod can be served.
func Run(ctx context.Context, options Options) error {
	if options.Client == nil || options.Network == nil || options.Dir == "" || len(options.Responder) == 0 {
		return fmt.Errorf("node agent: options %+v: want all fields", options)
	}
	local, err := openLocal(options.Dir)
	if err != nil {
		return fmt.Errorf("node agent: %w", err)
	}
	factory := informers.NewSharedInformerFactory(options.Client, resync)
	pods, nodes := factory.Core().V1().Pods(), factory.Core().V1().Nodes()
	a := &agent{
		Options: options, local: local, pods: pods.Lister(), nodes: nodes.Lister(),
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](retryFirst, retryMost)),
	}
	_, podErr := pods.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    a.enqueue,
		UpdateFunc: func(_, now any) { a.enqueue(now) },
		DeleteFunc: a.enqueue,
	})
	_, nodeErr := nodes.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { a.enqueueAll(ctx) },
		UpdateFunc: func(old, now any) {
			if old.(*corev1.Node).ResourceVersion != now.(*corev1.Node).ResourceVersion {
				a.enqueueAll(ctx)
			}
		},
	})
	if err := errors.Join(podErr, nodeErr); err != nil {
		return fmt.Errorf("node agent: %w", err)
	}
	factory.StartWithContext(ctx)
	defer factory.Shutdown()
	if !cache.WaitForCacheSync(ctx.Done(), pods.Informer().HasSynced, nodes.Informer().HasSynced) {
		return nil // The context is done.
	}
	for _, key := range local.keys() { // Some of these may be deleted, for which there is no event.
		a.queue.Add(key)
	}
	return a.work(ctx)
}

func (a *agent) work(ctx context.Context) error {
	stop := context.AfterFunc(ctx, a.queue.ShutDown)
	defer stop()
	var group errgroup.Group
	for range workers {
		group.Go(func() error {
			for a.next(ctx) {
			}
			return nil
		})
	}
	return group.Wait()
}

func (a *agent) next(ctx context.Context) bool {
	key, shutdown := a.queue.Get()
	if shutdown {
		return false
	}
	defer a.queue.Done(key)
	if err := a.sync(ctx, key); err != nil {
		if ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Pod not served, will be tried again", "pod", key)
		}
		a.queue.AddRateLimited(key)
		return true
	}
	a.queue.Forget(key)
	return true
}

func (a *agent) enqueue(object any) {
	if key, err := cache.DeletionHandlingObjectToName(object); err == nil {
		a.queue.Add(key)
	}
}

// enqueueAll enqueues all Pods. It is called for changes of Nodes, which are rare: any of them may make a Node eligible
// for a pending Pod, or change the readiness of a Pod.
func (a *agent) enqueueAll(ctx context.Context) {
	pods, err := a.pods.List(everything())
	if err != nil {
		klog.FromContext(ctx).Error(err, "Pods not listed")
	}
	for _, pod := range pods {
		a.enqueue(pod)
	}
}

func podOf(pod *corev1.Pod) Pod {
	return Pod{
		Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID,
		Node: pod.Spec.NodeName, HostNetwork: pod.Spec.HostNetwork,
	}
}
