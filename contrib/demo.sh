#!/usr/bin/env bash
# The main job, with real parts: a Service gets an address, clients outside the cluster reach it,
# the gateway that answers for it is killed under load, and the clients go on.
# KEEP=1 leaves the lab up. Everything it runs is printed, so that you can run it yourself.
set -euo pipefail
cd "$(dirname "$0")/.."
export LAB_NAME=${LAB_NAME:-demo}
lab=(_output/bin/lab)
[[ $(id -u) -eq 0 ]] || lab=(sudo -E "${lab[@]}")
started=$SECONDS
work=$(mktemp -d)

say() { printf '\n\033[1m== %s\033[0m\n' "$*"; }
show() { # the command as a person would type it, then what it prints
	printf '\033[2m$ lab %s\033[0m\n' "$*"
	"${lab[@]}" "$@"
}
await() { # await COMMAND...: until it succeeds, 30 s at most
	local deadline=$((SECONDS + 30))
	until "$@" >"$work/await" 2>&1; do
		((SECONDS < deadline)) || { cat "$work/await" >&2; echo "gave up after 30 s: $*" >&2; return 1; }
		read -rt 0.2 <> <(:) || true
	done
}
condition() { "${lab[@]}" kubectl get service web -o "jsonpath={.status.conditions[?(@.type=='slb.k8s.ovn.org/$1')]['status','message']}"; }
announced() { [[ $(condition Announced) == True* ]]; }
serving() { [[ $("${lab[@]}" nbctl --bare --columns=vips find Load_Balancer external_ids:slb.k8s.ovn.org/service=default/web protocol=tcp | grep -o ':8080' | wc -l) -eq 12 ]]; }
end() {
	local status=$?
	rm -rf "$work"
	if [[ -n ${KEEP:-} && $status -eq 0 ]]; then
		cat <<TXT

The lab stays up. Look around (as root):
  export LAB_NAME=$LAB_NAME PATH=$PWD/_output/bin:\$PATH
  lab status                                        nodes, who carries which shard, namespaces
  lab kubectl get services,ipaddresspools,l2domains
  lab nbctl show                                    OVN's northbound database; ours are named slb-...
  lab exec client -- curl http://$vip4/      from the segment; 'remote' is behind the router
  lab probe --from client udp-flow://$vip4:53 tcp-long://$vip4:80
  lab kill $heir; lab restore $heir; lab drain $heir; lab link-down $heir
  lab down                                          leaves nothing
TXT
	else
		"${lab[@]}" down
	fi
}

say "A cluster from real parts: etcd, API server, OVN, three nodes, a router, clients"
trap end EXIT
"${lab[@]}" down >/dev/null # of an earlier run
"${lab[@]}" up

say "ovnkube-slb, installed by its manifests, with the rights that they give it"
show install dist/manifests/base _output/bin/ovnkube-slb
show kubectl get crd -o name

say "Addresses to give, the segment they live on, and a Service of type LoadBalancer"
show kubectl apply -f docs/examples/pool.yaml -f docs/examples/l2domain.yaml -f docs/examples/web.yaml
await announced
show kubectl get service web
read -r vip4 vip6 <<<"$("${lab[@]}" kubectl get service web -o 'jsonpath={.status.loadBalancer.ingress[*].ip}')"
printf 'Allocated: %s\nAnnounced: %s\n' "$(condition Allocated)" "$(condition Announced)"
"${lab[@]}" kubectl rollout status deployment/web --timeout=30s >/dev/null
await serving
show kubectl get pods -o wide

say "What OVN holds"
shard=$("${lab[@]}" nbctl --bare --columns=name find Logical_Router external_ids:k8s.ovn.org/owner-controller=ovnkube-slb | head -1)
show nbctl --columns=name,mac,networks find Logical_Router_Port "name=$shard-ext"
show nbctl --columns=chassis_name,priority find HA_Chassis external_ids:k8s.ovn.org/owner-controller=ovnkube-slb
show nbctl lr-lb-list "$shard"
show nbctl lr-policy-list ovn_cluster_router | grep -E 'Routing|700'

say "What a client on the segment sees: one MAC address, by ARP and by neighbour discovery"
for vip in "$vip4" "$vip6"; do
	await "${lab[@]}" exec client -- ping -c1 -W1 "$vip"
	show exec client -- ip neigh show "$vip"
done

say "Reached from the segment and from beyond the router; the pod sees the client's own address"
for from in client remote; do
	for vip in "$vip4" "[$vip6]"; do
		await "${lab[@]}" exec "$from" -- curl -sfm1 "http://$vip/"
		show exec "$from" -- curl -s "http://$vip/"
	done
done

active() {
	local chassis
	chassis=$("${lab[@]}" sbctl --bare --columns=chassis find Port_Binding "logical_port=cr-$shard-ext")
	[[ -n $chassis ]] && "${lab[@]}" sbctl --bare --columns=hostname list Chassis "$chassis"
}
moved() { local now; now=$(active) && [[ -n $now && $now != "$victim" ]]; }
victim=$(active)
say "The gateway $victim answers. Killing its Open vSwitch and ovn-controller (SIGKILL), under load"
streams=("udp-flow://$vip4:53*12" "tcp-long://$vip4:80*12" "udp-flow://[$vip6]:53*12" "tcp-long://[$vip6]:80*12")
"${lab[@]}" probe --from client --duration 300ms "${streams[@]}" >/dev/null # opens the tunnels
"${lab[@]}" probe --from client --duration 6s --json "${streams[@]}" >"$work/results" &
load=$!
await grep -q answered "$work/results"
show kill "$victim"
await moved
heir=$(active)
echo "$heir answers now"
wait "$load"

dead=$("${lab[@]}" kubectl get pods -l app=web -o json | jq --arg n "$victim" '[.items[] | select(.spec.nodeName == $n) | .metadata.name]')
say "What the client saw (flows to pods on $victim itself are left out: those pods died with it)"
sed 1d "$work/results" | jq -r --argjson dead "$dead" '
	def ms: . / 1e6 | floor;
	.[] | (.flows | map(select(.backend as $b | $dead | index($b) | not))) as $alive |
	if .spec.kind == "udp-flow" then
		"  UDP  \(.spec.target): \($alive | length) flows at 100 Hz each, longest gap \($alive | map(.gap) | max | ms) ms"
	else
		"  TCP  \(.spec.target): \($alive | map(select(.broken == null)) | length) of \($alive | length) open connections went on, longest stall \($alive | map(.stall) | max | ms) ms"
	end'
summary=$(sed 1d "$work/results" | jq -r --argjson dead "$dead" '
	[.[] | .spec.kind as $k | .flows[] | select(.backend as $b | $dead | index($b) | not) | . + {kind: $k}] |
	{gap: (map(select(.kind == "udp-flow") | .gap) | max / 1e6 | floor),
	 open: (map(select(.kind == "tcp-long")) | length), broken: (map(select(.broken != null)) | length)} |
	"\(.gap) \(.open) \(.broken)"')
read -r gap open broken <<<"$summary"

say "Result, after $((SECONDS - started)) s"
echo "gateway $victim killed, $heir took over: gap $gap ms; $((open - broken)) of $open open TCP connections went on"
((gap < 1500 && broken == 0 && open > 0)) || { echo "that is not what we promise" >&2; exit 1; }
