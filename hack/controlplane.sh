#!/bin/sh
# Prints the folder that holds etcd, kube-apiserver, kube-controller-manager
# and kube-scheduler, and nothing else, on stdout. Progress goes to stderr.
#
# KUBEBUILDER_ASSETS names such a folder, as elsewhere in this ecosystem.
# Without it the four are built from their Go modules, once per version of
# controlplane/, into build/controlplane/ at the top of the repository.
set -eu

programs='etcd kube-apiserver kube-controller-manager kube-scheduler'
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
module=$here/controlplane
builds=$(dirname -- "$here")/build/controlplane
# Part of the cache key: raise it when the way of building below changes.
recipe=1

say() { printf 'control plane: %s\n' "$*" >&2; }
fail() {
    say "error: $*"
    exit 1
}

# The programs that the folder $1 lacks.
missing_in() {
    for program in $programs; do
        [ -x "$1/$program" ] || printf ' %s' "$program"
    done
}

digest() { if command -v sha256sum >/dev/null; then sha256sum; else shasum -a 256; fi; }

# The name of the cached folder: the version to read, the digest to be right.
version_key() {
    sum=$({ printf '%s\n' "$recipe"; cat "$module/go.mod" "$module/go.sum" "$module"/cmd/*/main.go; } | digest)
    printf '%s-%.12s' "$kubernetes" "$sum"
}

require_go() {
    ways='either install Go 1.26 or newer, or set KUBEBUILDER_ASSETS to a folder that holds'
    command -v go >/dev/null 2>&1 ||
        fail "cannot build the control plane of the tests: there is no \`go\` on PATH; $ways $programs"
    # The module states the release that it needs; an old go that may not fetch a newer one refuses here.
    refusal=$(cd "$module" && GOWORK=off go list -m 2>&1 >/dev/null) ||
        fail "cannot build the control plane of the tests: \`$(command -v go)\` says \`$refusal\`; $ways $programs"
}

link_flags() {
    minor=${kubernetes#v1.}
    printf '%s' '-s -w'
    for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
        printf ' -X %s.gitVersion=%s -X %s.gitMajor=1 -X %s.gitMinor=%s -X %s.gitTreeState=clean' \
            "$package" "$kubernetes" "$package" "$package" "${minor%%.*}" "$package"
    done
}

# Builds program $1 into the staging folder while saying every 20 seconds that it still does; $2 is "n of 4".
build() {
    say "building $1 ($2), $(elapsed)"
    (cd "$module" && exec nice go build -mod=readonly -trimpath -buildvcs=false \
        -ldflags "$(link_flags)" -o "$staging/$1" "./cmd/$1") >"$staging/log" 2>&1 9>&- &
    builder=$!
    ticks=0
    while kill -0 "$builder" 2>/dev/null; do
        sleep 1
        ticks=$((ticks + 1))
        [ $((ticks % 20)) -ne 0 ] || say "still building $1 ($2), $(elapsed)"
    done
    if ! wait "$builder"; then
        tail -n 40 "$staging/log" >&2
        fail "cannot build $1: go build failed as shown above"
    fi
    builder=
}

elapsed() { printf '%d s so far' $(($(date +%s) - began)); }

clean_up() {
    [ -z "$builder" ] || kill "$builder" 2>/dev/null || :
    [ -z "$staging" ] || rm -rf "$staging"
}

if [ -n "${KUBEBUILDER_ASSETS:-}" ]; then
    missing=$(missing_in "$KUBEBUILDER_ASSETS")
    [ -z "$missing" ] ||
        fail "KUBEBUILDER_ASSETS is \`$KUBEBUILDER_ASSETS\`, which lacks$missing; add them, or unset the variable to have all four built with Go"
    (CDPATH='' cd -- "$KUBEBUILDER_ASSETS" && pwd)
    exit 0
fi

kubernetes=$(awk '$1 == "k8s.io/kubernetes" { print $2; exit }' "$module/go.mod")
final=$builds/$(version_key)
if [ -d "$final" ]; then
    printf '%s\n' "$final"
    exit 0
fi

require_go
mkdir -p "$builds"
builder='' staging=''
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# The lock only saves a second run the work: every run builds in a folder of its own and renames it at the end.
# The kernel drops it however the holder ends. Without flock(1) two runs at once build twice.
if command -v flock >/dev/null; then
    exec 9>"$builds/lock"
    if ! flock -n 9; then
        say 'another run is building, waiting for it'
        flock 9
    fi
    rm -rf "$builds"/staging.*
fi
if [ ! -d "$final" ]; then
    unset GOOS GOARCH
    export CGO_ENABLED=0 GOWORK=off
    began=$(date +%s)
    staging=$(mktemp -d "$builds/staging.XXXXXX")
    say "building Kubernetes $kubernetes and etcd with $(go env GOVERSION), once; about 7 CPU-minutes"
    count=0
    for program in $programs; do
        count=$((count + 1))
        build "$program" "$count of 4"
    done
    rm "$staging/log"
    chmod 755 "$staging"
    [ -d "$final" ] || mv "$staging" "$final"
    say "done, $(elapsed)"
fi
printf '%s\n' "$final"
