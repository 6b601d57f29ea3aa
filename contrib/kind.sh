#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Performs the main job of `make demo` on kind with OVN-Kubernetes: attaches each node to a second segment, installs
# ovnkube-slb from dist/, and then a Service gets an address, the host reaches it, its gateway is paused, and the host
# reaches it again. Needs docker, kind, helm, kubectl, jq, curl, Go and internet access.
#
#   contrib/kind.sh CHECKOUT           starts kind and installs OVN-Kubernetes with the Helm chart of a checkout of it
#   KUBECONFIG=FILE contrib/kind.sh    uses a kind cluster that has OVN-Kubernetes
#   contrib/kind.sh down               removes the cluster that the first one started, and the segment
#
# OVN-Kubernetes' image is the published one that the chart names, or OVNKUBE_IMAGE: that of the checkout's release, as
# ghcr.io/ovn-kubernetes/ovn-kubernetes/ovn-kube-ubuntu:release-1.3. The cluster is kept; a second run continues where
# the first one stopped.
set -euo pipefail
checkout=${1:-}
[[ -z $checkout || $checkout == down ]] || checkout=$(realpath "$checkout")
cd "$(dirname "$0")/.."
cluster=ovnkube-slb
segment=ovnkube-slb-provider
namespace=ovn-kubernetes
image=ghcr.io/ovnkube-slb/ovnkube-slb

say() { printf '\n== %s\n' "$*"; }
fail() { printf 'kind.sh: %s\n' "$*" >&2; exit 1; }

for program in docker kind kubectl jq curl go; do
	command -v "$program" >/dev/null || fail "$program is not installed"
done
if [[ $checkout == down ]]; then
	kind delete cluster --name "$cluster"
	docker network rm "$segment"
	exit
fi

start_cluster() {
	local chart=$checkout/helm/ovn-kubernetes node api settings
	command -v helm >/dev/null || fail "helm is not installed"
	[[ -f $chart/Chart.yaml ]] || fail "$checkout has no helm/ovn-kubernetes: want a checkout of OVN-Kubernetes"
	if ! kind get clusters 2>/dev/null | grep -qx "$cluster"; then
		say "kind without a network: one control plane node and two workers"
		kind create cluster --name "$cluster" --kubeconfig "$KUBECONFIG" --config - <<-END
			kind: Cluster
			apiVersion: kind.x-k8s.io/v1alpha4
			networking: {disableDefaultCNI: true, kubeProxyMode: none, ipFamily: dual}
			nodes: [{role: control-plane}, {role: worker}, {role: worker}]
		END
	fi
	say "OVN-Kubernetes with interconnect, by the chart of $checkout"
	for node in $(kind get nodes --name "$cluster"); do # Releases up to 1.3 need the label.
		kubectl label node "$node" "k8s.ovn.org/zone-name=$node" --overwrite
	done
	api=$(docker inspect "$cluster-control-plane" | jq -r '.[0].NetworkSettings.Networks.kind.IPAddress')
	settings=(--set "k8sAPIServer=https://$api:6443" --set 'podNetwork=10.244.0.0/16/24\,fd00:10:244::/56/64'
		--set 'serviceNetwork=10.96.0.0/16\,fd00:10:96::/112'
		--set global.enableAdminNetworkPolicy=false) # The chart does not have its CRDs.
	[[ -z ${OVNKUBE_IMAGE:-} ]] ||
		settings+=(--set "global.image.repository=${OVNKUBE_IMAGE%:*}" --set "global.image.tag=${OVNKUBE_IMAGE##*:}")
	helm upgrade --install ovn-kubernetes "$chart" --values "$chart/values-single-node-zone.yaml" "${settings[@]}"
	kubectl wait --for=condition=Ready node --all --timeout=10m
}

mkdir -p _output
if [[ -n $checkout ]]; then
	export KUBECONFIG=$PWD/_output/kind.conf
	start_cluster
else
	[[ -n ${KUBECONFIG:-} ]] || fail "neither a checkout of OVN-Kubernetes nor KUBECONFIG: see the head of this script"
	node=$(kubectl get nodes -o 'jsonpath={.items[0].metadata.name}')
	cluster=$(docker inspect "$node" | jq -re '.[0].Config.Labels["io.x-k8s.kind.cluster"]') ||
		fail "node $node is not a container of kind"
fi
mapfile -t nodes < <(kind get nodes --name "$cluster")

say "a second segment, 10.50.0.0/24 and fd00:50::/64, on a bridge of its own on each node"
docker network inspect "$segment" >/dev/null 2>&1 ||
	docker network create --ipv6 --subnet 10.50.0.0/24 --subnet fd00:50::/64 --ip-range 10.50.0.240/28 "$segment" >/dev/null
for node in "${nodes[@]}"; do
	docker network inspect "$segment" | jq -e --arg node "$node" '.[0].Containers | any(.Name == $node)' >/dev/null ||
		docker network connect "$segment" "$node"
	mac=$(docker inspect "$node" | jq -r --arg segment "$segment" '.[0].NetworkSettings.Networks[$segment].MacAddress')
	link=$(docker exec "$node" ip -json link | jq -r --arg mac "$mac" '[.[] | select(.address == $mac and .ifname[:3] == "eth")][0].ifname')
	[[ $link != null ]] || fail "$node has no link with the MAC address $mac, which docker reports for network $segment"
	pod=$(kubectl -n "$namespace" get pods -l app=ovs-node --field-selector "spec.nodeName=$node" -o name)
	[[ -n $pod ]] || fail "no pod of DaemonSet ovs-node is on node $node"
	vsctl() { kubectl -n "$namespace" exec "$pod" -c ovs-daemons -- ovs-vsctl "$@"; }
	mappings=$(vsctl --if-exists get Open_vSwitch . external_ids:ovn-bridge-mappings | tr -d '"')
	[[ ,$mappings, == *,provider:br-provider,* ]] || mappings+=${mappings:+,}provider:br-provider
	vsctl --may-exist add-br br-provider -- --may-exist add-port br-provider "$link" \
		-- set Open_vSwitch . "external_ids:ovn-bridge-mappings=$mappings"
	docker exec "$node" ip addr flush dev "$link" # its addresses are of no use on a port of a bridge
done

say "ovnkube-slb from dist/"
CONTAINER_TOOL=docker contrib/images.sh kind "$(go env GOARCH)"
kind load docker-image "$image:kind" --name "$cluster"
parts=(interconnect)
if kubectl get nodes -o json | jq -e 'any(.items[].metadata.annotations; .["k8s.ovn.org/zone-name"] == "global")' \
	>/dev/null; then
	parts=(default node) # central mode
fi
for part in "${parts[@]}"; do
	kubectl kustomize "dist/manifests/$part" | sed "s|image: $image:.*|image: $image:kind|" | kubectl apply -f -
done
# Available means one of two replicas: there is only one control plane node.
kubectl -n "$namespace" wait --for=condition=Available deployment/ovnkube-slb --timeout=5m
kubectl -n "$namespace" rollout status daemonset/ovnkube-slb-node --timeout=5m

say "a Service gets an address"
kubectl apply -f docs/examples/pool.yaml -f docs/examples/web.yaml
sed 's/physicalNetwork: physnet/physicalNetwork: provider/' docs/examples/l2domain.yaml | kubectl apply -f -
kubectl rollout status deployment/web --timeout=5m
kubectl wait service/web --timeout=2m \
	--for=jsonpath='{.status.conditions[?(@.type=="slb.k8s.ovn.org/Announced")].status}'=True ||
	fail "Service web is not announced: $(kubectl get service web -o json | jq -c .status)"
mapfile -t addresses < <(kubectl get service web -o json | jq -r '.status.loadBalancer.ingress[].ip')
ask() { # ask: each address, from the host, which is on the segment as 10.50.0.1 and fd00:50::1
	local address
	for address in "${addresses[@]}"; do
		[[ $address != *:* ]] || address="[$address]"
		curl --fail --silent --show-error --max-time 2 "http://$address/hostname" && echo " answers at $address"
	done
}
ask || fail "an address of Service web does not answer, while its condition Announced is True"

active=$(kubectl get l2domain provider -o json | jq -r '[.status.shards[].active // empty][0] // empty')
[[ -n $active ]] || fail "no gateway is active: $(kubectl get l2domain provider -o json | jq -c .status)"
say "gateway $active is paused"
docker pause "$active" >/dev/null
trap 'docker unpause "$active" >/dev/null' EXIT
started=$(date +%s%N)
until ask 2>/dev/null; do
	(($(date +%s%N) - started < 30000000000)) || fail "an address of Service web does not answer 30 s after its gateway was paused"
done
echo "all addresses answered after $((($(date +%s%N) - started) / 1000000)) ms"
