#!/usr/bin/env bash
# The main job, with real parts: a Service gets an address, clients outside the cluster reach it,
# the gateway that answers for it is killed under load, and the clients go on.
# KEEP=1 leaves the lab up. Everything it runs is printed, so that you can run it yourself.
# An exit that is not a success says what the script waited for and what it saw instead.
set -euo pipefail
set -o errtrace # functions and command substitutions name the line that failed, too
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
reason="interrupted"
fail() { reason=$*; exit 1; }
await() { # await WHAT COMMAND...: until COMMAND succeeds, 2 min at most, as in test/await. What it prints last was seen.
	local what=$1 deadline=$((SECONDS + 120))
	shift
	until "$@" >"$work/seen" 2>&1; do
		((SECONDS < deadline)) || fail "waited 2 min for: $what
  $*
  saw: $(sed '1!s/^/    /' "$work/seen")"
		read -rt 0.2 <> <(:) || true
	done
}
condition() { "${lab[@]}" kubectl get service web -o "jsonpath={.status.conditions[?(@.type=='slb.k8s.ovn.org/$1')]['status','message']}"; }

# What is awaited; each prints what it sees.
announced() {
	local seen
	seen=$(condition Announced)
	echo "condition Announced of Service web: ${seen:-not set}"
	[[ $seen == True* ]]
}
balancers() { "${lab[@]}" nbctl --bare "--columns=$1" find Load_Balancer external_ids:slb.k8s.ovn.org/service=default/web "${@:2}"; }
serving() {
	local vips
	vips=$(balancers vips protocol=tcp)
	echo "backends on port 8080 in the rows of Service web: $(grep -o ':8080' <<<"$vips" | wc -l) of 12, 6 for each address"
	[[ $(grep -o ':8080' <<<"$vips" | wc -l) -eq 12 ]]
}
holders() { # the routers that the load balancers of Service web are on, one per line
	local row
	for row in $(balancers _uuid); do
		"${lab[@]}" nbctl get Load_Balancer "$row" external_ids:slb.k8s.ovn.org/holder
	done | tr -d '"' | sort -u
}
active() { # the node that the shard's router is on now; nothing while there is none
	local chassis
	chassis=$("${lab[@]}" sbctl --bare --columns=chassis find Port_Binding "logical_port=cr-$shard-ext")
	[[ -z $chassis ]] || "${lab[@]}" sbctl --bare --columns=hostname list Chassis "$chassis"
}
carried() { # carried [NOT]: by some node, other than NOT
	local now
	now=$(active)
	echo "port cr-$shard-ext is on ${now:-no chassis}"
	[[ -n $now && $now != "${1:-}" ]]
}
loaded() {
	echo "the load's output so far: $(head -c 500 "$work/results")"
	grep -q complete "$work/results"
}

failed() { # failed STATUS LINE COMMAND
	((BASH_SUBSHELL > 0)) || reason="line $2 of contrib/demo.sh ended with exit status $1: $3"
}
trap 'failed $? "$LINENO" "$BASH_COMMAND"' ERR
end() {
	local status=$?
	trap - ERR
	set +e
	if ((status != 0)); then
		say "The demo failed. What there is:" >&2
		for look in "status" "kubectl get services,ipaddresspools,l2domains,pods -o wide" "sbctl show"; do
			# shellcheck disable=SC2086 # Words of a command.
			show $look 2>&1 | tail -n 40 >&2
		done
		echo "The end of the controller's log:" >&2
		tail -n 20 "/run/ovnkube-slb-lab/$LAB_NAME/started/controller.log" >&2
		printf '\ndemo: failed after %s s with exit status %s: %s\n' $((SECONDS - started)) "$status" "$reason" >&2
	fi
	rm -rf "$work"
	if [[ -z ${KEEP:-} ]]; then
		"${lab[@]}" down
		return
	fi
	cat <<TXT

The lab stays up. Look around (as root):
  export LAB_NAME=$LAB_NAME PATH=$PWD/_output/bin:\$PATH
  lab status                                        nodes, who carries which shard, namespaces
  lab kubectl get services,ipaddresspools,l2domains
  lab nbctl show                                    OVN's northbound database; ours are named slb-...
  lab exec client -- curl http://${vip4:-VIP}/      from the segment; 'remote' is behind the router
  lab probe --from client udp-flow://${vip4:-VIP}:53 tcp-long://${vip4:-VIP}:80
  lab kill ${heir:-n1}; lab restore ${heir:-n1}; lab drain ${heir:-n1}; lab link-down ${heir:-n1}
  lab down                                          leaves nothing
TXT
}

say "A cluster from real parts: etcd, API server, OVN, three nodes, a router, clients"
trap end EXIT
"${lab[@]}" down >/dev/null # of an earlier run
"${lab[@]}" up

say "ovnkube-slb, installed by its manifests, with the rights that they give it"
show install dist/manifests/base _output/bin/ovnkube-slb
show kubectl get crd -o name

say "Addresses to give, the segment they live on, and a Service of type LoadBalancer"
# The segment of this lab has an interface and a bridge of its own on each node, network "provider".
sed 's/physicalNetwork: physnet/physicalNetwork: provider/' docs/examples/l2domain.yaml >"$work/l2domain.yaml"
show kubectl apply -f docs/examples/pool.yaml -f "$work/l2domain.yaml" -f docs/examples/web.yaml
await "an announced Service" announced
show kubectl get service web
read -r vip4 vip6 <<<"$("${lab[@]}" kubectl get service web -o 'jsonpath={.status.loadBalancer.ingress[*].ip}')"
printf 'Allocated: %s\nAnnounced: %s\n' "$(condition Allocated)" "$(condition Announced)"
"${lab[@]}" kubectl rollout status deployment/web --timeout=2m >/dev/null
await "load balancer rows with all backends" serving
show kubectl get pods -o wide

say "What OVN holds"
shard=$(holders)
[[ $shard == slb-* && $shard != *$'\n'* ]] || fail "waited for one router of a shard with the load balancers of Service web, saw: ${shard:-none}"
show nbctl --columns=name,mac,networks find Logical_Router_Port "name=$shard-ext"
show nbctl --columns=chassis_name,priority find HA_Chassis external_ids:k8s.ovn.org/owner-controller=ovnkube-slb
show nbctl lr-lb-list "$shard"
show nbctl lr-policy-list ovn_cluster_router | grep -E 'Routing|700'

say "What a client on the segment sees: one MAC address, by ARP and by neighbour discovery"
for vip in "$vip4" "$vip6"; do
	await "an answer to ping from $vip" "${lab[@]}" exec client -- ping -c1 -W1 "$vip"
	show exec client -- ip neigh show "$vip"
done

say "Reached from the segment and from beyond the router; the pod sees the client's own address"
for from in client remote; do
	for vip in "$vip4" "[$vip6]"; do
		await "an answer from http://$vip/ at $from" "${lab[@]}" exec "$from" -- curl -sfm1 "http://$vip/"
		show exec "$from" -- curl -s "http://$vip/"
	done
done

await "a gateway that carries the shard" carried
victim=$(active)
say "The gateway $victim answers. Killing its Open vSwitch and ovn-controller (SIGKILL), under load"
streams=("udp-flow://$vip4:53*12" "tcp-long://$vip4:80*12" "udp-flow://[$vip6]:53*12" "tcp-long://[$vip6]:80*12")
"${lab[@]}" probe --from client --duration 300ms "${streams[@]}" >/dev/null # opens the tunnels
"${lab[@]}" probe --from client --duration 8s --json "${streams[@]}" >"$work/results" &
load=$!
await "a first answer to every flow of the load" loaded
show kill "$victim"
await "another gateway that carries the shard" carried "$victim"
heir=$(active)
echo "$heir answers now"
wait "$load" || fail "the load ended with exit status $?, and said: $(cat "$work/results")"

dead=$("${lab[@]}" kubectl get pods -l app=web -o json | jq --arg n "$victim" '[.items[] | select(.spec.nodeName == $n) | .metadata.name]')
say "What the client saw (flows to pods on $victim itself are left out: those pods died with it)"
grep '^\[' "$work/results" | jq -r --argjson dead "$dead" '
	def ms: . / 1e6 | floor;
	.[] | (.flows | map(select(.backend as $b | $dead | index($b) | not))) as $alive |
	if .spec.kind == "udp-flow" then
		"  UDP  \(.spec.target): \($alive | length) flows at 100 Hz each, longest gap \($alive | map(.gap) | max | ms) ms"
	else
		"  TCP  \(.spec.target): \($alive | map(select(.broken == null)) | length) of \($alive | length) open connections went on, longest stall \($alive | map(.stall) | max | ms) ms"
	end'
summary=$(grep '^\[' "$work/results" | jq -r --argjson dead "$dead" '
	[.[] | .spec.kind as $k | .flows[] | select(.backend as $b | $dead | index($b) | not) | . + {kind: $k}] |
	{gap: (map(select(.kind == "udp-flow") | .gap) | max / 1e6 | floor),
	 open: (map(select(.kind == "tcp-long")) | length), broken: (map(select(.broken != null)) | length)} |
	"\(.gap) \(.open) \(.broken)"')
read -r gap open broken <<<"$summary"

say "Result, after $((SECONDS - started)) s"
echo "gateway $victim killed, $heir took over: gap $gap ms; $((open - broken)) of $open open TCP connections went on"
# The gap depends on how busy this machine is; mostly it is 0.6 s. What must hold on any machine is no lost connection.
((open > 0)) || fail "waited for open TCP connections to pods that live on, saw none"
((broken == 0)) || fail "waited for no broken connection, saw $broken"
