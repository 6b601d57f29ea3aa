# Every target is one call of a tool or a script; `make help` lists them.
SHELL := /bin/bash
.DEFAULT_GOAL := help

OUT        := _output
BIN        := $(OUT)/bin
SLB_CACHE  ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/ovnkube-slb
LINTER     := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.14.0
VERSION    ?= $(shell git describe --always --dirty 2>/dev/null || echo dev)
LDFLAGS    := -s -w -X main.version=$(VERSION)
# The lab makes network namespaces: tests that need it run as root, all else runs as you.
ROOT       := $(if $(filter 0,$(shell id -u)),,-exec "sudo -E")
FUZZTIME   ?= 30s
# `make lint` has vet, and a test needs no debugger's tables: half of the work of a level is to build its tests.
GOTEST     := go test -vet=off -ldflags='-s -w'
# How many labs a suite of the lab uses at a time: a lab mostly waits.
PROCS      ?= 2
export SLB_CACHE

.PHONY: help setup build controlplane frr-k8s frr-k8s-newest demo test nightly unit scenario contract smoke e2e e2e-central e2e-interconnect \
	e2e-ovnkube e2e-ovnkube-br-ex e2e-ovnkube-br-ex-local e2e-ovnkube-interconnect e2e-ovnkube-bgp e2e-ovnkube-lan \
	e2e-ovnkube-provider e2e-ovnkube-shared containers golden fuzz bench bench-allocation bench-bgp bench-frr-k8s bench-datapath \
	bench-failover bench-scale bench-scale-zones bench-sdn lint fmt generate verify images release release-test site check clean dashboard

help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-17s %s\n", $$1, $$2}'

setup: ## install the packages that the lab and the tests need (apt, sudo)
	@contrib/setup.sh

build: ## the controller, and the lab's command, into _output/bin
	CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN)/ ./go-controller/cmd/... ./test/lab/cmd/...

controlplane: build ## etcd, kube-apiserver and the like into the cache, from source (minutes, once)
	@$(BIN)/lab binaries

frr-k8s: ## frr-k8s' programs into the cache, from its Go module (minutes, once)
	@for p in frr-k8s-controller status statuscleaner; do \
		contrib/frr-k8s.sh $$p -h >/dev/null 2>&1 || contrib/frr-k8s.sh $$p -h || exit; done

demo: setup controlplane ## a Service reachable through OVN, its gateway killed, in the lab (KEEP=1 leaves it up)
	@contrib/demo.sh

test: setup controlplane frr-k8s ## the four levels of CONTRIBUTING.md: unit, scenario, contract, smoke
	@contrib/levels.sh unit scenario contract smoke

nightly: setup controlplane ## everything that `make test` leaves out; takes hours
	@contrib/levels.sh e2e-central e2e-interconnect frr-k8s-newest containers release-test e2e-ovnkube

unit: ## pure packages, goldens, fuzz seeds, virtual clocks: needs Go alone
	$(GOTEST) -short $$(go list ./go-controller/... ./test/... | grep -v /go-controller/test/scenario)

scenario: ## controller and agents in one process, on a virtual clock, against an API with real admission
	$(GOTEST) -timeout 3m ./go-controller/test/scenario/...

# GOGC: a sixth of this level's CPU time was garbage collection in API servers and in kubectl.
contract: controlplane frr-k8s ## what only a real daemon shows: ovsdb-server, ovn-northd, kube-apiserver, FRR, the kernel
	SLB_BIN=$(CURDIR)/$(BIN) GOGC=400 $(GOTEST) -count=1 -p 4 -parallel 5 -timeout 20m $(ROOT) $$(contrib/contract.sh)

# FRR 10.3 may refuse configuration for good after a reload: its management daemon keeps a datastore locked when vtysh
# ends. The locks are others from 10.6 on.
frr-k8s-newest: controlplane frr-k8s ## our routes by frr-k8s on the newest FRR of the cache
	SLB_BIN=$(CURDIR)/$(BIN) LAB_FRR_PREFIX=$(patsubst %/bin/vtysh,%,$(lastword $(sort $(wildcard $(SLB_CACHE)/frr-*/bin/vtysh)))) \
		$(GOTEST) -count=1 $(ROOT) -run TestServiceReachesARouter ./go-controller/test/frrk8s

# Suites of the lab. LABELS, FOCUS and SKIP select specs, LAB_OVN_PREFIX the OVN.
smoke: controlplane ## the core features end to end in the lab, central mode and interconnect side by side
	@$(MAKE) --no-print-directory -j2 -Otarget smoke-central smoke-interconnect

smoke-%: controlplane
	@$(call E2E_ON,model,$*,shared,provider,--procs=1 --label-filter=smoke)

e2e: e2e-central e2e-interconnect ## all features end to end on the model of OVN-Kubernetes, in central mode and with interconnect

e2e-central e2e-interconnect: e2e-%: controlplane
	@$(call E2E_ON,model,$*,shared,provider)

e2e-ovnkube: e2e-ovnkube-br-ex e2e-ovnkube-br-ex-local e2e-ovnkube-interconnect e2e-ovnkube-bgp e2e-ovnkube-provider e2e-ovnkube-lan e2e-ovnkube-shared ## end to end on OVN-Kubernetes itself: OVNKUBE, OVNKUBE_CRDS and LAB_OVN_PREFIX say where it is

e2e-ovnkube-br-ex: controlplane
	@$(call E2E_ON,ovnkube,interconnect,shared,lan)

e2e-ovnkube-br-ex-local: controlplane
	@$(call E2E_ON,ovnkube,interconnect,local,lan)

e2e-ovnkube-interconnect: controlplane
	@$(call E2E_ON,ovnkube,interconnect,shared,provider)

e2e-ovnkube-bgp: controlplane
	@$(call E2E_ON,ovnkube,interconnect,local,provider,--label-filter='without layer 2')

e2e-ovnkube-provider: controlplane
	@$(call E2E_ON,ovnkube,central,shared,provider)

e2e-ovnkube-lan: controlplane
	@$(call E2E_ON,ovnkube,central,local,lan)

e2e-ovnkube-shared: controlplane
	@$(call E2E_ON,ovnkube,central,shared,lan)

# The features on a network in a mode, with gateways in a mode, on a segment, with flags of ginkgo.
E2E_ON = E2E_TARGET=$(1) E2E_MODE=$(2) E2E_GATEWAY=$(3) E2E_SEGMENT=$(4) SLB_BIN=$(CURDIR)/$(BIN) contrib/e2e.sh \
	--procs=$(PROCS) $(if $(LABELS),--label-filter='$(LABELS)') $(5) $(if $(FOCUS),--focus='$(FOCUS)') $(if $(SKIP),--skip='$(SKIP)')

golden: ## rewrite the goldens from what the code says now; read the diff before you commit it
	go test ./go-controller/internal/{bfd,bgp,explain,ipam,place,plan,preview,sdn,ovn/rows} -run Golden -update
	go test ./go-controller/test/scenario -update

fuzz: ## each fuzz target for FUZZTIME
	@contrib/fuzz.sh $(FUZZTIME)

bench: ## benchmarks of the pure core
	go test ./go-controller/internal/... -run '^$$' -bench . -benchmem

bench-allocation: controlplane ## how fast Services get addresses, on a real API server
	go run ./test/bench/allocation --controller $(BIN)/ovnkube-slb --out $(OUT)/bench/allocation.json

bench-bgp: ## how fast routes get into a router's kernel and out of it, beside FRR as the speaker; what clients notice when a node's link is lost, or its daemon
	go build -o $(BIN)/bgp-bench ./go-controller/test/bgp/bench
	$(if $(ROOT),sudo -E) $(BIN)/bgp-bench --out $(OUT)/bench/bgp.json

bench-frr-k8s: controlplane frr-k8s ## the same for frr-k8s beside our BGP daemon, and where it stops being useful; up to an hour
	go build -o $(BIN)/bgp-bench ./go-controller/test/bgp/bench
	$(if $(ROOT),sudo -E) $(BIN)/bgp-bench --frr-k8s --out $(OUT)/bench/frr-k8s.json

bench-datapath: build ## throughput, requests and new connections by the VIP beside the NodePort and the pods, and what a flood costs other pods; 5 minutes
	go run ./test/bench/datapath --controller $(BIN)/ovnkube-slb --lab $(BIN)/lab --out $(OUT)/bench/datapath.json

bench-failover: build ## what clients notice when a gateway is lost or leaves, in the lab; takes about half an hour
	go run ./test/bench/failover --controller $(BIN)/ovnkube-slb --lab $(BIN)/lab --out $(OUT)/bench/failover.json

bench-sdn: controlplane ## what clients notice with OpenShift SDN when a node is lost or drains; takes a few minutes
	go build -o $(BIN)/sdn-bench ./go-controller/test/sdn/bench
	$(if $(ROOT),sudo -E) $(BIN)/sdn-bench --controller $(abspath $(BIN))/ovnkube-slb --out $(OUT)/bench/sdn.json

bench-scale: controlplane ## a change beside 10,000 Services and 2,000 nodes, with ovn-northd
	go run ./test/bench/scale --controller $(BIN)/ovnkube-slb --out $(OUT)/bench/scale.json

bench-scale-zones: controlplane ## the same with interconnect: the agents of two nodes, and what they cost the API server
	go run ./test/bench/scale --interconnect --controller $(BIN)/ovnkube-slb --out $(OUT)/bench/scale-zones.json

lint: ## golangci-lint with the architecture rules
	@contrib/lint.sh $(LINTER) run ./...

fmt: ## gofmt and import order
	@contrib/lint.sh $(LINTER) fmt ./...

generate: ## deepcopy, CRDs, the bundle, docs/reference, database models
	@contrib/generate.sh

verify: ## what is generated is what is committed, and each lint rule still bites
	@contrib/verify.sh $(LINTER)

check: lint verify unit scenario ## what to run before a commit

dashboard: controlplane ## docs/dashboard.svg: the panels of dist/monitoring/dashboard.json while the tests of the alerts run
	E2E_DASHBOARD=$(CURDIR)/docs/dashboard.svg SLB_BIN=$(CURDIR)/$(BIN) contrib/e2e.sh --focus='Alerts and dashboard'

site: ## the pages of docs/ as a website, into _output/site (mkdocs and mkdocs-material)
	mkdocs build --strict --config-file contrib/mkdocs.yml

images: ## the images of all architectures as one manifest list (buildah, podman or docker)
	@contrib/images.sh $(VERSION)

release: ## all files of VERSION into _output/release: manifests, chart, images, plugins, checksums
	@contrib/release.sh $(VERSION)

release-test: ## the images, the files of a release, and the chart
	go test -count=1 -timeout 30m $(ROOT) ./test/release ./test/chart

containers: controlplane ## the shim of OpenShift SDN in containers
	SLB_BIN=$(CURDIR)/$(BIN) go test -count=1 -timeout 20m $(ROOT) ./go-controller/test/container

clean: ## remove what was built (the cache of control plane binaries stays)
	rm -rf $(OUT)
