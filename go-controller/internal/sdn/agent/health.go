// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"encoding/json"
	"net/netip"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/sdn/revision"
)

// health answers gRPC health checks (grpc.health.v1). The service "" is the agent itself. For other services see
// revision.ServiceName.
type health struct {
	mu sync.Mutex
	// unfit is why the node must not hold addresses, or empty.
	unfit string
	// version is the version of the Node that has been applied. failed contains the errors of addresses in it.
	version string
	failed  map[netip.Addr]string
	// fingerprint is that of failed, computed once: clients may check the health as often as they like.
	fingerprint string
	// announced is true once a health check was answered with the agent's termination.
	announced bool
	// changed is closed and replaced on each change.
	changed chan struct{}
}

func newHealth() *health { return &health{changed: make(chan struct{})} }

func (h *health) set(unfit, version string, failed map[netip.Addr]string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.unfit, h.version, h.failed, h.fingerprint = unfit, version, failed, revision.Fingerprint(failed)
	close(h.changed)
	h.changed = make(chan struct{})
}

// endAnnounced reports whether a health check was answered with the agent's termination. It is not known which client
// sent the check: in a healthy cluster, only the controller does.
func (h *health) endAnnounced() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.announced
}

// Check implements the unary check. Its answer about the agent itself has the header revision.FailedHeader.
func (h *health) Check(ctx context.Context, r *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	answer, _, err := h.answer(r.GetService())
	if r.GetService() == "" {
		h.mu.Lock()
		h.announced = h.announced || h.unfit == ends
		version, fingerprint := h.version, h.fingerprint
		h.mu.Unlock()
		if version != "" {
			// Without a client (in tests) there are no headers.
			_ = grpc.SetHeader(ctx, metadata.Pairs(revision.FailedHeader, fingerprint))
		}
	}
	return answer, err
}

// List implements the check of all named services, which is the agent itself.
func (h *health) List(context.Context, *healthpb.HealthListRequest) (*healthpb.HealthListResponse, error) {
	answer, _, err := h.answer("")
	if err != nil { // Check returns the reason
		answer = &healthpb.HealthCheckResponse{Status: healthpb.HealthCheckResponse_NOT_SERVING}
	}
	return &healthpb.HealthListResponse{Statuses: map[string]*healthpb.HealthCheckResponse{"": answer}}, nil
}

// Watch implements the streaming check.
func (h *health) Watch(r *healthpb.HealthCheckRequest,
	stream grpc.ServerStreamingServer[healthpb.HealthCheckResponse]) error {
	last := healthpb.HealthCheckResponse_UNKNOWN
	for {
		answer, changed, err := h.answer(r.GetService())
		if err != nil {
			return err
		}
		if now := answer.GetStatus(); now != last {
			last = now
			if err := stream.Send(answer); err != nil {
				return err
			}
		}
		select {
		case <-stream.Context().Done():
			return status.FromContextError(stream.Context().Err()).Err()
		case <-changed:
		}
	}
}

// answer returns the current status and a channel that is closed when the status may have changed. If addresses
// failed, it returns an error whose message contains the reasons by address, as JSON.
func (h *health) answer(service string) (*healthpb.HealthCheckResponse, <-chan struct{}, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if service == "" {
		if h.unfit != "" {
			return nil, nil, status.Error(codes.FailedPrecondition, h.unfit)
		}
		return &healthpb.HealthCheckResponse{Status: healthpb.HealthCheckResponse_SERVING}, h.changed, nil
	}
	version, ok := revision.Version(service)
	switch {
	case !ok:
		return nil, nil, status.Errorf(codes.NotFound, "service %q is unknown", service)
	case !revision.Newer(version, h.version):
		if len(h.failed) > 0 {
			text, err := failures(h.failed)
			if err != nil {
				return nil, nil, status.Error(codes.Internal, err.Error())
			}
			return nil, nil, status.Error(codes.FailedPrecondition, string(text))
		}
		return &healthpb.HealthCheckResponse{Status: healthpb.HealthCheckResponse_SERVING}, h.changed, nil
	}
	return &healthpb.HealthCheckResponse{Status: healthpb.HealthCheckResponse_NOT_SERVING}, h.changed, nil
}

// maxReason is the maximum length of the reason of one address, in bytes. The controller shows no more. If there are
// many addresses, their reasons are shorter.
const maxReason = 256

// minReason is the length below which reasons are not shortened: each address must have one.
const minReason = 16

// failures returns reasons by address as JSON that the controller accepts (revision.MaxMessage).
func failures(failed map[netip.Addr]string) ([]byte, error) {
	short := make(map[netip.Addr]string, len(failed))
	for most := maxReason; ; most /= 2 {
		for a, why := range failed {
			short[a] = convert.Truncate(why, most)
		}
		text, err := json.Marshal(short)
		if err != nil || revision.EncodedLen(text) <= revision.MaxMessage || most <= minReason {
			return text, err
		}
	}
}
